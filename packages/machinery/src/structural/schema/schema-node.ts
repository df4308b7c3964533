/**
 * The nodes of a compiled schema. A node holds what pruning, defaulting and validating ask of it,
 * and no more: no titles, no descriptions, no examples.
 */
import type { JsonValue } from '../../json/json-value.ts';
import type { FormatCheck } from './formats.ts';
import type { ValidationRule, NumberRule } from './validation-rule.ts';

/** JSON types as bits; the absence of all stands for "any". */
export const TYPE_BITS = {
  string: 1,
  integer: 2,
  number: 4,
  boolean: 8,
  array: 16,
  object: 32,
} as const;

export interface SchemaNode {
  /** Distinct as long as the node lives; equal content has one id. */
  readonly id: number;
  /** Bytes that this node takes, without those below it. */
  readonly bytes: number;
  /** As the schema says; '' where it leaves the type open. */
  readonly type: string;
  /** Bits of the types that values may have: two of them for int-or-string. */
  readonly typeBits: number;
  readonly isNullable: boolean;
  readonly isIntOrString: boolean;
  readonly isEmbedded: boolean;
  readonly preservesUnknown: boolean;
  /** '' where the server does not check it; see `formatOf`. */
  readonly format: string;
  readonly checkFormat: FormatCheck | null;

  readonly number: NumberRule | null;
  readonly lengthMin: number;
  readonly lengthMax: number;
  readonly pattern: string;
  readonly itemsMin: number;
  readonly itemsMax: number;
  readonly propertiesMin: number;
  readonly propertiesMax: number;
  readonly required: readonly string[];
  /** Null: any value. */
  readonly enum: readonly JsonValue[] | null;
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | null;

  /** Null: none are declared. */
  readonly properties: ReadonlyMap<string, SchemaNode> | null;
  readonly items: SchemaNode | null;
  /** `absent`, `true`, `false`, or `schema` with `additional`. */
  readonly additionalKind: 'absent' | 'allowed' | 'denied' | 'schema';
  readonly additional: SchemaNode | null;

  readonly listType: '' | 'atomic' | 'set' | 'map';
  readonly mapKeys: readonly string[];
  readonly mapType: '' | 'atomic' | 'granular';
  readonly defaultValue: JsonValue | undefined;
  readonly rules: readonly ValidationRule[];

  /** Properties with a default of their own. */
  readonly defaulted: readonly (readonly [name: string, node: SchemaNode])[];
  /** Somewhere in the values of this node (itself, or below) there is such a thing. */
  readonly hasDefaults: boolean;
  readonly hasRules: boolean;
  readonly hasUniqueLists: boolean;
  readonly hasEmbedded: boolean;
  /** Levels of schema below it, itself counted. */
  readonly depth: number;
}

/** The node of a property, or of what stands for properties that are not declared. */
export function memberNode(node: SchemaNode, name: string): SchemaNode | null {
  return node.properties?.get(name) ?? node.additional;
}

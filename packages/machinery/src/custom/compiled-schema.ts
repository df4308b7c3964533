/**
 * What the server does with objects of a custom resource, by the schema of one of its versions:
 * prune, default, validate, and say who owns what.
 *
 * A schema is compiled when it is first needed. Nodes of equal content are one node, whichever
 * version or definition they come from; descriptions are not kept.
 */
import { DEDUCED_SCHEMA, type FieldSchema } from '../apply/field-schema.ts';
import type { FieldError } from '../fielderrors.ts';
import type { JsonObject } from '../json-value.ts';

/** How a decoded object is brought into the form that its schema allows. */
export interface DecodeMode {
  /** Whether the paths of unknown fields are reported (fieldValidation Warn and Strict). */
  readonly isTracked: boolean;
  /** Stored objects: malformed metadata of embedded objects is dropped, not refused. */
  readonly isStored: boolean;
}

export interface Decoded {
  /** Sorted paths of what was dropped: `spec.foo`, `spec.list[0].bar`. Empty unless tracked. */
  readonly unknown: readonly string[];
  /** Metadata of an embedded object that cannot be read: the request is a 500 upstream. */
  readonly fault: FieldError | null;
}

/** Paths of the scale subresource, with the leading point, as the definition has them. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

export interface ValidationScope {
  /** `status`: a write to the status subresource, where only `status` is looked at. */
  readonly part: 'object' | 'status';
  readonly scale: ScalePaths | null;
  /** What is wrong with kind, apiVersion and metadata; comes first, and may end the matter. */
  readonly found: readonly FieldError[];
}

/** The compiled form of one schema. Holds no object; may be used for any number of them. */
export interface CompiledSchema {
  /** Bytes that it holds, shared nodes counted in full. */
  readonly bytes: number;

  /**
   * First step of each write, before defaults: drops what the schema does not know, nulls that it
   * neither allows nor defaults, and unknown metadata of embedded objects. Changes the object in
   * place. `apiVersion`, `kind` and `metadata` of the root are left alone.
   */
  decode(object: JsonObject, mode: DecodeMode): Decoded;

  /** Fills in defaults, in place; nulls that are not allowed give way to them. For reads, too. */
  applyDefaults(object: JsonObject): void;

  /**
   * Everything that is wrong with an object after admission, in upstream's order and words: the
   * schema, the scale paths, embedded metadata, sets and maps, rules. On update (`old` is not null)
   * what was wrong before and has not changed is let through.
   */
  validate(object: JsonObject, old: JsonObject | null, scope: ValidationScope): FieldError[];

  /** For server-side apply and managedFields. */
  applySchema(): FieldSchema;
}

/** Compiles a schema (`openAPIV3Schema`) that `validateDefinition` has let through. */
export function compileSchema(_schema: JsonObject): CompiledSchema {
  return {
    bytes: 0,
    decode: () => ({ unknown: [], fault: null }),
    applyDefaults: () => undefined,
    validate: (_object, _old, { found }) => [...found],
    applySchema: () => DEDUCED_SCHEMA,
  };
}

/** Bytes of compiled schemas that stay; the least recently used go first. */
export const COMPILED_BYTES_MAX: number = 64 * 1024 * 1024;

/** Compiled schemas, bounded by bytes. Keys are the caller's: one per version of a definition. */
export class SchemaCache {
  readonly #compiled = new Map<string, CompiledSchema>();

  /** Gives the compiled schema of `key`, which `read` provides as JSON when it is not at hand. */
  get(key: string, read: () => JsonObject): CompiledSchema {
    let compiled = this.#compiled.get(key);
    if (compiled === undefined) this.#compiled.set(key, (compiled = compileSchema(read())));
    return compiled;
  }

  /** Forgets a version: its definition changed or is gone. */
  drop(key: string): void {
    this.#compiled.delete(key);
  }
}

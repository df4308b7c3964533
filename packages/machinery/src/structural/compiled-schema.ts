/**
 * What the server does with objects of a custom resource, by the schema of one of its versions:
 * prune, default, validate, and say who owns what.
 *
 * A schema is compiled when it is first needed. Nodes of equal content are one node, whichever
 * version or definition they come from; descriptions are not kept.
 */
import { withPatternSteps } from '../cel/library/regex-library.ts';
import type { FieldSchema } from '../managedfields/field-schema.ts';
import { ruleBudget } from '../cel/validation-rules.ts';
import type { FieldError } from '../meta/fielderrors.ts';
import type { JsonObject } from '../json/json-value.ts';
import { applySchemaOf } from './apply-schema.ts';
import { Correlation } from './correlation.ts';
import { fillDefaults } from './defaulting.ts';
import { checkEmbedded, coerceEmbedded } from './embedded-metadata.ts';
import { checkUniqueness } from './list-uniqueness.ts';
import { valueErrors } from './openapi-faults.ts';
import { pruneObject } from './pruning.ts';
import { compilingRules, hasRunnableRules, runRules } from './rule-tree.ts';
import { checkScaleSpec, checkScaleStatus, type ScalePaths } from './scale-paths.ts';
import { SchemaGraph } from './schema/schema-graph.ts';
import type { SchemaNode } from './schema/schema-node.ts';

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

export interface ValidationScope {
  /** `status`: a write to the status subresource, where only `status` is looked at. */
  readonly part: 'object' | 'status';
  readonly scale: ScalePaths | null;
  /** What is wrong with kind, apiVersion and metadata; comes first, and may end the matter. */
  readonly found: readonly FieldError[];
  /** Takes texts of rules that do not hold for what did not change: warnings for the client. */
  readonly warn?: (text: string) => void;
}

/** Kinds of errors after which rules are not run: the object may not be what they expect. */
const BLOCKING: ReadonlySet<FieldError['kind']> = new Set([
  'notSupported',
  'required',
  'tooLong',
  'tooMany',
  'typeInvalid',
]);

const UNJUDGED: FieldError = {
  kind: 'invalid',
  field: '<nil>',
  body:
    'Invalid value: null: some validation rules were not checked because the object was invalid; ' +
    'correct the existing errors to complete validation',
};

const ignore = (): void => undefined;

/** The compiled form of one schema. Holds no object; may be used for any number of them. */
export class CompiledSchema {
  readonly root: SchemaNode;
  readonly #status: SchemaNode | null;
  #isReady = false;

  constructor(root: SchemaNode) {
    this.root = root;
    this.#status = root.properties?.get('status') ?? null;
  }

  /** Whether all rules are compiled; else the first object that is judged waits for it. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Compiles the rules in steps, before there is an object. */
  *preparing(): Generator<void, void> {
    yield* compilingRules(this.root, true);
    this.#isReady = true;
  }

  /**
   * First step of each write, before defaults: drops what the schema does not know, nulls that it
   * neither allows nor defaults, and unknown metadata of embedded objects. Changes the object in
   * place. `apiVersion`, `kind` and `metadata` of the root are left alone.
   */
  decode(object: JsonObject, { isTracked, isStored }: DecodeMode): Decoded {
    const unknown = pruneObject(this.root, object, isTracked);
    if (!this.root.hasEmbedded) return { unknown, fault: null };
    const embedded: string[] | null = isTracked ? [] : null;
    const coercion = { dropsMalformed: isStored, unknown: embedded };
    const fault = coerceEmbedded(this.root, object, false, coercion);
    return { unknown: [...unknown, ...(embedded ?? []).sort()], fault };
  }

  /** Fills in defaults, in place; nulls that are not allowed give way to them. For reads, too. */
  applyDefaults(object: JsonObject): void {
    if (this.root.hasDefaults) fillDefaults(this.root, object);
  }

  /**
   * Everything that is wrong with an object after admission, in upstream's order and words: the
   * schema, the scale paths, embedded metadata, sets and maps, rules. On update (`old` is not null)
   * what was wrong before and has not changed is let through.
   */
  validate(object: JsonObject, old: JsonObject | null, scope: ValidationScope): FieldError[] {
    return withPatternSteps(() => this.#validate(object, old, scope));
  }

  #validate(object: JsonObject, old: JsonObject | null, scope: ValidationScope): FieldError[] {
    const { root } = this;
    const found = [...scope.found];
    const correlation = old === null ? null : new Correlation(root, object, old);
    if (scope.part === 'status') this.#checkStatus(object, correlation, found);
    else found.push(...valueErrors(root, object, '', correlation));
    if (scope.scale !== null) {
      if (scope.part === 'object') checkScaleSpec(found, object, scope.scale);
      checkScaleStatus(found, object, scope.scale);
    }
    if (root.hasEmbedded && scope.part === 'object') checkEmbedded(root, object, false, '', found);
    if (root.hasUniqueLists) this.#checkLists(object, old, found);
    if (!root.hasRules || !hasRunnableRules(root)) return found;
    if (found.some(({ kind }) => BLOCKING.has(kind))) {
      found.push(UNJUDGED);
      return found;
    }
    const run = { budget: ruleBudget(), found, warn: scope.warn ?? ignore };
    runRules(root, true, object, old ?? undefined, correlation, '', run);
    return found;
  }

  #checkStatus(object: JsonObject, correlation: Correlation | null, found: FieldError[]): void {
    const value = object['status'];
    if (value === undefined || this.#status === null) return;
    const tie = correlation?.member('status') ?? null;
    found.push(...valueErrors(this.#status, value, 'status', tie));
  }

  #checkLists(object: JsonObject, old: JsonObject | null, found: FieldError[]): void {
    const errors: FieldError[] = [];
    checkUniqueness(this.root, object, '', errors);
    if (errors.length === 0) return;
    const before: FieldError[] = [];
    if (old !== null) checkUniqueness(this.root, old, '', before);
    if (before.length === 0) found.push(...errors);
  }

  /** For server-side apply and managedFields. */
  applySchema(): FieldSchema {
    return applySchemaOf(this.root);
  }
}

/** Compiles a schema (`openAPIV3Schema`) that `validateDefinition` has let through. */
export function compileSchema(schema: JsonObject): CompiledSchema {
  return new CompiledSchema(new SchemaGraph().add(schema));
}

/** Bytes of compiled schemas that stay; the least recently used go first. */
export const COMPILED_BYTES_MAX: number = 64 * 1024 * 1024;

/** Compiled schemas, bounded by bytes. Keys are the caller's: one per version of a definition. */
export class SchemaCache {
  readonly #bytesMax: number;
  readonly #graph = new SchemaGraph();
  readonly #compiled = new Map<string, CompiledSchema>();
  /** What was used last: many writes in a row are of one kind. */
  #newestKey = '';
  #newest: CompiledSchema | null = null;

  constructor(bytesMax: number = COMPILED_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that are held; nodes that several schemas share count once. */
  get bytes(): number {
    return this.#graph.bytes;
  }

  /** The compiled schema of `key`, where it is at hand. */
  peek(key: string): CompiledSchema | undefined {
    return this.#compiled.get(key);
  }

  /** What `get` does, in steps. */
  *making(key: string, read: () => JsonObject): Generator<void, CompiledSchema> {
    const schema = read();
    yield;
    const root = yield* this.#graph.adding(schema);
    const known = this.#compiled.get(key);
    if (known === undefined) return this.#keep(key, root);
    this.#graph.release(root);
    return known;
  }

  /** Gives the compiled schema of `key`, which `read` provides as JSON when it is not at hand. */
  get(key: string, read: () => JsonObject): CompiledSchema {
    if (this.#newest !== null && key === this.#newestKey) return this.#newest;
    const known = this.#compiled.get(key);
    if (known !== undefined) {
      this.#newestKey = key;
      this.#newest = known;
      // the map's order is the order of use
      this.#compiled.delete(key);
      this.#compiled.set(key, known);
      return known;
    }
    return this.#keep(key, this.#graph.add(read()));
  }

  #keep(key: string, root: SchemaNode): CompiledSchema {
    const compiled = new CompiledSchema(root);
    this.#newestKey = key;
    this.#newest = compiled;
    this.#compiled.set(key, compiled);
    for (const oldest of this.#compiled.keys()) {
      if (this.bytes <= this.#bytesMax || oldest === key) break;
      this.drop(oldest);
    }
    return compiled;
  }

  /** Forgets a version: its definition changed or is gone. */
  drop(key: string): void {
    const compiled = this.#compiled.get(key);
    if (compiled === undefined) return;
    if (key === this.#newestKey) this.#newest = null;
    this.#compiled.delete(key);
    this.#graph.release(compiled.root);
  }
}

export type { ScalePaths };

/**
 * What is made of definitions when somebody needs it: compiled schemas and printers, kept while
 * there is room, and made again from the stored definition after that.
 */
import { SchemaCache, type CompiledSchema } from '@megaplane/machinery/custom/compiled-schema';
import {
  definitionVersions,
  type DefinitionVersion,
} from '@megaplane/machinery/custom/definition-version';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import { withoutPruning } from '@megaplane/machinery/custom/definition-beta';
import { customPrinter, type Printer } from '@megaplane/machinery/printing';
import { emptyRow, type Storage } from '../../storage/storage.ts';
import { type CustomVersion, type SchemaOwner, DEFINITIONS_PREFIX } from '../../storage/served.ts';
import { readWithoutSchemas } from '../definition/definition-facts.ts';
import { schemaSpans } from '../definition/schema-spans.ts';

/** Printers that are kept; the oldest goes first. */
const PRINTERS_MAX = 256;

const row = emptyRow();

export class CustomSchemas {
  readonly #storage: () => Storage;
  readonly #compiled = new SchemaCache();
  readonly #printers = new Map<string, Printer>();

  /** `storage` gives what keeps the definitions. */
  constructor(storage: () => Storage) {
    this.#storage = storage;
  }

  /** The compiled schema of a version. */
  schemaOf(version: SchemaOwner): CompiledSchema {
    return this.#compiled.get(keyOf(version), () => this.schemaText(version));
  }

  /**
   * The steps after which a version's schema is ready for use, and for judging objects where
   * `judges`; null where it is. Large ones take longer than others can wait.
   */
  preparing(version: SchemaOwner, judges: boolean): Iterator<void> | null {
    const compiled = this.#compiled.peek(keyOf(version));
    if (compiled !== undefined && (compiled.isReady || !judges)) return null;
    return this.#preparing(version, judges);
  }

  *#preparing(version: SchemaOwner, judges: boolean): Generator<void, void> {
    const compiled = yield* this.#compiled.making(keyOf(version), () => this.schemaText(version));
    if (judges) yield* compiled.preparing();
  }

  /** The schema of a version as the definition has it; `{}` where that is gone. */
  schemaText({ kind, facts }: SchemaOwner): JsonObject {
    const { versions, name, keepsUnknown } = kind.facts;
    if (!this.#read(name)) return {};
    const index = versions.findIndex((one) => one.name === facts.name);
    const span = schemaSpans(row.bytes, row.start, row.end)[index];
    if (span === undefined) return {};
    const value: unknown = parseJson(row.bytes.toString('utf8', span.start, span.end));
    const schema = objectAt(value as JsonObject, 'openAPIV3Schema') ?? {};
    return keepsUnknown ? withoutPruning(schema) : schema;
  }

  /** What `kubectl get` prints of a version. */
  printerOf(version: CustomVersion): Printer {
    const key = `${keyOf(version)} ${version.kind.revision}`;
    let printer = this.#printers.get(key);
    if (printer === undefined) {
      printer = this.#versionOf(version)?.printer() ?? customPrinter;
      this.#printers.set(key, printer);
      const [oldest] = this.#printers.keys();
      if (this.#printers.size > PRINTERS_MAX && oldest !== undefined) {
        this.#printers.delete(oldest);
      }
    }
    return printer;
  }

  /** The stored definition without its schemas; undefined where it is gone. */
  definition(name: string): JsonObject | undefined {
    return this.#read(name) ? readWithoutSchemas(row.bytes, row.start, row.end) : undefined;
  }

  /** Forgets what was made of a version that changed or went. */
  drop(version: CustomVersion): void {
    this.#compiled.drop(keyOf(version));
  }

  #versionOf({ kind, facts }: CustomVersion): DefinitionVersion | undefined {
    const definition = this.definition(kind.facts.name);
    if (definition === undefined) return undefined;
    return definitionVersions(definition).find((one) => one.name === facts.name);
  }

  #read(name: string): boolean {
    return this.#storage().get(Buffer.from(DEFINITIONS_PREFIX + name), row);
  }
}

function keyOf({ kind, facts, schemaSince }: SchemaOwner): string {
  return `${kind.facts.uid} ${facts.name} ${schemaSince}`;
}

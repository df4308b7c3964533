/**
 * What the server keeps of a CustomResourceDefinition that nobody uses: names, versions and
 * conditions. Schemas, which are nearly all of its bytes, are stepped over and not parsed, so that
 * ten thousand definitions are found again at a start in a moment.
 */
import {
  definitionVersions,
  type DefinitionVersion,
} from '@megaplane/machinery/custom/definition-version';
import type { ScalePaths } from '@megaplane/machinery/custom/compiled-schema';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { conditionOf, namesAt, type CustomNames } from './definition-names.ts';
import { nextStatus } from './definition-status.ts';
import { schemaSpans, type Span } from './schema-spans.ts';

/** One version, without its schema. */
export interface VersionFacts {
  readonly name: string;
  readonly isServed: boolean;
  readonly isStorage: boolean;
  /** Told with every answer; '' for a version that is not deprecated. */
  readonly warning: string;
  readonly hasStatus: boolean;
  readonly scale: ScalePaths | null;
  /** As selectors name them: `spec.color`. */
  readonly selectable: readonly string[];
}

/** Conditions that decide what is served. */
export interface DefinitionState {
  readonly isEstablished: boolean;
  readonly areNamesAccepted: boolean;
  readonly isTerminating: boolean;
}

export interface DefinitionFacts {
  /** `plural.group` */
  readonly name: string;
  readonly uid: string;
  /** Counts the changes of its spec. */
  readonly generation: number;
  readonly group: string;
  readonly isNamespaced: boolean;
  /** As the definition's own name has it. */
  readonly plural: string;
  /** As the status has accepted them; '' where it has not. */
  readonly names: CustomNames;
  readonly versions: readonly VersionFacts[];
  readonly storageVersion: string;
  /** Objects of other versions are made by a webhook; else they differ in their apiVersion only. */
  readonly isConverting: boolean;
  /** Objects may be kept in several versions: `status.storedVersions` has more than one. */
  readonly isMixed: boolean;
  readonly state: DefinitionState;
  /** Its status says what it has to say, unless somebody else has a name of it. */
  readonly isSettled: boolean;
  /** It is being deleted, and its objects have to go before. */
  readonly isEnding: boolean;
  /**
   * All versions have the same schema, so that an object that was written as one of them is in the
   * form of all others.
   */
  readonly areAlike: boolean;
  /** Nothing is pruned: so it may be in definitions that were made before v1. */
  readonly keepsUnknown: boolean;
}

const NOTHING: readonly string[] = [];

/** Keeps a definition until its objects are gone. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

/** The definition in `bytes` with every schema left out (null stands there). */
export function readWithoutSchemas(
  bytes: Buffer,
  start: number,
  end: number,
  spans: readonly Span[] = schemaSpans(bytes, start, end),
): JsonObject {
  let text = '';
  let at = start;
  for (const span of spans) {
    text += `${bytes.toString('utf8', at, span.start)}null`;
    at = span.end;
  }
  return parseJson(text + bytes.toString('utf8', at, end)) as JsonObject;
}

/** Reads stored bytes; they were validated when they were written. */
export function readFacts(bytes: Buffer, start: number, end: number): DefinitionFacts {
  const spans = schemaSpans(bytes, start, end);
  const [first] = spans;
  const areAlike = spans.every(
    (one) => bytes.compare(bytes, one.start, one.end, first?.start, first?.end) === 0,
  );
  return factsOf(readWithoutSchemas(bytes, start, end, spans), areAlike);
}

function factsOf(definition: JsonObject, areAlike: boolean): DefinitionFacts {
  const group = stringAt(definition, 'spec', 'group');
  const names = namesAt(objectAt(definition, 'status', 'acceptedNames'));
  const versions = definitionVersions(definition);
  return {
    name: stringAt(definition, 'metadata', 'name'),
    uid: stringAt(definition, 'metadata', 'uid'),
    generation: numberAt(definition, 'metadata', 'generation'),
    group,
    plural: stringAt(definition, 'spec', 'names', 'plural'),
    isNamespaced: stringAt(definition, 'spec', 'scope') === 'Namespaced',
    names,
    versions: versions.map((one) => versionFacts(one, versions, group, names.kind)),
    storageVersion: versions.find((one) => one.isStorage)?.name ?? '',
    isConverting: stringAt(definition, 'spec', 'conversion', 'strategy') === 'Webhook',
    isMixed: listAt(definition, 'status', 'storedVersions').length > 1,
    state: stateOf(definition),
    isSettled: nextStatus(definition, () => undefined, 0) === null,
    isEnding:
      stringAt(definition, 'metadata', 'deletionTimestamp') !== '' &&
      listAt(definition, 'metadata', 'finalizers').includes(CLEANUP_FINALIZER),
    areAlike,
    keepsUnknown: objectAt(definition, 'spec')?.['preserveUnknownFields'] === true,
  };
}

function versionFacts(
  version: DefinitionVersion,
  all: readonly DefinitionVersion[],
  group: string,
  kind: string,
): VersionFacts {
  const { name, isServed, isStorage, hasStatus, scale } = version;
  const warning = version.isDeprecated ? deprecationText(version, all, group, kind) : '';
  const fields = version.selectableFields;
  const selectable = fields.length === 0 ? NOTHING : fields.map((one) => one.name);
  return { name, isServed, isStorage, warning, hasStatus, scale, selectable };
}

/** Upstream's words, where the definition has none: they name a newer version that is not old. */
function deprecationText(
  version: DefinitionVersion,
  all: readonly DefinitionVersion[],
  group: string,
  kind: string,
): string {
  if (version.deprecationWarning !== '') return version.deprecationWarning;
  const text = `${group}/${version.name} ${kind} is deprecated`;
  const better = all
    .filter((one) => one.isServed && !one.isDeprecated)
    .map(({ name }) => name)
    .filter((name) => compareVersions(name, version.name) < 0)
    .sort(compareVersions)[0];
  return better === undefined ? text : `${text}; use ${group}/${better} ${kind}`;
}

/**
 * Order of versions as Kubernetes prefers them: GA before beta before alpha, higher numbers first;
 * names of another form come last, in order of the alphabet.
 */
export function compareVersions(one: string, other: string): number {
  if (one === other) return 0;
  const left = parseVersion(one);
  const right = parseVersion(other);
  if (left === null || right === null) {
    if (left === null && right === null) return one < other ? -1 : 1;
    return left === null ? 1 : -1;
  }
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor;
}

interface ParsedVersion {
  readonly stage: number;
  readonly major: number;
  readonly minor: number;
}

function parseVersion(text: string): ParsedVersion | null {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(text);
  if (match === null) return null;
  const stage = match[2] === undefined ? 2 : match[2] === 'beta' ? 1 : 0;
  return { stage, major: Number(match[1]), minor: Number(match[3] ?? '0') };
}

function stateOf(definition: JsonObject): DefinitionState {
  const isTrue = (type: string): boolean => conditionOf(definition, type)?.['status'] === 'True';
  return {
    isEstablished: isTrue('Established'),
    areNamesAccepted: isTrue('NamesAccepted'),
    isTerminating: isTrue('Terminating'),
  };
}

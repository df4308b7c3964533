/** What a step of a stage asks of the server, for one object. */
import { CONTENT } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { applyPatch } from '@megaplane/machinery/patch';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { isScalar, parseAllDocuments, Scalar, visit, type Document } from 'yaml';
import type { Template } from '../gotemplate/template-run.ts';
import { StageError, type StageStep } from './stage.ts';

/** Where objects of a kind live. */
export interface StageResource {
  /** `v1` or `group/version`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The plural of URLs. */
  readonly resource: string;
  readonly namespaced: boolean;
}

export interface StageRequest {
  readonly method: 'PATCH' | 'DELETE' | 'POST';
  readonly path: string;
  readonly contentType: string;
  readonly body: string;
  /** To act as; '' for ourselves. */
  readonly user: string;
  /** What is sent where the object is there already; null: nothing. */
  readonly orElse: StageRequest | null;
}

const CONTENT_OF = {
  json: 'application/json-patch+json',
  merge: CONTENT.mergePatch,
  strategic: CONTENT.strategicPatch,
  apply: 'application/apply-patch+yaml',
} as const;

/** Path of a collection, or of one object of it. */
export function resourcePath(of: StageResource, namespace: string, name: string): string {
  const root = of.apiVersion.includes('/') ? '/apis/' : '/api/';
  const within = of.namespaced && namespace !== '' ? `/namespaces/${namespace}` : '';
  const tail = name === '' ? '' : `/${encodeURIComponent(name)}`;
  return `${root}${of.apiVersion}${within}/${of.resource}${tail}`;
}

/** The path of an object of the resource. */
export function objectPath(of: StageResource, object: JsonObject): string {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return resourcePath(of, text(metadata['namespace']), text(metadata['name']));
}

/** The request of a patch, or null where it would change nothing. Throws a StageError. */
export function patchRequest(
  step: Extract<StageStep, { readonly kind: 'patch' }>,
  of: StageResource,
  object: JsonObject,
): StageRequest | null {
  const isCore = of.apiVersion === 'v1' && (of.kind === 'Pod' || of.kind === 'Node');
  const type = step.type === '' ? (isCore ? 'strategic' : 'merge') : step.type;
  const value = rendered(step.template, object);
  const body = type === 'json' ? prefixed(value, step.root) : wrapped(value, step.root);
  if (body === null || changesNothing(type, body, of, object)) return null;
  const tail = step.subresource === '' ? '' : `/${step.subresource}`;
  return {
    method: 'PATCH',
    path: `${objectPath(of, object)}${tail}`,
    contentType: CONTENT_OF[type],
    body: JSON.stringify(body),
    user: step.user,
    orElse: null,
  };
}

function changesNothing(
  kind: 'json' | 'merge' | 'strategic',
  body: JsonValue,
  of: StageResource,
  object: JsonObject,
): boolean {
  if (kind === 'json') return isSameAfter(body, object);
  if (!isObject(body)) return false;
  const type = findTypeOfKind(of.apiVersion, of.kind);
  if (kind === 'strategic' && type === undefined) return false;
  const patched = applyPatch({ kind, body }, object, type);
  return patched.ok && JSON.stringify(patched.value) === JSON.stringify(object);
}

/** A patch that cannot be applied is sent all the same: the server says what is wrong with it. */
function isSameAfter(operations: JsonValue, object: JsonObject): boolean {
  if (!Array.isArray(operations)) return false;
  const own = operations.filter((operation) => isObject(operation));
  const patch = { kind: 'json', operations: own, strictErrors: [] } as const;
  const patched = applyPatch(patch, object, undefined);
  return patched.ok && JSON.stringify(patched.value) === JSON.stringify(object);
}

function wrapped(value: JsonValue, root: string): JsonValue {
  return root === '' ? value : { [root]: value };
}

function prefixed(value: JsonValue, root: string): JsonValue {
  if (!Array.isArray(value)) throw new StageError('a JSON patch is a list of operations');
  if (root === '') return value;
  return value.map((operation) =>
    isObject(operation) ? { ...operation, path: `/${root}${text(operation['path'])}` } : operation,
  );
}

/** The request that applies another object: as kwok, it is made, or patched where it is there. */
export function applyRequest(
  step: Extract<StageStep, { readonly kind: 'apply' }>,
  object: JsonObject,
  resourceOf: (apiVersion: string, kind: string) => StageResource | undefined,
): StageRequest {
  const value = rendered(step.template, object);
  if (!isObject(value)) throw new StageError('an apply step must give one object');
  const of = resourceOf(text(value['apiVersion']), text(value['kind']));
  if (of === undefined) {
    const kind = `${text(value['apiVersion'])} ${text(value['kind'])}`;
    throw new StageError(`the server has no ${kind}`);
  }
  const made = of.namespaced ? inNamespaceOf(value, object) : value;
  const tail = step.subresource === '' ? '' : `/${step.subresource}`;
  const query = step.type === 'apply' ? '?fieldManager=kwok&force=true' : '';
  const body = JSON.stringify(made);
  const { user } = step;
  const patch: StageRequest = {
    method: 'PATCH',
    path: `${objectPath(of, made)}${tail}${query}`,
    ...{ contentType: CONTENT_OF[step.type], body, user, orElse: null },
  };
  if (tail !== '') return patch;
  const metadata = isObject(made['metadata']) ? made['metadata'] : {};
  const isNamed = text(metadata['name']) !== '';
  const path = resourcePath(of, text(metadata['namespace']), '');
  const orElse = isNamed ? patch : null;
  return { method: 'POST', path, contentType: CONTENT.json, body, user, orElse };
}

/** What names no namespace is made in that of the object whose stage it is. */
function inNamespaceOf(made: JsonObject, object: JsonObject): JsonObject {
  const metadata = isObject(made['metadata']) ? made['metadata'] : {};
  if (text(metadata['namespace']) !== '') return made;
  const own = isObject(object['metadata']) ? object['metadata'] : {};
  return { ...made, metadata: { ...metadata, namespace: text(own['namespace']) } };
}

/** The request that changes finalizers, or null where they are as they should be. */
export function finalizersRequest(
  step: Extract<StageStep, { readonly kind: 'finalizers' }>,
  of: StageResource,
  object: JsonObject,
): StageRequest | null {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const held = metadata['finalizers'];
  const names = Array.isArray(held) ? held.map(text) : [];
  const operations = finalizerOperations(step, names);
  if (operations.length === 0) return null;
  const body = JSON.stringify(operations);
  const path = objectPath(of, object);
  return { method: 'PATCH', path, contentType: CONTENT_OF.json, body, user: '', orElse: null };
}

/** As kwok: what is added is compared with what was there before anything is removed. */
function finalizerOperations(
  step: Extract<StageStep, { readonly kind: 'finalizers' }>,
  names: readonly string[],
): JsonObject[] {
  const path = '/metadata/finalizers';
  const operations: JsonObject[] = [];
  for (let at = names.length - 1; at >= 0 && !step.isEmpty; at--) {
    if (step.remove.includes(names[at] ?? ''))
      operations.push({ op: 'remove', path: `${path}/${at}` });
  }
  const isNothingLeft = step.isEmpty || operations.length === names.length;
  if (isNothingLeft) operations.splice(0);
  if (isNothingLeft && names.length > 0) operations.push({ op: 'remove', path });
  if (isNothingLeft && step.add.length > 0)
    operations.push({ op: 'add', path, value: [...step.add] });
  for (const value of isNothingLeft ? [] : step.add) {
    if (!names.includes(value)) operations.push({ op: 'add', path: `${path}/-`, value });
  }
  return operations;
}

/** The request that deletes the object at once. */
export function deleteRequest(of: StageResource, object: JsonObject): StageRequest {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const preconditions = { uid: text(metadata['uid']) };
  const body = JSON.stringify({ gracePeriodSeconds: 0, preconditions });
  const path = objectPath(of, object);
  return { method: 'DELETE', path, contentType: CONTENT.json, body, user: '', orElse: null };
}

/** Of what a template gives: the library takes a second for a megabyte, in one go. */
export const YAML_CHARS_MAX: number = 128 * 1024;

/** The value that a template gives as YAML 1.1; throws a StageError. */
function rendered(template: Template, object: JsonObject): JsonValue {
  const source = template.render(object);
  if (source.length > YAML_CHARS_MAX) {
    throw new StageError(`the template gives more than ${YAML_CHARS_MAX} characters`);
  }
  try {
    const documents = parseAllDocuments(source, {
      version: '1.1',
      uniqueKeys: false,
      customTags: noTimes,
    });
    // as kwok: of several documents the first, and of none null
    const [first] = 'empty' in documents ? [] : documents;
    if (first === undefined) return null;
    const [error] = first.errors;
    if (error !== undefined) throw error;
    if (!source.endsWith('\n')) cutLastBlock(first, source.length);
    const value = first.toJS() as JsonValue;
    if (!isWritable(value)) throw new Error('JSON has no infinite numbers');
    return value;
  } catch (error) {
    throw new StageError(`the template gives no YAML: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** A block of text at the end of what has no last line break has none either, as YAML says. */
function cutLastBlock(document: Document, end: number): void {
  visit(document, {
    Scalar: (_key, node) => {
      const isBlock = node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED;
      if (!isBlock || (node.range?.[1] ?? 0) < end || !isScalar<string>(node)) return;
      node.value = node.value.replace(/\n$/, '');
    },
  });
}

/** Times stay texts, as JSON has them, and so does `12:30:45`, a number to the base 60 in 1.1. */
function noTimes<Tag>(tags: readonly Tag[]): Tag[] {
  return tags.filter((tag) => {
    if (typeof tag !== 'object' || tag === null || !('tag' in tag)) return true;
    const isBase60 = 'format' in tag && tag.format === 'TIME';
    return tag.tag !== 'tag:yaml.org,2002:timestamp' && !isBase60;
  });
}

/** What JSON has no number for is refused, as Go does. */
function isWritable(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isWritable);
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(isWritable);
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

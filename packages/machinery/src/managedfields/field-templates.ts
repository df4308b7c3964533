/**
 * The entries of managedFields as they lie in the store: by reference. A million pods have a few
 * dozen different entries, but for their times and for the addresses and uids in them. So each
 * different entry is kept once, as a template, under an id that follows from its content; an object
 * holds ids, times and what fills the holes:
 *
 *     "managedFields":"dHp7Zk0aWq3L;t9x2ab,Qk2...;t9x2b0;10.1.2.3"
 *                      id          ;time        id  ;time  ;hole
 *
 * Times are seconds since 1970 in base 36, '' where there is none. Equal content has equal ids in
 * every process, so templates of several stores can live side by side.
 */

import { createHash } from 'node:crypto';
import { ownText } from '@megaplane/base/bytes';
import { parseJson } from '../json/json-text.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { decodeFields } from './field-set-codec.ts';
import { FieldSet } from './field-set.ts';
import { fillText, HOLE, holedFields, type Holed } from './field-placeholders.ts';
import {
  emptyManaged,
  compareEntries,
  decodeManaged,
  entryJson,
  managerId,
  managerOf,
  timeText,
  type Entry,
  type Managed,
  type Manager,
} from './managed-fields.ts';
import { goJson } from './path-element.ts';

const ID_LENGTH = 12;
/** Sets that were read from their templates and are kept; beyond it all are read again. */
const SETS_MAX = 8192;
/** Templates that are kept; objects with others hold them whole. */
export const TEMPLATES_MAX = 131_072;
/** Characters of all templates together. */
const TEMPLATE_LETTERS_MAX = 256 * 1024 * 1024;

/** One kind of entry. */
export interface Template {
  readonly id: string;
  readonly manager: Manager;
  /** What tells its manager from others. */
  readonly ownerId: string;
  /** FieldsV1, cut at its holes. */
  readonly pieces: readonly string[];
  /** Text of the entry before the time. */
  readonly head: Buffer;
  /** After it: text between the holes; the last ends the entry. */
  readonly rest: readonly Buffer[];
}

const templates = new Map<string, Template>();
/** Ids by manager and text. */
const idsByText = new Map<string, Map<string, string>>();
let letters = 0;

/** Records of templates by their ids, of stores that others write to as well. */
type TemplateSource = (id: string) => JsonValue | undefined;

const sources = new Set<TemplateSource>();

/** Templates that are not known yet are looked for there, until the call of what it returns. */
export function addTemplateSource(source: TemplateSource): () => void {
  sources.add(source);
  return () => sources.delete(source);
}

/** A template by its id; undefined where it is not known. */
export function templateOf(id: string): Template | undefined {
  return templates.get(id) ?? sought(id);
}

function sought(id: string): Template | undefined {
  for (const source of sources) {
    if (restoreTemplate(id, source(id))) return templates.get(id);
  }
  return undefined;
}

/** How a template is kept: what `restoreTemplate` reads. */
export function templateRecord({ manager, pieces }: Template): JsonObject {
  return { ...manager, pieces: [...pieces] };
}

/** Takes in a template that was kept under `id`; false where it is none. */
export function restoreTemplate(id: string, record: JsonValue | undefined): boolean {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return false;
  const { name, operation, apiVersion, subresource, pieces } = record;
  if (typeof name !== 'string' || typeof apiVersion !== 'string') return false;
  if (typeof subresource !== 'string' || !Array.isArray(pieces)) return false;
  if (operation !== 'Apply' && operation !== 'Update') return false;
  const text = pieces.map(String).join(HOLE);
  add({ name, operation, apiVersion, subresource }, text, id);
  return true;
}

function idsOf(manager: Manager): Map<string, string> {
  const key = managerKey(manager);
  let ids = idsByText.get(key);
  if (ids === undefined) idsByText.set(key, (ids = new Map()));
  return ids;
}

function add(manager: Manager, text: string, kept = ''): string {
  const ids = idsOf(manager);
  const known = ids.get(text);
  // a template that was kept under another id stays good for the objects that name it
  if (known !== undefined && (kept === '' || kept === known)) return known;
  const hash = createHash('sha256').update(managerKey(manager)).update(text);
  const id = kept === '' ? hash.digest('base64url').slice(0, ID_LENGTH) : kept;
  const pieces = text.split(HOLE);
  const { name, operation, apiVersion, subresource } = manager;
  const nameText = name === '' ? '' : `"manager":${goJson(name)},`;
  const head = `{${nameText}"operation":"${operation}","apiVersion":${goJson(apiVersion)}`;
  const end = subresource === '' ? '}' : `,"subresource":${goJson(subresource)}}`;
  const rest = pieces.map((piece, index) => {
    const start = index === 0 ? ',"fieldsType":"FieldsV1","fieldsV1":' : '';
    return ownText(`${start}${piece}${index === pieces.length - 1 ? end : ''}`);
  });
  const ownerId = managerId(manager);
  templates.set(id, { id, manager, ownerId, pieces, head: ownText(head), rest });
  ids.set(text, id);
  letters += text.length * 2;
  return id;
}

function managerKey({ name, operation, apiVersion, subresource }: Manager): string {
  return `${operation} ${apiVersion} ${subresource}\n${name}\n`;
}

/** What was packed for a set last: writes that leave it alone get the same. */
const packed = new WeakMap<FieldSet, { readonly key: string; readonly reference: string }>();

/** A reference without its time: `id` and its fills, ready to be joined. */
function referenceOf(manager: Manager, set: FieldSet): string | null {
  const key = managerKey(manager);
  const known = packed.get(set);
  if (known !== undefined && known.key === key) return known.reference;
  const reference = holedReference(manager, holedFields(set));
  if (reference !== null) packed.set(set, { key, reference });
  return reference;
}

/** What encoding leaves as it is. */
const UNRESERVED = /^[A-Za-z0-9._-]*$/;

/** Null where there is no room for another template. */
function holedReference(manager: Manager, { text, fills }: Holed): string | null {
  let id = idsOf(manager).get(text);
  if (id === undefined) {
    if (templates.size >= TEMPLATES_MAX || letters >= TEMPLATE_LETTERS_MAX) return null;
    id = add(manager, text);
  }
  for (const fill of fills) {
    id += `;${UNRESERVED.test(fill) ? fill : encodeURIComponent(fill)}`;
  }
  return id;
}

function timed(reference: string, seconds: number | null): string {
  const time = seconds === null ? '' : seconds.toString(36);
  return `${reference.slice(0, ID_LENGTH)};${time}${reference.slice(ID_LENGTH)}`;
}

/**
 * The one owner of a new object, as an object holds it; null where there is no room for its
 * template.
 */
export function packNew(manager: Manager, fields: Holed, seconds: number): string | null {
  const reference = holedReference(manager, fields);
  return reference === null ? null : timed(reference, seconds);
}

/**
 * The owners as an object holds them: a string of references, or the entries themselves where there
 * is no room for their templates; undefined where nobody owns anything.
 */
export function packManaged(managed: Managed): string | JsonValue[] | undefined {
  if (managed.owners.size === 0) return undefined;
  const entries: (Entry & { readonly reference: string | null })[] = [];
  for (const [id, { apiVersion, isApplied, fields }] of managed.owners) {
    const operation = isApplied ? 'Apply' : 'Update';
    const manager: Manager = { ...managerOf(id), apiVersion, operation };
    const reference = referenceOf(manager, fields);
    entries.push({ manager, seconds: managed.times.get(id) ?? null, set: fields, reference });
  }
  if (entries.length > 1) entries.sort(compareEntries);
  if (entries.some(({ reference }) => reference === null)) return entries.map(entryJson);
  return entries.map(({ reference, seconds }) => timed(reference ?? '', seconds)).join(',');
}

interface Read {
  readonly template: Template;
  readonly seconds: number | null;
  readonly fills: readonly string[];
}

function readReference(text: string): Read | null {
  const [id = '', time = '', ...fills] = text.split(';');
  const template = templates.get(id);
  if (template === undefined || fills.length !== template.pieces.length - 1) return null;
  const seconds = time === '' ? null : Number.parseInt(time, 36);
  return { template, seconds, fills: fills.map(decodeURIComponent) };
}

function fieldsText({ template, fills }: Read): string {
  return template.pieces
    .map((piece, at) => (at === 0 ? piece : fillText(fills[at - 1] ?? '') + piece))
    .join('');
}

const sets = new Map<string, FieldSet>();

/**
 * The owners of what `packManaged` gave, or of entries as the API shows them. What cannot be read
 * counts as nothing, as upstream has it.
 */
export function unpackManaged(value: JsonValue | undefined): Managed {
  const managed = emptyManaged();
  if (typeof value !== 'string') {
    const read = decodeManaged(value);
    return typeof read === 'string' ? managed : read;
  }
  for (const text of value.split(',')) {
    const read = readReference(text);
    if (read === null) continue;
    const { template, seconds } = read;
    const { manager, ownerId: id } = template;
    const fields = setOf(text, read);
    managed.owners.set(id, {
      apiVersion: manager.apiVersion,
      isApplied: manager.operation === 'Apply',
      fields,
    });
    if (seconds !== null) managed.times.set(id, seconds);
  }
  return managed;
}

function setOf(text: string, read: Read): FieldSet {
  const filled = read.fills.length > 0 ? text.slice(text.indexOf(';', ID_LENGTH + 1)) : '';
  const key = read.template.id + filled;
  const known = sets.get(key);
  if (known !== undefined) return known;
  const set = decodeFields(parseJson(fieldsText(read))) ?? new FieldSet();
  if (sets.size >= SETS_MAX) sets.clear();
  sets.set(key, set);
  packed.set(set, { key: managerKey(read.template.manager), reference: key });
  return set;
}

/**
 * True where a client sends the entries back as `packed` was shown to it. Nearly all do, so they
 * are compared as texts, and read only where they differ.
 */
export function isShownAs(packed: string, sent: JsonValue): boolean {
  const references = packed.split(',');
  if (!Array.isArray(sent) || sent.length !== references.length) return false;
  return references.every((text, at) => {
    const read = readReference(text);
    const entry = sent[at];
    if (read === null || !isObject(entry)) return false;
    const { name, operation, apiVersion, subresource } = read.template.manager;
    const time = read.seconds === null ? undefined : timeText(read.seconds);
    return (
      (entry['manager'] ?? '') === name &&
      entry['operation'] === operation &&
      entry['apiVersion'] === apiVersion &&
      (entry['subresource'] ?? '') === subresource &&
      entry['time'] === time &&
      entry['fieldsType'] === 'FieldsV1' &&
      JSON.stringify(entry['fieldsV1']) === fieldsText(read)
    );
  });
}

/** The entries as the API shows them, from either form. */
export function shownManaged(value: JsonValue | undefined): JsonValue[] {
  if (typeof value !== 'string') return Array.isArray(value) ? value : [];
  const shown: JsonValue[] = [];
  for (const text of value.split(',')) {
    const read = readReference(text);
    if (read === null) continue;
    const { name, operation, apiVersion, subresource } = read.template.manager;
    const entry: JsonObject = name === '' ? {} : { manager: name };
    entry['operation'] = operation;
    entry['apiVersion'] = apiVersion;
    if (read.seconds !== null) entry['time'] = timeText(read.seconds);
    entry['fieldsType'] = 'FieldsV1';
    entry['fieldsV1'] = parseJson(fieldsText(read)) as JsonObject;
    if (subresource !== '') entry['subresource'] = subresource;
    shown.push(entry);
  }
  return shown;
}

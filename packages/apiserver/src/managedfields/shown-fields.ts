// data plane
/**
 * The owners of fields on their way out: an object keeps references to templates (see machinery's
 * `field-templates`), first in its metadata; readers get the entries.
 */
import { ownText } from '@megaplane/base/bytes';
import {
  templateOf,
  type Template,
  packManaged,
  shownManaged,
} from '@megaplane/machinery/apply/field-templates';
import { fillText } from '@megaplane/machinery/apply/field-placeholders';
import { timeText, type Managed } from '@megaplane/machinery/apply/managed-fields';
import { Sink } from '../sink/sink.ts';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';

const OPEN = Buffer.from('"managedFields":"');
const LIST_OPEN = Buffer.from('"managedFields":[');
const TIME_OPEN = Buffer.from(',"time":"');
const QUOTE = 0x22;
const PERCENT = 0x25;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const BRACKET_CLOSE = 0x5d;
const BRACE_CLOSE = 0x7d;
/** Times of entries whose text is remembered: many objects are written within few seconds. */
const TIMES_MAX = 4096;
const ID_LENGTH = 12;

/** Templates that were shown last. */
const RECENT = 64;
const recent: (Template | undefined)[] = Array.from({ length: RECENT }, () => undefined);
const times = new Map<number, Buffer>();

/** True where the metadata whose first member is at `at` begins with references. */
export function isPacked(bytes: Uint8Array, at: number): boolean {
  for (let index = 0; index < OPEN.length; index++) {
    if (bytes[at + index] !== OPEN[index]!) return false;
  }
  return true;
}

/** The offset after the references at `at`, which `isPacked` found. */
export function packedEnd(bytes: Uint8Array, at: number): number {
  return bytes.indexOf(QUOTE, at + OPEN.length) + 1;
}

/** Appends `"managedFields":[...]` for the references at `at`; gives the offset after them. */
export function appendManaged(sink: Sink, bytes: Buffer, at: number): number {
  sink.append(LIST_OPEN);
  let from = at + OPEN.length;
  let isFirst = true;
  while (bytes[from] !== QUOTE) {
    let to = from;
    while (bytes[to] !== COMMA && bytes[to] !== QUOTE) to++;
    if (!isFirst) sink.ascii(',');
    if (appendEntry(sink, bytes, from, to)) isFirst = false;
    from = bytes[to] === COMMA ? to + 1 : to;
  }
  sink.ensure(1);
  sink.bytes[sink.length++] = BRACKET_CLOSE;
  return from + 1;
}

function appendEntry(sink: Sink, bytes: Buffer, from: number, to: number): boolean {
  const template = recentTemplate(bytes, from);
  if (template === undefined) return false;
  const { head, rest } = template;
  sink.append(head);
  let at = from + ID_LENGTH + 1;
  let seconds = 0;
  const timeAt = at;
  while (at < to && bytes[at] !== SEMICOLON) {
    const byte = bytes[at++]!;
    seconds = seconds * 36 + (byte >= 0x61 ? byte - 0x57 : byte - 0x30);
  }
  if (at > timeAt) {
    sink.append(TIME_OPEN);
    sink.append(timeOf(seconds));
  }
  sink.append(rest[0]!);
  for (let index = 1; index < rest.length; index++) {
    const start = ++at;
    let isPlain = true;
    while (at < to && bytes[at] !== SEMICOLON) if (bytes[at++] === PERCENT) isPlain = false;
    // what needs no escape in a reference needs none in JSON
    if (isPlain) sink.append(bytes, start, at);
    else sink.utf8(fillText(decodeURIComponent(bytes.latin1Slice(start, at))));
    sink.append(rest[index]!);
  }
  return true;
}

/** The template at `from`; by the bytes of its id where it was asked for lately. */
export function recentTemplate(bytes: Buffer, from: number): Template | undefined {
  const place = (bytes[from]! + bytes[from + 5]! * 31 + bytes[from + 11]! * 7) % RECENT;
  const found = recent[place];
  if (found !== undefined && isId(bytes, from, found.id)) return found;
  const template = templateOf(bytes.latin1Slice(from, from + ID_LENGTH));
  if (template !== undefined) recent[place] = template;
  return template;
}

function isId(bytes: Buffer, from: number, id: string): boolean {
  for (let at = 0; at < ID_LENGTH; at++) {
    if (bytes[from + at] !== id.charCodeAt(at)) return false;
  }
  return true;
}

function timeOf(seconds: number): Buffer {
  const known = times.get(seconds);
  if (known !== undefined) return known;
  const text = ownText(`${timeText(seconds)}"`, 'latin1');
  if (times.size >= TIMES_MAX) times.clear();
  times.set(seconds, text);
  return text;
}

/**
 * Appends what follows the revision in an object's metadata: a comma where there is more, and the
 * bytes in `[cut, end)` with the owners of fields written out.
 */
export function appendShown(sink: Sink, bytes: Buffer, cut: number, end: number): void {
  let from = cut;
  if (bytes[cut] !== BRACE_CLOSE) sink.ascii(',');
  if (isPacked(bytes, cut)) from = appendManaged(sink, bytes, cut);
  sink.append(bytes, from, end);
}

/** The same without the owners. */
export function appendLean(sink: Sink, bytes: Buffer, cut: number, end: number): void {
  let from = cut;
  if (isPacked(bytes, cut)) {
    from = packedEnd(bytes, cut);
    if (bytes[from] === COMMA) from++;
  }
  if (bytes[from] !== BRACE_CLOSE) sink.ascii(',');
  sink.append(bytes, from, end);
}

const scratch = new Sink();

/**
 * A stored object with its owners written out; the bytes themselves where there are none. `head` is
 * the kind's head length. The result is good until the next call.
 */
export function shownBytes(bytes: Buffer, start: number, end: number, head: number): Buffer {
  const cut = start + head;
  if (!isPacked(bytes, cut)) return bytes.subarray(start, end);
  scratch.length = 0;
  scratch.append(bytes, start, cut);
  const next = appendManaged(scratch, bytes, cut);
  scratch.append(bytes, next, end);
  return scratch.bytes.subarray(0, scratch.length);
}

/** Writes the owners into the object, first of its metadata: there readers look for them. */
export function setManaged(object: JsonObject, managed: Managed): void {
  setPacked(object, packManaged(managed));
}

export function setPacked(object: JsonObject, packed: string | JsonValue[] | undefined): void {
  const { managedFields, ...metadata } = objectAt(object, 'metadata') ?? {};
  if (packed === managedFields) return;
  object['metadata'] = packed === undefined ? metadata : { managedFields: packed, ...metadata };
}

/** An object as the API shows it, from one as it is kept. */
export function shownObject(object: JsonObject): JsonObject {
  const metadata = objectAt(object, 'metadata');
  const packed = metadata?.['managedFields'];
  if (typeof packed !== 'string') return object;
  return { ...object, metadata: { ...metadata, managedFields: shownManaged(packed) } };
}

/**
 * Templates of managedFields in a store: each is kept under a key of its own before the first
 * object that refers to it, and read again when the store is opened.
 */
import {
  restoreTemplate,
  templateOf,
  templateRecord,
} from '@megaplane/machinery/apply/field-templates';
import { parseJson } from '@megaplane/machinery/json-text';
import { isPacked, packedEnd } from './shown-fields.ts';

/** Keys of templates: outside of every resource. */
export const TEMPLATES_PREFIX = '/megaplane/managedfields/';
/** The end of the range of keys: '0' is the byte after '/'. */
const PREFIX_END = '/megaplane/managedfields0';
/** Kind and version of an object, which come before its metadata, are no longer than this. */
const HEAD_BYTES_MAX = 200;
const OPEN_LENGTH = '"managedFields":"'.length;
const ID_LENGTH = 12;
const COMMA = 0x2c;
const QUOTE = 0x22;
const BRACE_OPEN = 0x7b;

export const TEMPLATES_START: Buffer = Buffer.from(TEMPLATES_PREFIX);
export const TEMPLATES_END: Buffer = Buffer.from(PREFIX_END);

/** Writes one record, whatever is there; false where that was refused. */
export type KeepRecord = (key: Buffer, value: Buffer) => boolean;

export class TemplateKeeper {
  readonly #kept = new Set<string>();
  readonly #last: Buffer = Buffer.alloc(ID_LENGTH);

  /** Takes in a record that was found under a key of the range. */
  restore(id: string, value: string): void {
    if (restoreTemplate(id, parseJson(value))) this.#kept.add(id);
  }

  /** Keeps the templates that the object in `value` refers to, as far as they are new. */
  keep(value: Buffer, write: KeepRecord): void {
    const at = metadataAt(value);
    if (at < 0 || !isPacked(value, at)) return;
    // most objects of a kind have the entry that the one before had, and no other
    if (this.#isLast(value, at + OPEN_LENGTH)) return;
    const end = packedEnd(value, at) - 1;
    for (let from = at + OPEN_LENGTH; from < end; from = afterComma(value, from, end)) {
      const id = value.utf8Slice(from, from + ID_LENGTH);
      if (this.#kept.has(id)) {
        value.copy(this.#last, 0, from, from + ID_LENGTH);
        continue;
      }
      const template = templateOf(id);
      if (template === undefined) continue;
      const record = Buffer.from(JSON.stringify(templateRecord(template)));
      if (write(Buffer.from(TEMPLATES_PREFIX + id), record)) this.#kept.add(id);
    }
  }

  #isLast(value: Buffer, from: number): boolean {
    const last = this.#last;
    let at = from;
    for (let index = 0; index < ID_LENGTH; index++) if (value[at++] !== last[index]) return false;
    while (value[at] !== QUOTE) if (value[at++] === COMMA) return false;
    return true;
  }
}

/** Where the first member of metadata begins: after the second brace. */
function metadataAt(value: Buffer): number {
  const end = Math.min(value.length, HEAD_BYTES_MAX);
  for (let at = 1; at < end; at++) if (value[at] === BRACE_OPEN) return at + 1;
  return -1;
}

function afterComma(value: Buffer, from: number, end: number): number {
  const comma = value.indexOf(COMMA, from + ID_LENGTH);
  return comma < 0 || comma >= end ? end : comma + 1;
}

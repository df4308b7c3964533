// data plane
/**
 * Rows of tables that are kept: all but their ages, which are made anew whenever a row is shown.
 *
 *   ages u8, then of each: where it stands in the text u16, since when f64 in ms; then the text
 */
import { humanDuration, LATER, MARK, marks } from '@megaplane/machinery/printing-age';
import { rowOpening } from '@megaplane/machinery/printing';
import type { Printer } from '@megaplane/machinery/printing-columns';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Sink } from '../sink/sink.ts';

const AGE_BYTES = 10;
const AGES_MAX = 8;
/** As a mark stands in JSON. */
const MARK_TEXT: string = JSON.stringify(MARK).slice(1, -1);

/** The row of an object up to its `object`, ready to be kept; null where it cannot be. */
export function packRow(printer: Printer, object: JsonObject): Buffer | null {
  const before = marks.made;
  // texts, and between them times
  const parts = rowOpening(printer.row(object, LATER)).split(MARK_TEXT);
  const ages = marks.made - before;
  // more of them came with the object's own texts
  if (parts.length !== 2 * ages + 1 || ages > AGES_MAX) return null;
  const head = Buffer.alloc(1 + AGE_BYTES * ages);
  head[0] = ages;
  const texts: Buffer[] = [head];
  let length = 0;
  for (let index = 0; index < parts.length; index += 2) {
    const text = Buffer.from(parts[index] ?? '');
    texts.push(text);
    length += text.length;
    if (index + 1 === parts.length) break;
    if (length > 0xffff) return null;
    head.writeUInt16LE(length, 1 + AGE_BYTES * (index >> 1));
    head.writeDoubleLE(Number(parts[index + 1]), 3 + AGE_BYTES * (index >> 1));
  }
  return Buffer.concat(texts);
}

/** Appends what was packed, with its ages at `nowMs`. */
export function appendRow(sink: Sink, packed: Buffer, nowMs: number): void {
  const ages = packed[0]!;
  const start = 1 + AGE_BYTES * ages;
  let from = start;
  for (let index = 0; index < ages; index++) {
    const at = 1 + AGE_BYTES * index;
    const to = start + packed.readUInt16LE(at);
    sink.append(packed, from, to);
    sink.ascii(humanDuration(nowMs - packed.readDoubleLE(at + 2)));
    from = to;
  }
  sink.append(packed, from, packed.length);
}

/**
 * What a write made of a shape: the bytes to store, with holes.
 *
 * A template is found by rehearsal. The write path is run on the same shape with markers in the
 * holes, values that occur nowhere else; where a marker turns up in the result, its hole goes.
 */
import { ownBytes } from '@megaplane/base/bytes';
import { timeText } from '@megaplane/machinery/apply/managed-fields';
import type { Sink } from '../sink/sink.ts';
import {
  ADDRESS,
  BASE36,
  HOST,
  MARK,
  MESSAGE,
  MOMENT,
  NAME,
  NODE,
  ORDINAL,
  PARTNER,
  REVISION,
  TIME,
  UUID,
  VOLUME,
  type Shape,
} from './shape.ts';

/** Values of a write that are drawn while it runs. */
export interface Drawn {
  /** Random uids, in the order in which they were drawn. */
  readonly uuids: readonly string[];
  /** Suffixes of generated names, likewise. */
  readonly suffixes: readonly string[];
}

/** Holes beyond those of the shape: drawn values, numbered from here on. */
const UUID_FIRST = 100;
const SUFFIX_FIRST = 120;
const DRAWN_MAX = 8;
/** Times whose text is kept. */
const TIMES_MAX = 4096;

/**
 * The longest name that is a label, a label's value and a host name too: what is good for it is
 * good for every name that `isPlainName` lets pass.
 */
export const NAME_MARKER: string = `zq0-${'name-marker-0'.repeat(3)}-z9qx7jv`.padEnd(63, 'k');
const TIME_MARKER_SECONDS = 978_310_861;
export const REVISION_MARKER = '987654321012345';
const ORDINAL_MARKER = 706_050_403_020_100;

/** Names that stand for each other in every rule of the API. */
export function isPlainName(name: string): boolean {
  return name.length <= 63 && /^[a-z](?:[a-z0-9-]*[a-z0-9])?$/.test(name);
}

/** The values of one shape's holes. */
export interface Values {
  readonly kinds: Uint8Array;
  readonly seconds: Float64Array;
  readonly texts: readonly string[];
}

/** Markers for each hole of a shape, in the order that its values have. */
export function markersOf(shape: Shape): Values {
  const texts: string[] = [];
  const seconds = new Float64Array(shape.holes);
  for (let hole = 0; hole < shape.holes; hole++) {
    const rank = shape.rankOf(hole);
    seconds[hole] = TIME_MARKER_SECONDS + rank;
    texts.push(markerText(shape.kinds[hole] ?? 0, rank));
  }
  return { kinds: shape.kinds.slice(0, shape.holes), seconds, texts };
}

function markerText(kind: number, rank: number): string {
  if (kind === UUID) return `0f0f0f0f-${String(1000 + rank)}-4aaa-8bbb-0c0c0c0c0c0c`;
  if (kind === ADDRESS) return `203.0.113.${100 + rank}`;
  if (kind === NAME) return NAME_MARKER;
  if (kind === MESSAGE) return `A message (no. ${100 + rank}): 50% of <nothing> & more`;
  if (kind === NODE) return `zq8-node-marker-${100 + rank}.x7`;
  if (kind === PARTNER) return `zq7-partner-marker-${100 + rank}.x8`;
  if (kind === HOST) return `zq6-host-marker-${100 + rank}`;
  if (kind === ORDINAL) return String(ORDINAL_MARKER + rank);
  if (kind === MOMENT) return `2001-02-03T04:05:06.${987_600 + rank}Z`;
  if (kind === VOLUME) return `kube-api-access-${volumeLetters(rank)}`;
  return kind === REVISION ? REVISION_MARKER : '';
}

function volumeLetters(rank: number): string {
  const letters = 'bcdfghjklmnpqrst';
  return `zw${letters[rank >> 4] ?? ''}x${letters[rank & 15] ?? ''}`;
}

/** What a rehearsal draws. */
export const MARKERS_DRAWN: Drawn = {
  uuids: Array.from({ length: DRAWN_MAX }, (_, n) => `f1f1f1f1-${1000 + n}-4ccc-9ddd-0e0e0e0e0e0e`),
  suffixes: ['zx9w2', 'zx9w4', 'zx9w5', 'zx9w6', 'zx9w7', 'zx9w8', 'zx9w9', 'zx9wz'],
};

const timeTexts = new Map<number, string>();

/** As it is written; many writes are of few seconds. */
function timeTextOf(seconds: number): string {
  let text = timeTexts.get(seconds);
  if (text !== undefined) return text;
  text = timeText(seconds);
  if (timeTexts.size >= TIMES_MAX) timeTexts.clear();
  timeTexts.set(seconds, text);
  return text;
}

/** A hole's value as it stands in a text. */
function formOf(form: number, hole: number, values: Values): string {
  if (form === TIME) return timeTextOf(values.seconds[hole] ?? 0);
  if (form === BASE36) return (values.seconds[hole] ?? 0).toString(36);
  return values.texts[hole] ?? '';
}

/** The text that a part of a shape stands for, with these values in its holes. */
export function expand(bytes: Buffer, values: Values): Buffer {
  let text = '';
  let from = 0;
  for (let at = bytes.indexOf(MARK); at >= 0; at = bytes.indexOf(MARK, at + 3)) {
    text += bytes.latin1Slice(from, at);
    text += formOf(bytes[at + 1] ?? 0, (bytes[at + 2] ?? 0) - 0x20, values);
    from = at + 3;
  }
  return Buffer.from(text + bytes.toString('latin1', from), 'latin1');
}

interface Piece {
  /** Bytes before the hole. */
  readonly literal: Buffer;
  readonly form: number;
  /** -1 in the last piece, which has no hole. */
  readonly hole: number;
}

interface Found {
  readonly at: number;
  readonly text: string;
  readonly form: number;
  readonly hole: number;
}

/** Bytes with holes. */
export class Template {
  readonly #pieces: readonly Piece[];

  private constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces;
  }

  /** Finds the markers in what a rehearsal gave. */
  static of(bytes: Buffer, markers: Values): Template {
    const found = findMarkers(bytes, markers).sort((left, right) => left.at - right.at);
    const pieces: Piece[] = [];
    let from = 0;
    for (const { at, text, form, hole } of found) {
      if (at < from) continue;
      pieces.push({ literal: ownBytes(bytes, from, at), form, hole });
      from = at + text.length;
    }
    pieces.push({ literal: ownBytes(bytes, from, bytes.length), form: 0, hole: -1 });
    return new Template(pieces);
  }

  /** Appends the bytes with these values. All values are ASCII (see `shape.ts`). */
  fill(sink: Sink, values: Values, drawn: Drawn): void {
    for (const { literal, form, hole } of this.#pieces) {
      sink.append(literal);
      if (hole < 0) return;
      const text =
        hole >= SUFFIX_FIRST
          ? drawn.suffixes[hole - SUFFIX_FIRST]
          : hole >= UUID_FIRST
            ? drawn.uuids[hole - UUID_FIRST]
            : formOf(form, hole, values);
      sink.ascii(text ?? '');
    }
  }
}

function findMarkers(bytes: Buffer, markers: Values): Found[] {
  const found: Found[] = [];
  const find = (text: string, form: number, hole: number): void => {
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) {
      found.push({ at, text, form, hole });
    }
  };
  for (const [hole, kind] of markers.kinds.entries()) {
    find(formOf(kind, hole, markers), kind, hole);
    if (kind === TIME) find(formOf(BASE36, hole, markers), BASE36, hole);
  }
  MARKERS_DRAWN.uuids.forEach((text, index) => find(text, UUID, UUID_FIRST + index));
  MARKERS_DRAWN.suffixes.forEach((text, index) => find(text, UUID, SUFFIX_FIRST + index));
  return found;
}

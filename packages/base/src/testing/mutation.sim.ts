// shell: reads corpora
/**
 * For fuzzers: inputs made from a corpus. A line of a corpus is a text of JSON; bytes are its
 * characters below U+0100. What is made is the same for the same seed.
 */
import { readFileSync } from 'node:fs';
import type { Random } from '../random/random.ts';

/** Words that programs stumble over, whatever the language. */
const WORDS: readonly string[] = [
  ...['constructor', '__proto__', 'toString', 'hasOwnProperty', 'null', 'NaN', '-0', '1e400'],
  ...['9007199254740993', '18446744073709551616', '-9223372036854775809', '0x7fffffff', '1.0'],
  ...['\\ud800', '\\u0000', '\u0000', '\u0001', '\u007f', '\u00c0\u0080', '\u00ef\u00bb\u00bf'],
  ...['{', '}', '[', ']', '(', ')', '"', "'", '\\', ',', ':', '/', '%', '$', '.', '*', '&a', '\n'],
  ...[' ', '\t', '\r\n', '{{', '}}', '~1', '~0', '!', '=', '==', '<', '|', '?', '#', '---\n'],
];

/** The inputs of a corpus. */
export function readCorpus(path: string): readonly Buffer[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter(Boolean).map((line) => Buffer.from(JSON.parse(line) as string, 'latin1'));
}

/** An input made of those of a corpus, of at most so many bytes. */
export function mutated(corpus: readonly Buffer[], random: Random, bytesMax: number): Buffer {
  let made = pick(corpus, random);
  const isLarge = random.below(4) === 0;
  for (let steps = random.below(4) + 1; steps > 0; steps--) {
    made = changed(made, corpus, random).subarray(0, bytesMax);
  }
  return isLarge ? grown(made, random, bytesMax) : made;
}

function pick<T>(all: readonly T[], random: Random): T {
  const one = all[random.below(all.length)];
  if (one === undefined) throw new Error('an empty corpus');
  return one;
}

/** Two places in order. */
function span(bytes: Buffer, random: Random): readonly [number, number] {
  const start = random.below(bytes.length + 1);
  const length = random.below(4) === 0 ? bytes.length : random.below(24);
  return [start, Math.min(bytes.length, start + length)];
}

function changed(bytes: Buffer, corpus: readonly Buffer[], random: Random): Buffer {
  const [start, end] = span(bytes, random);
  const before = bytes.subarray(0, start);
  const after = bytes.subarray(end);
  switch (random.below(7)) {
    case 0:
      return Buffer.concat([before, Buffer.from([random.below(256)]), after]);
    case 1:
      return Buffer.concat([before, Buffer.from(pick(WORDS, random), 'latin1'), after]);
    case 2:
      return Buffer.concat([before, after]);
    case 3: {
      const other = pick(corpus, random);
      const [from, to] = span(other, random);
      return Buffer.concat([before, other.subarray(from, to), after]);
    }
    case 4: {
      const piece = bytes.subarray(start, end);
      return Buffer.concat([before, ...Array<Buffer>(random.below(8) + 1).fill(piece), after]);
    }
    case 5: {
      // what stands in one place, in another
      const at = random.below(after.length + 1);
      const piece = bytes.subarray(start, end);
      return Buffer.concat([before, after.subarray(0, at), piece, after.subarray(at)]);
    }
    default: {
      const flipped = Buffer.from(bytes);
      const byte = flipped[start];
      if (byte !== undefined) flipped[start] = byte ^ (1 << random.below(8));
      return flipped;
    }
  }
}

/** A piece of it many times over: beside itself, or within itself with another behind. */
function grown(bytes: Buffer, random: Random, bytesMax: number): Buffer {
  const start = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, start + 1 + random.below(random.below(2) === 0 ? 6 : 60));
  const piece = bytes.subarray(start, end);
  if (piece.length === 0) return bytes;
  const size = 2 ** (8 + random.below(15));
  const rest = bytes.length - piece.length;
  const isNested = random.below(3) === 0;
  const closing = isNested ? closingOf(piece) : Buffer.alloc(0);
  const room = Math.min(size, bytesMax - rest);
  const times = Math.max(1, Math.floor(room / (piece.length + closing.length)));
  const numbered = !isNested && random.below(2) === 0;
  const middle = numbered
    ? numberedCopies(piece, times)
    : Buffer.alloc(piece.length * times, piece);
  const tail = closing.length === 0 ? closing : Buffer.alloc(closing.length * times, closing);
  const all = Buffer.concat([bytes.subarray(0, start), middle, tail, bytes.subarray(end)]);
  return all.subarray(0, bytesMax);
}

/** Copies that differ: their first letter or digit gives way to their number. */
function numberedCopies(piece: Buffer, times: number): Buffer {
  const text = piece.toString('latin1');
  const at = text.search(/[A-Za-z0-9]/);
  if (at < 0) return Buffer.alloc(piece.length * times, piece);
  const [before, after] = [text.slice(0, at), text.slice(at + 1)];
  const copies: string[] = [];
  let left = piece.length * times;
  for (let index = 0; left > 0; index++) {
    const copy = `${before}${text[at]}${index.toString(36)}${after}`;
    copies.push(copy);
    left -= copy.length;
  }
  return Buffer.from(copies.join(''), 'latin1');
}

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['[', ']'],
  ['(', ')'],
]);

function closingOf(piece: Buffer): Buffer {
  const open = Array.from(piece.toString('latin1'), (letter) => CLOSING.get(letter) ?? '');
  return Buffer.from(open.reverse().join(''), 'latin1');
}

/** Blocks of PEM (RFC 1421) in a text, found and left out by the rules of Go's `encoding/pem`. */
import { base64Fault } from '../json/base64.ts';

export interface PemBlock {
  /** `CERTIFICATE`. */
  readonly type: string;
  readonly hasHeaders: boolean;
  readonly bytes: Buffer;
  /** Where the text goes on behind it. */
  readonly end: number;
}

const BEGIN = '-----BEGIN ';
const END = '\n-----END ';
const DASHES = '-----';

/** The first whole block from there on; what is none, or has no base64 in it, is passed over. */
export function nextPemBlock(text: string, from = 0): PemBlock | undefined {
  for (let at = from; ;) {
    const ending = text.indexOf(END, at);
    if (ending < 0) return undefined;
    const block = blockBefore(text, at, ending);
    if (block !== undefined) return block;
    at = ending + END.length;
  }
}

/** All of them. */
export function pemBlocks(text: string): readonly PemBlock[] {
  const found: PemBlock[] = [];
  for (let block = nextPemBlock(text); block !== undefined;) {
    found.push(block);
    block = nextPemBlock(text, block.end);
  }
  return found;
}

/** The block that ends there: a type, headers, base64, the same type again. */
function blockBefore(text: string, from: number, ending: number): PemBlock | undefined {
  const begin = text.lastIndexOf(BEGIN, ending);
  if (begin < from || (begin > from && text[begin - 1] !== '\n')) return undefined;
  const lineEnd = endOfLine(text, begin);
  const first = text.slice(begin + BEGIN.length, lineEnd).trimEnd();
  const last = text.slice(ending + END.length, endOfLine(text, ending + 1)).trimEnd();
  if (!first.endsWith(DASHES) || last !== first) return undefined;
  let at = lineEnd + 1;
  while (at <= ending && text.slice(at, endOfLine(text, at)).includes(':')) {
    at = endOfLine(text, at) + 1;
  }
  const base64 = text.slice(at, Math.max(at, ending)).replaceAll(/[ \t]/g, '');
  if (base64Fault(base64) !== -1) return undefined;
  return {
    type: first.slice(0, -DASHES.length),
    hasHeaders: at > lineEnd + 1,
    bytes: Buffer.from(base64, 'base64'),
    end: endOfLine(text, ending + 1) + 1,
  };
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

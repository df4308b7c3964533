// shell: the clock of the wall
/** The `Date` of answers (RFC 9110, 6.6.1), written once a second for all of them. */
import { fieldBlock } from '../hpack/hpack-encoder.ts';

/** When an answer leaves, as each protocol has it. */
export interface ResponseDate {
  /** A line with its end, for HTTP/1.1. */
  line(): string;
  /** A block of literals, for HTTP/2. */
  block(): Buffer;
}

const NAME = 'date';

/** Follows the clock of this machine. */
export class WallDate implements ResponseDate {
  #second = 0;
  #line = '';
  #block: Buffer = Buffer.alloc(0);

  line(): string {
    this.#follow();
    return this.#line;
  }

  block(): Buffer {
    this.#follow();
    return this.#block;
  }

  #follow(): void {
    const second = Math.floor(Date.now() / 1000);
    if (second === this.#second) return;
    this.#second = second;
    const text = new Date(second * 1000).toUTCString();
    this.#line = `${NAME}: ${text}\r\n`;
    this.#block = fieldBlock([NAME, text]);
  }
}

/** Whether an answer tells its date itself, as one that is passed on does. */
export function hasDate(fields: readonly string[] | undefined): boolean {
  if (fields === undefined) return false;
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === NAME) return true;
  return false;
}

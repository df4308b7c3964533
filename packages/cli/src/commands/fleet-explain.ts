// shell: the work behind `megaplane fleet explain`
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { explainLine } from '@megaplane/fleet/explain';

const EXIT_DONE = 0;
/** A longer line is answered with an error, and skipped to its end. */
const LINE_CHARACTERS_MAX: number = 256 * 1024 * 1024;

/** Answers each line of `input` with one line on `output`, until the end of `input`. */
export async function explain(input: Readable, output: Writable): Promise<number> {
  const lines = new Lines(LINE_CHARACTERS_MAX);
  const decoder = new StringDecoder('utf8');
  for await (const chunk of input) {
    for (const line of lines.push(decoder.write(chunk as Buffer))) await answer(line, output);
  }
  for (const line of lines.push(`${decoder.end()}\n`)) await answer(line, output);
  return EXIT_DONE;
}

async function answer(line: string | undefined, output: Writable): Promise<void> {
  const isBlank = line !== undefined && line.trim() === '';
  if (isBlank) return;
  const tooLong = `a line is longer than ${LINE_CHARACTERS_MAX} characters`;
  const text = line === undefined ? JSON.stringify({ error: tooLong }) : explainLine(line);
  if (!output.write(`${text}\n`) && output.writable) await once(output, 'drain');
}

/** Cuts text into lines; one longer than `charactersMax` comes out as undefined. */
export class Lines {
  readonly #charactersMax: number;
  #parts: string[] = [];
  #characters = 0;

  constructor(charactersMax: number) {
    this.#charactersMax = charactersMax;
  }

  /** The lines that `text` ends. */
  push(text: string): (string | undefined)[] {
    const found: (string | undefined)[] = [];
    const pieces = text.split('\n');
    const rest = pieces.pop() ?? '';
    for (const piece of pieces) {
      this.#add(piece);
      found.push(this.#characters > this.#charactersMax ? undefined : this.#parts.join(''));
      this.#parts = [];
      this.#characters = 0;
    }
    this.#add(rest);
    return found;
  }

  #add(piece: string): void {
    this.#characters += piece.length;
    if (this.#characters > this.#charactersMax) this.#parts = [];
    else if (piece !== '') this.#parts.push(piece);
  }
}

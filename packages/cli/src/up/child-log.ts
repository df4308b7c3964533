// shell: a file, and the time after which it is tried again
/** The file that a child's lines go to. */
import { guarded } from '@megaplane/base/deferred';
import { createWriteStream } from 'node:fs';
import type { WriteStream } from 'node:fs';

/** A disk that was full is asked again so often, when there is something to write. */
export const AGAIN_MS = 5_000;

/**
 * On a full disk the cluster must still be told of, and stopped cleanly: lines are lost then, and
 * the file goes on, with their number, when there is room again.
 */
export class ChildLog {
  readonly #file: string;
  readonly #report: (text: string) => void;
  readonly #nowMs: () => number;
  #stream: WriteStream;
  #failedMs = -Infinity;
  #isFailed = false;
  #lost = 0;

  constructor(
    file: string,
    report: (text: string) => void,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#file = file;
    this.#report = report;
    this.#nowMs = nowMs;
    this.#stream = this.#open();
  }

  write(line: string): void {
    if (this.#isFailed && this.#nowMs() - this.#failedMs >= AGAIN_MS) this.#stream = this.#again();
    if (!this.#stream.writable) this.#lost++;
    else this.#stream.write(`${line}\n`);
  }

  /** Writes what is left and closes the file. */
  end(): void {
    this.#stream.end();
  }

  #open(): WriteStream {
    const stream = createWriteStream(this.#file, { flags: 'a', mode: 0o600 });
    stream.on(
      'error',
      guarded((error) => {
        // One report for a disk that stays full.
        if (this.#lost === 0) this.#report(`its log misses lines from here on: ${error.message}`);
        this.#lost++;
        this.#isFailed = true;
        this.#failedMs = this.#nowMs();
      }),
    );
    return stream;
  }

  #again(): WriteStream {
    this.#isFailed = false;
    const stream = this.#open();
    const lost = this.#lost;
    stream.write(`lines are missing here, ${lost} or more\n`, (error) => {
      if (error === null || error === undefined) this.#lost = 0;
    });
    return stream;
  }
}

/** Progress of work that is counted in bytes, whose total may be known late. */
import { type Progress, progress } from './progress.ts';

const MEBIBYTE = 1024 * 1024;

export class Bytes {
  readonly #label: string;
  #shown: Progress | null = null;
  #total = 0;
  #done = 0;

  constructor(label: string) {
    this.#label = `${label} (MiB)`;
  }

  show(done: number, total: number): void {
    this.#total = Math.max(1, Math.ceil(total / MEBIBYTE));
    this.#done = Math.min(this.#total, Math.floor(done / MEBIBYTE));
    this.#shown ??= progress(this.#label, this.#total);
    this.#shown.show(this.#done);
  }

  finish(): void {
    this.#shown?.finish(this.#total);
    this.#shown = null;
  }
}

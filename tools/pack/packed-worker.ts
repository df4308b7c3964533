/** Threads of the bundled program: their code is a file beside this one, or in the executable. */
import { join } from 'node:path';
import { getAsset, isSea } from 'node:sea';
import { Worker } from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';

/** A thread that runs the entry `name`. */
export class PackedWorker extends Worker {
  constructor(name: string, options: WorkerOptions = {}) {
    if (!isSea()) {
      super(join(import.meta.dirname, `${name}.cjs`), options);
      return;
    }
    // A thread begins with the loader of the executable's own files, as the program did.
    const code = `globalThis.MEGAPLANE_ENTRY = ${JSON.stringify(`${name}.cjs`)};\n`;
    super(code + getAsset('loader.cjs', 'utf8'), { ...options, eval: true });
  }
}

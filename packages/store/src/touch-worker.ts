// shell: the thread that makes memory resident ahead of its first use; see read-ahead.ts
import { workerData } from 'node:worker_threads';
import type { TouchStart } from './read-ahead.ts';

const PAGE_WORDS = 1024;

const { blocks, bytes } = workerData as TouchStart;
let left = bytes;
for (const block of blocks) {
  const words = new Int32Array(block);
  const end = Math.min(words.length, left >> 2);
  // Whoever got here first keeps what it wrote: nothing is changed by an atomic "or 0".
  for (let word = 0; word < end; word += PAGE_WORDS) Atomics.or(words, word, 0);
  left -= end * 4;
}

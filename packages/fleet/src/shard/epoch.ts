// shell: the one file of a shard
/** The epoch of a shard: one more at each start, so that what an earlier life sends is known. */
import { closeSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateDirectory, replacePrivately } from '@megaplane/base/private-file';

const EPOCH_MAX = 2n ** 63n - 1n;

/**
 * Begins a new epoch in `dataDir`, the first one where there is no file yet. It is on the disk when
 * this returns. Throws an `Error` for people where the file says something else than an epoch: one
 * that begins anew would be fenced by its own past.
 */
export function beginEpoch(dataDir: string): bigint {
  makePrivateDirectory(dataDir);
  const file = join(dataDir, 'epoch');
  const before = readEpoch(file);
  if (before >= EPOCH_MAX) throw new Error(`${file}: there is no epoch after ${before}`);
  const epoch = before + 1n;
  replacePrivately(file, `${epoch}\n`);
  const directory = openSync(dataDir, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
  return epoch;
}

function readEpoch(file: string): bigint {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0n;
    throw error;
  }
  if (!/^[1-9]\d{0,18}\n?$/.test(text)) {
    throw new Error(
      `${file} holds no epoch (a number of one line). Write a number there that is above all ` +
        'epochs this shard has had: providers know the last one',
    );
  }
  return BigInt(text.trim());
}

// shell: snapshot files: written, and looked at
import { turnOver } from '@megaplane/base/deferred';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, renameSync, rmSync, writeSync } from 'node:fs';
import { crc32c } from '@megaplane/base/crc32c';
import type { Store } from '@megaplane/store/store';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { Backup } from './backup.ts';
import { BboltFile } from '../bbolt/reader.ts';
import { PUT_KEY_BYTES, TOMBSTONE_KEY_BYTES } from '../codec/backend-record.ts';
import type { Remote } from '../client/remote.ts';
import { openPrivately } from '@megaplane/base/private-file';

const PAUSE_ENTRIES = 4096;

/** Bytes done, and in all; 0 in all while that is not known. */
export type OnProgress = (done: number, total: number) => void;

async function pause(): Promise<void> {
  await turnOver();
}

/** A file that gets its name when it is whole, and leaves nothing when it does not become so. */
class WholeFile {
  readonly #path: string;
  readonly #part: string;
  readonly #fd: number;
  bytes = 0;

  constructor(path: string) {
    if (existsSync(path)) throw new Error(`${path} is there already; choose another name`);
    this.#path = path;
    this.#part = `${path}.part`;
    this.#fd = openPrivately(this.#part);
  }

  write(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at);
    this.bytes += bytes.length;
  }

  finish(): void {
    fsyncSync(this.#fd);
    closeSync(this.#fd);
    renameSync(this.#part, this.#path);
  }

  abandon(): void {
    closeSync(this.#fd);
    rmSync(this.#part, { force: true });
  }
}

/** Takes a running server's snapshot into a file. Returns its bytes. */
export async function saveRemote(
  remote: Remote,
  path: string,
  onProgress: OnProgress,
): Promise<number> {
  const file = new WholeFile(path);
  try {
    await remote.snapshot((piece, remaining) => {
      file.write(piece);
      onProgress(file.bytes, file.bytes + remaining);
    });
    file.finish();
    return file.bytes;
  } catch (error) {
    file.abandon();
    throw error;
  }
}

/** Writes a store that is open in this process, with its checksum. Returns its bytes. */
export async function saveStore(
  store: Store,
  term: number,
  path: string,
  onProgress: OnProgress,
): Promise<number> {
  const file = new WholeFile(path);
  const backup = new Backup(store, term, performance.now());
  const hash = createHash('sha256');
  try {
    while (!backup.step()) await pause();
    for (let piece = backup.next(); piece !== null; piece = backup.next()) {
      hash.update(piece);
      file.write(piece);
      onProgress(file.bytes, backup.size);
      await pause();
    }
    file.write(hash.digest());
    file.finish();
    return file.bytes;
  } catch (error) {
    file.abandon();
    throw error;
  } finally {
    backup.end();
  }
}

/** What `etcdutl snapshot status` tells. */
export interface SnapshotStatus {
  readonly hash: number;
  readonly revision: number;
  readonly totalKey: number;
  readonly totalSize: number;
  readonly version: string;
}

/** Reads all of a snapshot file; throws when it is damaged. */
export async function snapshotStatus(
  path: string,
  onProgress: OnProgress,
): Promise<SnapshotStatus> {
  const file = new BboltFile(path);
  try {
    if (file.hasChecksum) {
      for (const done of file.checkSum()) {
        onProgress(done, file.bytes * 2);
        await pause();
      }
    }
    return await readAll(file, (done) => onProgress(file.bytes + done, file.bytes * 2));
  } finally {
    file.close();
  }
}

async function readAll(
  file: BboltFile,
  onProgress: (done: number) => void,
): Promise<SnapshotStatus> {
  let hash = 0;
  /** Keys that the file leaves alive, as etcdutl counts them. */
  const live = new Set<string>();
  let entries = 0;
  let revision = 0;
  let bytes = 0;
  for (const bucket of file.names) {
    hash = crc32c(hash, Buffer.from(bucket), 0, bucket.length);
    for (const [key, value] of file.entries(bucket)) {
      hash = crc32c(hash, key, 0, key.length);
      hash = crc32c(hash, value, 0, value.length);
      if (bucket === 'key') {
        const record = recordOf(file.path, key, value);
        revision = record.revision;
        if (record.isTombstone) live.delete(record.name);
        else live.add(record.name);
      }
      bytes += key.length + value.length;
      if (++entries % PAUSE_ENTRIES !== 0) continue;
      onProgress(Math.min(bytes, file.bytes));
      await pause();
    }
  }
  const version = file.value('meta', 'storageVersion')?.toString('latin1') ?? '';
  return { hash, revision, totalKey: live.size, totalSize: file.bytes, version };
}

function recordOf(path: string, key: Buffer, value: Buffer) {
  const isTombstone = key.length === TOMBSTONE_KEY_BYTES;
  const reader = new ProtobufReader().reset(value, 0, value.length);
  let name = '';
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === WIRE_BYTES) {
      reader.chunk();
      name = value.toString('latin1', reader.chunkStart, reader.chunkEnd);
    } else reader.skip();
  }
  if ((key.length !== PUT_KEY_BYTES && !isTombstone) || reader.failure !== FAILURE_NONE) {
    throw new Error(`${path} is damaged: ${key.toString('hex')} is no record; use another copy`);
  }
  return { revision: Number(key.readBigUInt64BE(0)), isTombstone, name };
}

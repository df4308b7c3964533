// shell: the data directory of an etcd that was stopped
/**
 * etcd keeps keys in `member/snap/db` and writes them there a little later than to its log,
 * `member/wal`. After a clean stop the file has everything; after a kill it may lack the last
 * writes, which would be lost without a word. So the log is looked through for writes that the
 * file does not have.
 *
 *   log record: i64 length (low 56 bits; pad in bits 56 to 58 when negative), walpb.Record, padding
 *   walpb.Record: type 1 (2 = entry), crc 2, data 3; raftpb.Entry: type 1, term 2, index 3, data 4
 *   InternalRaftRequest: header 100; put 4, delete_range 5, txn 6, compaction 7
 */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { BboltFile } from '../bbolt/reader.ts';

const RECORD_ENTRY = 2;
const HEADER_FIELD = 100;
const WRITE_FIELDS: readonly number[] = [4, 5, 6, 7];

/**
 * The database file of a source that may be a directory of etcd; a file is taken as it is. Throws
 * an Error that says what to do when there is none, or when it lacks writes.
 */
export function databaseOf(source: string, ignoresLog: boolean): string {
  if (!existsSync(source)) throw new Error(`there is no ${source}`);
  if (!statSync(source).isDirectory()) return source;
  const file = join(source, 'member', 'snap', 'db');
  if (!existsSync(file)) {
    throw new Error(`${source} is no data directory of etcd: there is no member/snap/db in it`);
  }
  if (ignoresLog) return file;
  const missing = missingWrites(file, join(source, 'member', 'wal'));
  if (missing === 0) return file;
  throw new Error(
    `the log in ${source} has ${missing} writes that its database file lacks: etcd was not ` +
      'stopped cleanly, or runs. Stop it with SIGTERM (start it once more for that), take a ' +
      'snapshot with "etcdctl snapshot save", or use --ignore-wal to go without these writes',
  );
}

function missingWrites(file: string, wal: string): number {
  const database = new BboltFile(file);
  const applied = database.value('meta', 'consistent_index');
  database.close();
  const appliedIndex = applied?.length === 8 ? applied.readBigUInt64BE(0) : 0n;
  if (!existsSync(wal)) return 0;
  let missing = 0;
  const names = readdirSync(wal).filter((name) => name.endsWith('.wal'));
  for (const name of names.sort()) {
    for (const index of writesOf(readFileSync(join(wal, name)))) {
      if (BigInt(index) > appliedIndex) missing++;
    }
  }
  return missing;
}

/** Indexes of the entries of one log file that change keys; ends where the file makes no sense. */
function* writesOf(bytes: Buffer): Generator<number> {
  const reader = new ProtobufReader();
  for (let at = 0; at + 8 <= bytes.length;) {
    const word = bytes.readBigInt64LE(at);
    const length = Number(BigInt.asUintN(56, word));
    const pad = word < 0n ? Number((BigInt.asUintN(64, word) >> 56n) & 7n) : 0;
    const start = at + 8;
    if (length === 0 || start + length > bytes.length) return;
    reader.reset(bytes, start, start + length);
    let type = 0;
    let [from, to] = [start, start];
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) type = reader.int64();
      else if (reader.field === 3 && reader.wireType === 2) {
        reader.chunk();
        [from, to] = [reader.chunkStart, reader.chunkEnd];
      } else reader.skip();
    }
    const index = type === RECORD_ENTRY ? writeIndex(bytes, from, to) : 0;
    if (index > 0) yield index;
    at = start + length + pad;
  }
}

/** The entry's index when it may change keys (a transaction may not), else 0. */
function writeIndex(bytes: Buffer, start: number, end: number): number {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let type = 0;
  let index = 0;
  let [from, to] = [start, start];
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === 0) type = reader.int64();
    else if (reader.field === 3 && reader.wireType === 0) index = reader.int64();
    else if (reader.field === 4 && reader.wireType === 2) {
      reader.chunk();
      [from, to] = [reader.chunkStart, reader.chunkEnd];
    } else reader.skip();
  }
  return type === 0 && changesKeys(bytes, from, to) ? index : 0;
}

function changesKeys(bytes: Buffer, start: number, end: number): boolean {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let hasHeader = false;
  let isWrite = false;
  while (reader.next()) {
    if (reader.field === HEADER_FIELD) hasHeader = true;
    if (WRITE_FIELDS.includes(reader.field)) isWrite = true;
    reader.skip();
  }
  return reader.failure === 0 && hasHeader && isWrite;
}

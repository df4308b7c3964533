// shell: looks through a data directory without opening it as a store
/**
 * Reads every file, frame and record and says what is whole, what is torn and what is damaged.
 * Nothing is changed; `repair` then cuts what cannot be read, and keeps a copy of what it cuts.
 */
import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
} from 'node:fs';
import { join } from 'node:path';
import { FLAG_LEASE, HEADER_BYTES, KEY_BYTES_MAX } from '../record/arenas.ts';
import {
  CUT_SHORT,
  FILE_HEADER_BYTES,
  FLAG_GOES_ON,
  FORMAT_VERSION,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FRAME_OK,
  KIND_SNAPSHOT,
  checkFrame,
  decodeFileHeader,
  isCutShort,
  paddingAt,
} from '../wal/frame.ts';
import { lockDirectory } from '../wal/lock.ts';
import { isLogFile, logName, snapshotName } from '../wal/log-files.ts';

const PIECE_BYTES: number = 3 * (FRAME_BYTES_MAX + FRAME_HEADER_BYTES);

export interface FileReport {
  readonly name: string;
  readonly bytes: number;
  readonly frames: number;
  readonly records: number;
  /** Highest revision of a record, 0 without records. */
  readonly lastRevision: number;
  /** Where the first byte lies that cannot be used; -1 when all is whole. */
  readonly badAt: number;
  /** What is wrong there; '' when nothing is. */
  readonly fault: string;
  /** The end of the last segment, as a crash leaves it: the next start cuts it by itself. */
  readonly isTorn: boolean;
}

export interface VerifyReport {
  readonly files: readonly FileReport[];
  /** What is wrong with the directory as a whole. */
  readonly faults: readonly string[];
  readonly records: number;
  readonly lastRevision: number;
}

interface Scan {
  frames: number;
  records: number;
  lastRevision: number;
  chain: number;
  badAt: number;
  fault: string;
}

/** True when a start would go on without losing anything that was acknowledged. */
export function isSound({ files, faults }: VerifyReport): boolean {
  return faults.length === 0 && files.every(({ fault, isTorn }) => fault === '' || isTorn);
}

/**
 * Takes the directory's lock, so that no server writes meanwhile; throws when it is held, or when
 * there is no store. `onProgress` is told bytes done and in all, now and then.
 */
export async function verifyDirectory(
  dir: string,
  onProgress: (done: number, total: number) => void,
): Promise<VerifyReport> {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  if (!names.some((name) => isLogFile(name) !== null)) {
    const hint = names.includes('member') ? ' (it is one of etcd; see "store import")' : '';
    throw new Error(`${dir} holds no store of this program${hint}`);
  }
  const lock = lockDirectory(dir);
  try {
    return await new Verifier(dir, names, onProgress).run();
  } finally {
    lock.release();
  }
}

class Verifier {
  readonly #dir: string;
  readonly #names: readonly string[];
  readonly #onProgress: (done: number, total: number) => void;
  #done = 0;

  constructor(
    dir: string,
    names: readonly string[],
    onProgress: (done: number, total: number) => void,
  ) {
    this.#dir = dir;
    this.#names = names;
    this.#onProgress = onProgress;
  }

  async run(): Promise<VerifyReport> {
    const { needed, faults } = this.#needed();
    const sizes = needed.map((name) => sizeOf(join(this.#dir, name)));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const files: FileReport[] = [];
    let chain = -1;
    for (const [index, name] of needed.entries()) {
      const isLast = index === needed.length - 1 && name.startsWith('log-');
      const scan = await this.#file(name, sizes[index] ?? 0, chain, total);
      const bytes = sizes[index] ?? 0;
      const { frames, records, lastRevision, badAt, fault } = scan;
      const isTorn = fault !== '' && isLast && !this.#goesOnAfter(name, badAt, bytes);
      files.push({ name, bytes, frames, records, lastRevision, badAt, fault, isTorn });
      chain = name.startsWith('log-') ? scan.chain : -1;
    }
    const records = files.reduce((sum, file) => sum + file.records, 0);
    const lastRevision = Math.max(1, ...files.map((file) => file.lastRevision));
    return { files, faults, records, lastRevision };
  }

  /** The newest snapshot and the segments from it on, as a start reads them. */
  #needed(): { readonly needed: string[]; readonly faults: string[] } {
    const numbered = this.#names.filter((name) => isLogFile(name) !== null).sort();
    const snapshots = numbered.filter((name) => name.startsWith('snapshot-'));
    const newest = isLogFile(snapshots.at(-1) ?? '') ?? 0;
    const segments = numbered
      .filter((name) => name.startsWith('log-') && (isLogFile(name) ?? 0) >= newest)
      .map((name) => isLogFile(name) ?? 0);
    const faults: string[] = [];
    for (const [index, segment] of segments.entries()) {
      if (segment === newest + index) continue;
      faults.push(`${logName(newest + index)} is missing, but ${logName(segment)} is there`);
      break;
    }
    const snapshot = snapshots.length > 0 ? [snapshotName(newest)] : [];
    return { needed: [...snapshot, ...segments.map((segment) => logName(segment))], faults };
  }

  async #file(name: string, size: number, chain: number, total: number): Promise<Scan> {
    const scan: Scan = { frames: 0, records: 0, lastRevision: 0, chain: 0, badAt: -1, fault: '' };
    const fd = openSync(join(this.#dir, name), 'r');
    try {
      const head = Buffer.alloc(FILE_HEADER_BYTES);
      readSync(fd, head, 0, head.length, 0);
      const header = decodeFileHeader(head);
      const fault = headerFault(header, name, chain);
      if (header === null || fault !== '') return { ...scan, badAt: 0, fault };
      scan.chain = name.startsWith('log-') ? header.chain : 0;
      await this.#frames(fd, size, scan, total);
      const isSnapshot = header.kind === KIND_SNAPSHOT;
      if (isSnapshot && scan.fault === '' && isCutShort(header, scan.chain)) {
        return { ...scan, badAt: size, fault: CUT_SHORT };
      }
      return scan;
    } finally {
      this.#done += size;
      closeSync(fd);
    }
  }

  async #frames(fd: number, size: number, scan: Scan, total: number): Promise<void> {
    const piece = Buffer.alloc(PIECE_BYTES);
    let group: Buffer[] = [];
    let groupAt = 0;
    for (let at = FILE_HEADER_BYTES; at < size;) {
      const count = readSync(fd, piece, 0, piece.length, at);
      let from = 0;
      while (from < count) {
        const padding = paddingAt(piece, from, count, at + from);
        from += padding;
        if (padding > 0) continue;
        // The frame goes on behind this piece: it is read again from its start.
        const isCut = count - from < FRAME_HEADER_BYTES + FRAME_BYTES_MAX && at + count < size;
        if (isCut && from > 0) break;
        if (checkFrame(piece, from, count, scan.chain) !== FRAME_OK) {
          scan.badAt = group.length > 0 ? groupAt : at + from;
          scan.fault = `no whole frame follows at byte ${at + from}`;
          return;
        }
        if (group.length === 0) groupAt = at + from;
        const end = from + FRAME_HEADER_BYTES + piece.readUInt32LE(from + 16);
        const goesOn = (piece.readUInt32LE(from + 48) & FLAG_GOES_ON) !== 0;
        const records = from + FRAME_HEADER_BYTES + piece.readUInt32LE(from + 20);
        group.push(Buffer.from(piece.subarray(records, end)));
        scan.chain = piece.readUInt32LE(from + 4);
        scan.frames++;
        if (!goesOn) {
          const fault = addRecords(Buffer.concat(group), piece.readDoubleLE(from + 32), scan);
          if (fault !== '') {
            scan.badAt = groupAt;
            scan.fault = fault;
            return;
          }
          group = [];
        }
        from = end;
      }
      at += from;
      this.#onProgress(this.#done + at, total);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (group.length === 0) return;
    scan.badAt = groupAt;
    scan.fault = 'the file ends in the middle of a group of frames';
  }

  /** Does a whole frame stand somewhere behind the bad place? Then it is damage, no torn end. */
  #goesOnAfter(name: string, badAt: number, size: number): boolean {
    const fd = openSync(join(this.#dir, name), 'r');
    try {
      const piece = Buffer.alloc(PIECE_BYTES);
      const step = PIECE_BYTES - FRAME_BYTES_MAX - FRAME_HEADER_BYTES;
      for (let at = badAt + 16; at < size; at += step) {
        const count = readSync(fd, piece, 0, piece.length, at);
        for (let from = 0; from < Math.min(count, step); from += 16) {
          if (checkFrame(piece, from, count, -1) === FRAME_OK) return true;
        }
      }
      return false;
    } finally {
      closeSync(fd);
    }
  }
}

function sizeOf(path: string): number {
  const fd = openSync(path, 'r');
  const { size } = fstatSync(fd);
  closeSync(fd);
  return size;
}

function headerFault(
  header: ReturnType<typeof decodeFileHeader>,
  name: string,
  chain: number,
): string {
  if (header === null) return 'its header is damaged';
  if (header.version > FORMAT_VERSION) {
    return `it was written by a newer version (format ${header.version})`;
  }
  if (header.segment !== isLogFile(name)) return `it says that it is segment ${header.segment}`;
  return chain >= 0 && header.chain !== chain ? 'it does not follow the segment before it' : '';
}

/** Walks the records of a whole group; '' or what is wrong. */
function addRecords(bytes: Buffer, lastRevision: number, scan: Scan): string {
  for (let at = 0; at < bytes.length;) {
    if (bytes.length - at < HEADER_BYTES) return 'a record is shorter than its header';
    const last = bytes.readUInt32LE(at + 36);
    const head = ((last >>> 24) & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8;
    const padded = ((last & KEY_BYTES_MAX) + 3) & ~3;
    const size = Math.ceil((head + padded + bytes.readUInt32LE(at + 28)) / 16) * 16;
    if (at + size > bytes.length) return 'a record is longer than its frame';
    const revision = bytes.readDoubleLE(at + 8);
    if (!(revision >= 1 && revision <= lastRevision)) return `a record has revision ${revision}`;
    scan.lastRevision = Math.max(scan.lastRevision, revision);
    scan.records++;
    at += size;
  }
  return '';
}

/**
 * Cuts what the report found bad, so that a start goes on with what stands before it. Returns what
 * was done, a line each. A bad snapshot cannot be mended: throws.
 */
export function repair(dir: string, report: VerifyReport): readonly string[] {
  const done: string[] = [];
  const bad = report.files.findIndex(({ fault }) => fault !== '');
  const file = report.files[bad];
  if (file === undefined) return done;
  if (file.name.startsWith('snapshot-') || file.badAt < FILE_HEADER_BYTES) {
    throw new Error(`${join(dir, file.name)}: ${file.fault}; restore a backup`);
  }
  const lock = lockDirectory(dir);
  try {
    const path = join(dir, file.name);
    const copy = freeName(`${path}.damaged`);
    copyFileSync(path, copy);
    const fd = openSync(path, 'r+');
    ftruncateSync(fd, file.badAt);
    fsyncSync(fd);
    closeSync(fd);
    done.push(`${path} was cut at byte ${file.badAt}; all of it is kept as ${copy}`);
    for (const { name } of report.files.slice(bad + 1)) {
      const aside = freeName(join(dir, `${name}.damaged`));
      renameSync(join(dir, name), aside);
      done.push(`${join(dir, name)}, which followed it, is kept as ${aside}`);
    }
    return done;
  } finally {
    lock.release();
  }
}

function freeName(path: string): string {
  let name = path;
  for (let i = 1; existsSync(name); i++) name = `${path}-${i}`;
  return name;
}

// shell: files of the audit log
/**
 * `--audit-log-path`: lines are gathered for a turn and written at its end, or at once where a
 * request must know. A file that is full is put aside under a name with its time (as lumberjack
 * names them); old ones go.
 */
import { nextTurn } from '@megaplane/base/deferred';
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import { makeDirectory } from '@megaplane/base/directory';
import type { AuditBackend, AuditFaults, Told } from './audit-backends.ts';
import type { AuditEvent } from './audit-event.ts';

const MEGABYTE: number = 1024 * 1024;
const DAY_MS = 86_400_000;
/** Lines that wait to be written; more are lost, and counted. */
const WAITING_BYTES_MAX: number = 64 * MEGABYTE;

/** What upstream does where nothing is said. */
const SIZE_MEGABYTES = 100;
const BACKUPS = 100;
const AGE_DAYS = 366;

export interface AuditLogOptions {
  /** `-` is standard output. */
  readonly path: string;
  readonly sizeMegabytesMax?: number | undefined;
  readonly backupsMax?: number | undefined;
  readonly ageDaysMax?: number | undefined;
  /** Files that are put aside are packed by gzip. */
  readonly isCompressed?: boolean | undefined;
  /** One line of text for each event in place of JSON. */
  readonly isLegacy?: boolean | undefined;
  /** Whoever gives an event is told after it was written. */
  readonly isStrict?: boolean | undefined;
}

export class AuditLog implements AuditBackend {
  readonly #path: string;
  readonly #bytesMax: number;
  readonly #backupsMax: number;
  readonly #ageMsMax: number;
  readonly #isCompressed: boolean;
  readonly #isLegacy: boolean;
  readonly #isStrict: boolean;
  readonly #faults: AuditFaults;
  #file: number;
  #size: number;
  #waiting: AuditEvent[] = [];
  #waitingBytes = 0;
  #isDue = false;

  constructor(options: AuditLogOptions, faults: AuditFaults) {
    this.#path = options.path;
    this.#bytesMax = (options.sizeMegabytesMax ?? SIZE_MEGABYTES) * MEGABYTE;
    this.#backupsMax = options.backupsMax ?? BACKUPS;
    this.#ageMsMax = (options.ageDaysMax ?? AGE_DAYS) * DAY_MS;
    this.#isCompressed = options.isCompressed === true;
    this.#isLegacy = options.isLegacy === true;
    this.#isStrict = options.isStrict === true;
    this.#faults = faults;
    try {
      if (this.#path !== '-') makeDirectory(dirname(this.#path));
      this.#file = this.#open();
      if (this.#path !== '-') this.#prune();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`--audit-log-path: cannot be written (${why})`, { cause: error });
    }
    this.#size = this.#path === '-' ? 0 : fstatSync(this.#file).size;
  }

  #open(): number {
    return this.#path === '-' ? 1 : openSync(this.#path, 'a', 0o600);
  }

  take(events: readonly AuditEvent[], told: Told): void {
    for (const event of events) {
      const bytes = event.text.length;
      if (this.#waitingBytes + bytes > WAITING_BYTES_MAX) {
        this.#faults.report('log', 'too many events wait for the disk', [event]);
        continue;
      }
      this.#waiting.push(event);
      this.#waitingBytes += bytes;
    }
    if (this.#isStrict) {
      told(this.#flush());
      return;
    }
    told(true);
    if (this.#isDue) return;
    this.#isDue = true;
    nextTurn(() => this.#flush());
  }

  /** Writes what waits; whether all of it is written. */
  #flush(): boolean {
    this.#isDue = false;
    const events = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    let isKept = true;
    for (let next = 0; next < events.length;) {
      const from = next;
      const lines: string[] = [];
      let length = 0;
      for (; next < events.length; next++) {
        const event = events[next];
        const line = event === undefined ? '' : this.#lineOf(event);
        const own = Buffer.byteLength(line);
        if (lines.length > 0 && this.#isFullWith(length + own)) break;
        lines.push(line);
        length += own;
      }
      isKept = this.#write(Buffer.from(lines.join('')), events.slice(from, next)) && isKept;
    }
    return isKept;
  }

  #lineOf(event: AuditEvent): string {
    return this.#isLegacy ? `${event.line}\n` : event.text;
  }

  #isFullWith(more: number): boolean {
    return this.#path !== '-' && this.#bytesMax !== 0 && this.#size + more > this.#bytesMax;
  }

  #write(bytes: Buffer, events: readonly AuditEvent[]): boolean {
    try {
      if (this.#path !== '-' && this.#bytesMax !== 0 && bytes.length > this.#bytesMax) {
        throw new Error(`write length ${bytes.length} exceeds maximum file size ${this.#bytesMax}`);
      }
      if (this.#size > 0 && this.#isFullWith(bytes.length)) this.#rotate();
      for (let at = 0; at < bytes.length;) at += writeSync(this.#file, bytes, at);
      this.#size += bytes.length;
      return true;
    } catch (error) {
      this.#faults.report('log', error instanceof Error ? error.message : String(error), events);
      return false;
    }
  }

  #rotate(): void {
    const extension = extname(this.#path);
    const stem = this.#path.slice(0, this.#path.length - extension.length);
    closeSync(this.#file);
    let nowMs = Date.now();
    let aside = `${stem}-${timeName(nowMs)}${extension}`;
    // several may fill up within a millisecond
    while (existsSync(aside) || existsSync(`${aside}.gz`)) {
      aside = `${stem}-${timeName(++nowMs)}${extension}`;
    }
    renameSync(this.#path, aside);
    this.#file = this.#open();
    this.#size = 0;
    if (this.#isCompressed) this.#compress(aside);
    this.#prune();
  }

  /** Beside the requests: a full file is of a hundred megabytes. */
  #compress(file: string): void {
    const packed = createWriteStream(`${file}.gz`, { mode: 0o600 });
    pipeline(createReadStream(file), createGzip(), packed, (error) => {
      if (error === null || error === undefined) unlinkSync(file);
      else this.#faults.report('log', `${file} cannot be packed: ${error.message}`, []);
    });
  }

  #prune(): void {
    const dir = dirname(this.#path);
    const extension = extname(this.#path);
    const prefix = `${basename(this.#path, extension)}-`;
    const ends = [extension, `${extension}.gz`];
    const old = readdirSync(dir)
      .filter((name) => name.startsWith(prefix) && ends.some((end) => name.endsWith(end)))
      .filter((name) => !Number.isNaN(timeIn(name.slice(prefix.length))))
      .sort((a, b) => (a < b ? 1 : -1));
    for (const [index, name] of old.entries()) {
      const isTooMany = this.#backupsMax > 0 && index >= this.#backupsMax;
      const age = Date.now() - timeIn(name.slice(prefix.length));
      if (isTooMany || (this.#ageMsMax > 0 && age > this.#ageMsMax)) unlinkSync(join(dir, name));
    }
  }

  close(): Promise<void> {
    this.#flush();
    if (this.#path !== '-') closeSync(this.#file);
    return Promise.resolve();
  }
}

function timeName(ms: number): string {
  return new Date(ms).toISOString().replaceAll(':', '-').replace('Z', '');
}

/** When a file was put aside, by its name; NaN: it is another's. */
function timeIn(text: string): number {
  const [, day, hour, minute, second] =
    /^(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d\.\d+)/.exec(text) ?? [];
  return Date.parse(`${day}${hour}:${minute}:${second}Z`);
}

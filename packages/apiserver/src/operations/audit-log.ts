// shell: files of the audit log
/**
 * `--audit-log-path`: lines are gathered for a turn and written at its end. A file that is full is
 * put aside under a name with its time (as lumberjack names them); old ones go.
 */
import {
  closeSync,
  createReadStream,
  createWriteStream,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { Metrics } from '../metrics.ts';
import { readPolicy, type AuditPolicy } from './audit-policy.ts';

const MEGABYTE: number = 1024 * 1024;
const DAY_MS = 86_400_000;
/** Lines that wait to be written; more are lost, and counted. */
const WAITING_BYTES_MAX: number = 64 * MEGABYTE;

/** Texts and numbers as given on the command line. */
export interface AuditFlags {
  readonly auditPolicyFile?: string;
  /** `-` is standard output. */
  readonly auditLogPath?: string;
  /** Megabytes. */
  readonly auditLogMaxsize?: number;
  readonly auditLogMaxbackup?: number;
  /** Days. */
  readonly auditLogMaxage?: number;
  /** Files that are put aside are packed by gzip. */
  readonly auditLogCompress?: boolean;
}

/** What upstream does where nothing is said. */
const SIZE_MEGABYTES = 100;
const BACKUPS = 100;
const AGE_DAYS = 366;

/** The policy, or null where there is none. Throws an Error that names the flag. */
export function openPolicy({ auditPolicyFile, auditLogPath }: AuditFlags): AuditPolicy | null {
  if (auditPolicyFile === undefined) {
    if (auditLogPath === undefined) return null;
    throw new Error('--audit-log-path needs --audit-policy-file, which says what is written down');
  }
  try {
    return readPolicy(parse(readFileSync(auditPolicyFile, 'utf8')) as JsonValue);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--audit-policy-file: ${auditPolicyFile}: ${why}`, { cause: error });
  }
}

export class AuditLog {
  readonly #path: string;
  readonly #bytesMax: number;
  readonly #backupsMax: number;
  readonly #ageMsMax: number;
  readonly #isCompressed: boolean;
  readonly #log: (message: string) => void;
  #file: number;
  #size: number;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isDue = false;
  /** Events that could not be written. */
  lost = 0;
  written = 0;

  constructor(flags: AuditFlags, log: (message: string) => void) {
    this.#path = flags.auditLogPath ?? '-';
    this.#bytesMax = (flags.auditLogMaxsize ?? SIZE_MEGABYTES) * MEGABYTE;
    this.#backupsMax = flags.auditLogMaxbackup ?? BACKUPS;
    this.#ageMsMax = (flags.auditLogMaxage ?? AGE_DAYS) * DAY_MS;
    this.#isCompressed = flags.auditLogCompress === true;
    this.#log = log;
    try {
      this.#file = this.#open();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`--audit-log-path: cannot be written (${why})`, { cause: error });
    }
    this.#size = this.#path === '-' ? 0 : fstatSync(this.#file).size;
  }

  #open(): number {
    return this.#path === '-' ? 1 : openSync(this.#path, 'a', 0o600);
  }

  /** Takes one line. */
  readonly write = (line: string): void => {
    if (this.#waitingBytes + line.length > WAITING_BYTES_MAX) {
      this.lost++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => this.flush());
  };

  /** Writes what waits. */
  flush(): void {
    this.#isDue = false;
    const lines = this.#waiting;
    if (lines.length === 0) return;
    this.#waiting = [];
    this.#waitingBytes = 0;
    const bytes = Buffer.from(lines.join(''));
    try {
      this.#rotate(bytes.length);
      for (let at = 0; at < bytes.length;) at += writeSync(this.#file, bytes, at);
      this.#size += bytes.length;
      this.written += lines.length;
    } catch (error) {
      this.lost += lines.length;
      const why = error instanceof Error ? error.message : String(error);
      this.#log(`--audit-log-path: ${lines.length} events could not be written: ${why}`);
    }
  }

  #rotate(more: number): void {
    if (this.#path === '-' || this.#bytesMax === 0 || this.#size === 0) return;
    if (this.#size + more <= this.#bytesMax) return;
    const extension = extname(this.#path);
    const time = new Date().toISOString().replaceAll(':', '-').replace('Z', '');
    const stem = this.#path.slice(0, this.#path.length - extension.length);
    closeSync(this.#file);
    const aside = `${stem}-${time}${extension}`;
    renameSync(this.#path, aside);
    this.#file = this.#open();
    this.#size = 0;
    if (this.#isCompressed) this.#compress(aside);
    this.#prune(`${basename(stem)}-`, extension);
  }

  /** Beside the requests: a full file is of a hundred megabytes. */
  #compress(file: string): void {
    const packed = createWriteStream(`${file}.gz`, { mode: 0o600 });
    pipeline(createReadStream(file), createGzip(), packed, (error) => {
      if (error === null || error === undefined) unlinkSync(file);
      else this.#log(`--audit-log-compress: ${file}: ${error.message}`);
    });
  }

  #prune(prefix: string, extension: string): void {
    const dir = dirname(this.#path);
    const ends = [extension, `${extension}.gz`];
    const old = readdirSync(dir)
      .filter((name) => name.startsWith(prefix) && ends.some((end) => name.endsWith(end)))
      .sort((a, b) => (a < b ? 1 : -1));
    for (const [index, name] of old.entries()) {
      const isTooMany = this.#backupsMax > 0 && index >= this.#backupsMax;
      const age = Date.now() - timeIn(name.slice(prefix.length));
      if (isTooMany || (this.#ageMsMax > 0 && age > this.#ageMsMax)) unlinkSync(join(dir, name));
    }
  }

  /** Counts under upstream's names. */
  addTo(metrics: Metrics, levels: ReadonlyMap<string, number>): void {
    metrics.addSource((lines) => {
      lines.push('# TYPE apiserver_audit_level_total counter');
      for (const [level, count] of levels) {
        lines.push(`apiserver_audit_level_total{level="${level}"} ${count}`);
      }
      lines.push(
        '# TYPE apiserver_audit_event_total counter',
        `apiserver_audit_event_total ${this.written}`,
        '# TYPE apiserver_audit_error_total counter',
        `apiserver_audit_error_total{plugin="log"} ${this.lost}`,
      );
    });
  }

  close(): void {
    this.flush();
    if (this.#path !== '-') closeSync(this.#file);
  }
}

/** When a file was put aside, by its name; names that tell nothing are never too old. */
function timeIn(text: string): number {
  const [, day, hour, minute, second] =
    /^(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d\.\d+)/.exec(text) ?? [];
  return Date.parse(`${day}${hour}:${minute}:${second}Z`);
}

/**
 * Lines of container logs, as container runtimes write them: in the form of the CRI,
 *
 *     2016-10-06T00:17:09.669794202Z stdout F what was said
 *
 * where `P` marks a part of a line that goes on, and in Docker's, a JSON object with `log`,
 * `stream` and `time`. What is shown of them follows the kubelet's log reader.
 */
import { parseJson } from '@megaplane/machinery/json-text';

export interface LogLine {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** RFC 3339 with nine digits of the second. */
  readonly time: string;
  readonly stream: 'stdout' | 'stderr';
  /** With its line break, unless the line goes on. */
  readonly text: Buffer;
}

export interface LogOptions {
  readonly follow: boolean;
  readonly timestamps: boolean;
  /** Lines from the end; -1: all. */
  readonly tailLines: number;
  /** -1: all. */
  readonly limitBytes: number;
  /** Lines of before are left out; -Infinity: none. */
  readonly sinceMs: number;
  readonly stream: 'All' | 'Stdout' | 'Stderr';
}

export type LogFormat = 'cri' | 'docker';

const SPACE = 0x20;
const NEWLINE = 0x0a;

/** The format of a log, by one line of it; undefined: neither. */
export function formatOf(line: Buffer): LogFormat | undefined {
  if (parseLine('cri', line) !== undefined) return 'cri';
  return parseLine('docker', line) === undefined ? undefined : 'docker';
}

/** One line with its break at the end; undefined where it is none of the format. */
export function parseLine(format: LogFormat, line: Buffer): LogLine | undefined {
  return format === 'cri' ? parseCri(line) : parseDocker(line);
}

function parseCri(line: Buffer): LogLine | undefined {
  const first = line.indexOf(SPACE);
  const second = first < 0 ? -1 : line.indexOf(SPACE, first + 1);
  const third = second < 0 ? -1 : line.indexOf(SPACE, second + 1);
  if (third < 0) return undefined;
  const time = nineDigits(line.toString('latin1', 0, first));
  const stream = line.toString('latin1', first + 1, second);
  if (time === undefined || (stream !== 'stdout' && stream !== 'stderr')) return undefined;
  const tags = line.toString('latin1', second + 1, third).split(':');
  const isPartial = tags[0] === 'P';
  let end = line.length;
  if (isPartial && line[end - 1] === NEWLINE) end--;
  return { ...time, stream, text: line.subarray(third + 1, end) };
}

function parseDocker(line: Buffer): LogLine | undefined {
  let found: unknown;
  try {
    found = parseJson(line.toString('utf8'));
  } catch (error) {
    // a line that is no JSON is none of Docker's
    return error instanceof SyntaxError ? undefined : undefined;
  }
  if (typeof found !== 'object' || found === null) return undefined;
  const { log, stream, time } = found as Record<string, unknown>;
  const when = typeof time === 'string' ? nineDigits(time) : undefined;
  if (when === undefined || typeof log !== 'string') return undefined;
  if (stream !== 'stdout' && stream !== 'stderr') return undefined;
  return { ...when, stream, text: Buffer.from(log) };
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

function nineDigits(text: string): { readonly timeMs: number; readonly time: string } | undefined {
  const match = TIME.exec(text);
  const timeMs = match === null ? Number.NaN : Date.parse(text);
  if (match === null || Number.isNaN(timeMs)) return undefined;
  const [, seconds = '', digits = '', zone = ''] = match;
  return { timeMs, time: `${seconds}.${digits.padEnd(9, '0')}${zone}` };
}

/** Turns lines of a log into what a client sees. */
export class LogPrinter {
  readonly #options: LogOptions;
  #format: LogFormat | undefined;
  #left: number;
  /** A part of a line was printed; the next text goes on with it. */
  #isInLine = false;

  constructor(options: LogOptions) {
    this.#options = options;
    this.#left = options.limitBytes < 0 ? Infinity : options.limitBytes;
  }

  /** As many bytes were shown as were asked for. */
  get isFull(): boolean {
    return this.#left <= 0;
  }

  /** Bytes to show of a line; throws an Error where the log is of no known format. */
  print(line: Buffer): Buffer {
    this.#format ??= formatOf(line);
    if (this.#format === undefined) {
      const text = JSON.stringify(line.toString('utf8'));
      throw new Error(`failed to get parse function: unsupported log format: ${text}`);
    }
    const parsed = parseLine(this.#format, line);
    const { sinceMs, stream, timestamps } = this.#options;
    if (parsed === undefined || parsed.timeMs < sinceMs) return Buffer.alloc(0);
    if (stream !== 'All' && stream.toLowerCase() !== parsed.stream) return Buffer.alloc(0);
    const prefix = timestamps && !this.#isInLine ? Buffer.from(`${parsed.time} `) : '';
    this.#isInLine = parsed.text.at(-1) !== NEWLINE;
    const whole = prefix === '' ? parsed.text : Buffer.concat([prefix, parsed.text]);
    const shown = whole.subarray(0, Math.min(whole.length, this.#left));
    this.#left -= shown.length;
    return shown;
  }
}

/** The options in the query of a kubelet's `/containerLogs`; a text for people if one is wrong. */
export function logOptions(query: URLSearchParams, nowMs: number): LogOptions | string {
  const number = (name: string): number => {
    const text = query.get(name) ?? '';
    if (text === '') return -1;
    return /^\d+$/.test(text) ? Number(text) : Number.NaN;
  };
  const flag = (name: string): boolean => ['', '1', 'true'].includes(query.get(name) ?? 'false');
  const tail = query.get('tail') ?? '';
  if (tail !== '') {
    if (tail === 'all') query.delete('tailLines');
    else query.set('tailLines', tail);
  }
  const tailLines = number('tailLines');
  const limitBytes = number('limitBytes');
  const sinceSeconds = number('sinceSeconds');
  const sinceTime = query.get('sinceTime') ?? '';
  const sinceTimeMs = sinceTime === '' ? -Infinity : Date.parse(sinceTime);
  const all = [tailLines, limitBytes, sinceSeconds, sinceTimeMs];
  const stream = query.get('stream') ?? 'All';
  if (all.some((value) => Number.isNaN(value))) return '{"message": "Unable to decode query."}';
  if (stream !== 'All' && stream !== 'Stdout' && stream !== 'Stderr') {
    return '{"message": "Unable to decode query."}';
  }
  const sinceMs = sinceSeconds >= 0 ? nowMs - sinceSeconds * 1000 : sinceTimeMs;
  const options = { follow: flag('follow'), timestamps: flag('timestamps'), stream } as const;
  return { ...options, tailLines, limitBytes, sinceMs };
}

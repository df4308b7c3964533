/**
 * Sizes and durations as people write them on command lines and in files.
 *
 * Sizes: `512`, `64KiB`, `1.5GiB`, also `64Ki` as Kubernetes writes it, and decimal `10MB`, `10M`.
 * Durations: `250ms`, `90s`, `1h30m`, as Go's time.ParseDuration reads them, without a bare number
 * except 0.
 */
import { ownMember } from '../collections/members.ts';

export type Parsed =
  | { readonly kind: 'value'; readonly value: number }
  | { readonly kind: 'invalid'; readonly message: string };

/** Of a socket's path: `sun_path` without its last zero, 108 bytes on Linux and 104 on macOS. */
export const UNIX_PATH_BYTES_MAX: number = process.platform === 'darwin' ? 103 : 107;

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1e3,
  kb: 1e3,
  m: 1e6,
  mb: 1e6,
  g: 1e9,
  gb: 1e9,
  t: 1e12,
  tb: 1e12,
  ki: 2 ** 10,
  kib: 2 ** 10,
  mi: 2 ** 20,
  mib: 2 ** 20,
  gi: 2 ** 30,
  gib: 2 ** 30,
  ti: 2 ** 40,
  tib: 2 ** 40,
};

const DURATION_UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Reads a size; the value is whole bytes, rounded up, at most 2^53. */
export function parseByteSize(text: string): Parsed {
  const match = /^(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)$/i.exec(text.trim());
  const unit = ownMember(SIZE_UNITS, (match?.[2] ?? '?').toLowerCase());
  const bytes = unit === undefined ? NaN : Math.ceil(Number(match?.[1]) * unit);
  if (Number.isSafeInteger(bytes)) return { kind: 'value', value: bytes };
  return {
    kind: 'invalid',
    message: `"${text}" is not a size: write a number and a unit, like 512MiB or 4GiB`,
  };
}

/** Writes a size with the largest binary unit that leaves at least 1, with up to one decimal. */
export function formatByteSize(bytes: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  let exponent = 0;
  let value = bytes;
  while (Math.abs(value) >= 1023.95 && exponent < names.length - 1) {
    value /= 1024;
    exponent++;
  }
  const digits = Math.round(value * 10) / 10;
  return `${digits} ${names[exponent] ?? 'B'}`;
}

/** Reads a duration; the value is milliseconds, with a fraction, and may be negative. */
export function parseDurationMs(text: string): Parsed {
  const match = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text);
  if (match === null) {
    return {
      kind: 'invalid',
      message: `"${text}" is not a duration: write numbers with units, like 250ms, 90s or 1h30m`,
    };
  }
  let sum = 0;
  for (const part of (match[2] ?? '').matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    sum += Number(part[1]) * (ownMember(DURATION_UNITS, part[2] ?? '') ?? 0);
  }
  return { kind: 'value', value: match[1] === '-' && sum !== 0 ? -sum : sum };
}

/** Writes a duration as Go does: `1h30m0s`, `1.5s`, `250ms`, `0s`. Below a microsecond: `0s`. */
export function formatDuration(durationMs: number): string {
  const sign = durationMs < 0 ? '-' : '';
  // Whole microseconds: what a double of milliseconds holds without noise.
  const micros = Math.round(Math.abs(durationMs) * 1000);
  if (micros === 0) return '0s';
  if (micros < 1000) return `${sign}${micros}µs`;
  if (micros < 1_000_000) return `${sign}${micros / 1000}ms`;
  const hours = Math.floor(micros / 3_600_000_000);
  const minutes = Math.floor(micros / 60_000_000) % 60;
  const seconds = (micros % 60_000_000) / 1_000_000;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}s` : `${sign}${seconds}s`;
}

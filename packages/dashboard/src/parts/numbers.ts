/** Numbers as people read them. */
import type { Unit } from '../model/protocol.ts';

const NOTHING = '–';
const SI = ['', 'K', 'M', 'G', 'T'] as const;
const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A value in its unit; a dash where it is not known. */
export function shown(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  switch (unit) {
    case 'bytes':
      return scaled(value, 1024, BINARY, ' ');
    case 'seconds':
      return seconds(value);
    case 'percent':
      return `${digits(value * 100)} %`;
    case 'rate':
      return `${value >= 100_000 ? scaled(value, 1000, SI, '') : digits(value)}/s`;
    case 'count':
      return value >= 1e7 ? scaled(value, 1000, SI, '') : Math.round(value).toLocaleString('en-US');
    case 'text':
      return digits(value);
  }
}

/** The same for the scale of a curve, where room is short. */
export function short(value: number, unit: Unit): string {
  if (unit === 'bytes') return scaled(value, 1024, BINARY, ' ');
  if (unit === 'seconds') return seconds(value);
  if (unit === 'percent') return `${digits(value * 100)} %`;
  return scaled(value, 1000, SI, '');
}

function scaled(value: number, base: number, units: readonly string[], space: string): string {
  let power = 0;
  let left = value;
  while (Math.abs(left) >= base && power < units.length - 1) {
    left /= base;
    power++;
  }
  return `${digits(left)}${space}${units[power] ?? ''}`;
}

function seconds(value: number): string {
  if (value === 0) return '0 s';
  if (value < 0.001) return `${digits(value * 1e6)} µs`;
  if (value < 1) return `${digits(value * 1000)} ms`;
  if (value < 120) return `${digits(value)} s`;
  return `${digits(value / 60)} min`;
}

/** Three digits, or all before the point. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(size >= 10 ? 3 : size >= 1 ? 2 : 1)));
}

/** How long ago a moment was. */
export function ago(timeMs: number, nowMs: number): string {
  const passed = Math.max(0, Math.round((nowMs - timeMs) / 1000));
  if (passed < 60) return `${passed} s`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 86_400) return `${Math.floor(passed / 3600)} h`;
  return `${Math.floor(passed / 86_400)} d`;
}

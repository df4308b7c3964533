/**
 * Parsers of flag values. Each throws commander's `InvalidArgumentError`, which becomes one line
 * that names the flag and exit code 2.
 */
import { InvalidArgumentError } from 'commander';

/** A parser of whole numbers from `min` to `max`, both included. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
    if (Number.isNaN(value)) {
      throw new InvalidArgumentError(`a whole number from ${min} to ${max} is needed.`);
    }
    if (value < min || value > max) {
      throw new InvalidArgumentError(`it must lie between ${min} and ${max}.`);
    }
    return value;
  };
}

/** A parser of one word out of `words`. */
export function oneOf<Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((candidate) => candidate === text);
    if (word === undefined) throw new InvalidArgumentError(`one of ${words.join(', ')} is needed.`);
    return word;
  };
}

const DURATION_UNITS_MS = { ns: 1e-6, us: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Parses a duration as Go writes it (`1m30s`, `500ms`, `0`), in milliseconds. */
export function durationMs(text: string): number {
  if (text === '0') return 0;
  let totalMs = 0;
  let end = 0;
  for (const part of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)/gy)) {
    totalMs += Number(part[1]) * DURATION_UNITS_MS[part[2] as keyof typeof DURATION_UNITS_MS];
    end = part.index + part[0].length;
  }
  if (end === 0 || end !== text.length) {
    throw new InvalidArgumentError('a duration such as 40s, 1m30s or 500ms is needed.');
  }
  return totalMs;
}

/** Collects a flag that may be given several times, or once with commas. */
export function list(text: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), ...text.split(',').filter((item) => item !== '')];
}

/** Words with commas between them. */
export function words(text: string): readonly string[] {
  return text.split(',').filter((item) => item !== '');
}

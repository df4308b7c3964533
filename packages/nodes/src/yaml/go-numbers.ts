/** Durations and whole numbers as Go's `time.ParseDuration` and `strconv.ParseInt` read them. */

import { parseDurationMs } from '@megaplane/base/limits';

/** Milliseconds of `1h2m3.5s`; undefined where the text is no duration. */
export function durationMs(text: string): number | undefined {
  const parsed = parseDurationMs(text);
  return parsed.kind === 'value' ? parsed.value : undefined;
}

/** Digits by their prefix, with `_` between them where there is a prefix; `010` is octal. */
const WHOLE_NUMBER = /^([+-]?)(0x(?:_?[\da-f])+|0b(?:_?[01])+|0o?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/i;

/** A whole number in any base that Go knows; undefined where the text is none. */
export function wholeNumberOf(text: string): number | undefined {
  const match = WHOLE_NUMBER.exec(text);
  if (match === null) return undefined;
  const digits = (match[2] ?? '').replaceAll('_', '').replace(/^0(?=\d)/, '0o');
  const number = Number(digits);
  return match[1] === '-' ? -number : number;
}

/** Durations and whole numbers as Go's `time.ParseDuration` and `strconv.ParseInt` read them. */

const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const WHOLE = /^[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/;
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;

/** Milliseconds of `1h2m3.5s`; undefined where the text is no duration. */
export function durationMs(text: string): number | undefined {
  if (/^[+-]?0$/.test(text)) return 0;
  if (!WHOLE.test(text)) return undefined;
  let sum = 0;
  for (const [, number = '', unit = ''] of text.matchAll(PART)) {
    sum += Number(number) * (UNITS_MS[unit] ?? 0);
  }
  return text.startsWith('-') ? -sum : sum;
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

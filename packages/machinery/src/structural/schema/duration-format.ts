/** Durations of schemas (`format: duration`): in words of Go or Scala (`2 days`, `1 week`). */
import { parseGoDuration } from '../../meta/times.ts';

interface Unit {
  readonly nanos: bigint;
  readonly names: readonly string[];
  /** Longer names start with it. */
  readonly stem: string;
}

const SECOND = 1_000_000_000n;
const HOUR = 3600n * SECOND;

const UNITS: readonly Unit[] = [
  { nanos: 1n, names: ['ns'], stem: 'nano' },
  { nanos: 1000n, names: ['us', 'µs'], stem: 'micro' },
  { nanos: 1_000_000n, names: ['ms'], stem: 'milli' },
  { nanos: SECOND, names: ['s'], stem: 'sec' },
  { nanos: 60n * SECOND, names: ['m'], stem: 'min' },
  { nanos: HOUR, names: ['h', 'hr'], stem: 'hour' },
  { nanos: 24n * HOUR, names: ['d'], stem: 'day' },
  { nanos: 7n * 24n * HOUR, names: ['w', 'wk'], stem: 'week' },
];
const INT64_MAX = 9_223_372_036_854_775_807n;

/** Nanoseconds, as int64 holds them; undefined where there is no duration in the text. */
export function parseDurationFormat(text: string): bigint | undefined {
  const plain = parseGoDuration(text);
  if (plain !== undefined) return plain;
  let nanos: bigint | undefined;
  for (const [, amount = '', word = ''] of text.matchAll(/(?<!\d)(\d+)\s*([A-Za-zµ]+)/g)) {
    if (BigInt(amount) > INT64_MAX) return undefined;
    const name = word.toLowerCase();
    for (const unit of UNITS) {
      if (!unit.names.includes(name) && !name.startsWith(unit.stem)) continue;
      nanos = BigInt.asIntN(64, (nanos ?? 0n) + BigInt(amount) * unit.nanos);
    }
  }
  return nanos;
}

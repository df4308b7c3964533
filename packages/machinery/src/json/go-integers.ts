/** Numbers of a JSON text that Go holds as an int64. */

const INT64_END = 2 ** 63;

/** Whether Go holds a number of a JSON text as an int64; all others are float64. */
export function isGoInt(value: number | bigint): boolean {
  if (typeof value === 'bigint') return true;
  return Number.isInteger(value) && value < INT64_END && value >= -INT64_END;
}

/** What Go makes of a float64 as an int64 on amd64: what is out of range is the least of all. */
export function toInt64(value: number | bigint): number | bigint {
  if (typeof value === 'bigint') return value;
  const whole = Math.trunc(value);
  if (Number.isSafeInteger(whole)) return whole;
  return isGoInt(whole) ? BigInt(whole) : -(2n ** 63n);
}

/** An int64 in full: the last digits of large ones, too. */
export function int64Text(value: number | bigint): string {
  return Number.isSafeInteger(value) ? String(value) : String(BigInt(value));
}

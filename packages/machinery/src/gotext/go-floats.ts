/** Floating point numbers as Go prints them. */

/** Powers of ten below which Go's `%g` prints a number without an exponent. */
const PLAIN_POWER_END = 6;

/** Go's `%g`: the shortest digits, with an exponent below 1e-4 and from 1e6 on. */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 10 ** PLAIN_POWER_END)) return String(value);
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  const sign = power < 0 ? '-' : '+';
  return `${digits}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

/**
 * Amounts of resources, exactly: `100m`, `1.5Gi`, `12e6`.
 *
 * An amount is an integer times a power of ten, and never an approximation. The written form is the
 * one that upstream answers with: a canonical submission stays as it was written, anything else is
 * reduced to the largest suffix without a fraction (`1000m` is `1`, `0.5` is `500m`, `1024Ki` is
 * `1Mi`). Amounts below a billionth are rounded away from zero.
 */

export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

/** Why text is no quantity, in the words of upstream. */
export const QUANTITY_FAILURES: Readonly<Record<'format' | 'suffix' | 'digits', string>> = {
  format:
    'quantities must match the regular expression ' +
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  suffix: "unable to parse quantity's suffix",
  digits: 'unable to parse numeric part of quantity',
};
export type QuantityFailure = keyof typeof QUANTITY_FAILURES;

const NANO = -9;
/** Digits that always fit an int64, upstream's fast path: only there a submitted form is kept. */
const FAST_DIGITS_MAX = 18;
/** Powers of ten by which upstream multiplies without a look at what comes of it. */
const WRAPPED_SCALES: ReadonlySet<number> = new Set([1, 2, 3, 6, 9]);
const INT64_MAX = 2n ** 63n - 1n;
/** Exponents beyond this are refused before they become memory: `1e999999999`. */
const EXPONENT_MAX = 1000;
/** Digits before the point, without zeros in front: upstream reads as many as a request has. */
const WHOLE_DIGITS_MAX = 1000;
/** Digits behind it that are looked at; of the others only whether they are all zeros counts. */
const FRACTION_DIGITS_MAX: number = EXPONENT_MAX + 64;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** What stands behind the digits of a quantity. */
export interface Suffix {
  readonly format: QuantityFormat;
  /** Of 10, or of 2 for BinarySI. */
  readonly exponent: number;
}

const SUFFIXES = new Map<string, Suffix>();
for (const [index, suffix] of DECIMAL_SUFFIXES.entries()) {
  SUFFIXES.set(suffix, { format: 'DecimalSI', exponent: (index - 3) * 3 });
}
for (const [index, suffix] of BINARY_SUFFIXES.entries()) {
  if (suffix !== '') SUFFIXES.set(suffix, { format: 'BinarySI', exponent: index * 10 });
}

export function suffixOf(text: string): Suffix | undefined {
  const known = SUFFIXES.get(text);
  if (known !== undefined) return known;
  if (!/^[eE][+-]?\d+$/.test(text)) return undefined;
  const exponent = Number(text.slice(1));
  if (Math.abs(exponent) > EXPONENT_MAX) return undefined;
  return { format: 'DecimalExponent', exponent };
}

/** One amount; never changes. */
export class Quantity {
  /** The amount is `digits * 10 ** scale`. */
  readonly digits: bigint;
  readonly scale: number;
  readonly format: QuantityFormat;
  readonly #text: string | undefined;

  constructor(digits: bigint, scale: number, format: QuantityFormat, text?: string) {
    this.digits = digits;
    this.scale = scale;
    this.format = format;
    this.#text = text;
  }

  /** The form in which it is stored and answered. */
  toString(): string {
    return this.#text ?? canonical(this);
  }

  /** -1, 0 or 1. */
  compare(other: Quantity): number {
    const scale = Math.min(this.scale, other.scale);
    const left = this.#at(scale);
    const right = other.#at(scale);
    return left < right ? -1 : left > right ? 1 : 0;
  }

  /** The sum; a zero takes the format of the other, else the left one's is kept. */
  add(other: Quantity): Quantity {
    const scale = Math.min(this.scale, other.scale);
    const format = this.digits === 0n ? other.format : this.format;
    return new Quantity(this.#at(scale) + other.#at(scale), scale, format);
  }

  subtract(other: Quantity): Quantity {
    return this.add(other.negate());
  }

  negate(): Quantity {
    return new Quantity(-this.digits, this.scale, this.format);
  }

  /** -1, 0 or 1. */
  get sign(): number {
    return this.digits < 0n ? -1 : this.digits > 0n ? 1 : 0;
  }

  /** In whole units, fractions rounded away from zero: bytes, pods. Exact to 2^53. */
  get value(): number {
    return Number(this.scaled(0));
  }

  /** In thousandths, rounded away from zero: CPU. Exact to 2^53. */
  get milliValue(): number {
    return Number(this.scaled(-3));
  }

  /** In units of `10 ** scale`, rounded away from zero. */
  scaled(scale: number): bigint {
    if (this.scale >= scale) return this.#at(scale);
    const unit = 10n ** BigInt(scale - this.scale);
    const whole = this.digits / unit;
    if (whole * unit === this.digits) return whole;
    return this.digits < 0n ? whole - 1n : whole + 1n;
  }

  /** True if it is a whole number of `10 ** scale`. */
  isExact(scale: number): boolean {
    return this.scale >= scale || this.digits % 10n ** BigInt(scale - this.scale) === 0n;
  }

  /**
   * Whether upstream finds a fraction. It counts in thousandths, and loses count of them where they
   * are more than an int64 holds: large amounts look broken to it.
   */
  get hasFraction(): boolean {
    const milli = this.scaled(-3);
    const counted = BigInt.asIntN(64, milli);
    if (counted === milli) return milli % 1000n !== 0n;
    // of numbers with few digits it multiplies by some powers of ten, and gives up at others
    return (this.#isWide || WRAPPED_SCALES.has(this.scale + 3)) && counted % 1000n !== 0n;
  }

  /** The amount in whole units as upstream counts it: what no int64 holds has lost its front. */
  get counted(): bigint {
    return this.#countedAt(0);
  }

  /** The same in thousandths. */
  get countedMilli(): bigint {
    return this.#countedAt(-3);
  }

  #countedAt(scale: number): bigint {
    const exact = this.scaled(scale);
    const counted = BigInt.asIntN(64, exact);
    if (counted === exact || this.#isWide) return counted;
    return WRAPPED_SCALES.has(this.scale - scale) ? counted : 0n;
  }

  /** More digits than upstream reads the cheap way. */
  get #isWide(): boolean {
    return this.format === 'BinarySI' || String(this.digits).length > FAST_DIGITS_MAX;
  }

  #at(scale: number): bigint {
    return scale === this.scale ? this.digits : this.digits * 10n ** BigInt(this.scale - scale);
  }
}

const TRAILING_ZEROS = /(?<!0)0+$/;

function canonical(quantity: Quantity): string {
  if (quantity.digits === 0n) return '0';
  if (quantity.format === 'BinarySI' && quantity.isExact(0)) {
    let whole = quantity.scaled(0);
    if (whole <= -1024n || whole >= 1024n) {
      let steps = 0;
      while (steps < BINARY_SUFFIXES.length - 1 && whole % 1024n === 0n) {
        whole /= 1024n;
        steps++;
      }
      return `${whole}${BINARY_SUFFIXES[steps]}`;
    }
  }
  // by its text: one division for each zero would cost the square of their number
  const written = String(quantity.digits);
  const bare = written.replace(TRAILING_ZEROS, '');
  let digits = BigInt(bare);
  const scale = quantity.scale + written.length - bare.length;
  if (quantity.format === 'DecimalExponent') {
    const down = ((scale % 3) + 3) % 3;
    digits *= 10n ** BigInt(down);
    return scale === down ? String(digits) : `${digits}e${scale - down}`;
  }
  const largest = Math.min(Math.floor(scale / 3) * 3, 18);
  digits *= 10n ** BigInt(scale - largest);
  return `${digits}${DECIMAL_SUFFIXES[largest / 3 + 3]}`;
}

const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?((?:[eEinumkKMGTP]+[-+]?\d*|[-+]\d*)?)$/;

/** The amount, or why the text is none. A suffix alone counts as zero; space is refused. */
export function parseQuantity(text: string): Quantity | QuantityFailure {
  const match = text === '' ? null : NUMBER.exec(text);
  if (match === null) return 'format';
  const [, sign = '', whole = '', fraction = '', suffixText = ''] = match;
  const suffix = suffixOf(suffixText);
  if (suffix === undefined) return 'suffix';
  const number = whole.replace(/^0+/, '') || '0';
  const isBinary = suffix.format === 'BinarySI';
  if (number.length > WHOLE_DIGITS_MAX) {
    if (!isBinary) return 'digits';
    return new Quantity(sign === '-' ? -INT64_MAX : INT64_MAX, 0, suffix.format);
  }
  return quantityOf(sign, number, shortened(fraction), suffix, text);
}

/** What is far below a billionth is rounded up, however far below: one digit stands for all. */
function shortened(fraction: string): string {
  if (fraction.length <= FRACTION_DIGITS_MAX) return fraction;
  const rest = /[1-9]/.test(fraction.slice(FRACTION_DIGITS_MAX)) ? '1' : '0';
  return fraction.slice(0, FRACTION_DIGITS_MAX) + rest;
}

function quantityOf(
  sign: string,
  number: string,
  fraction: string,
  suffix: Suffix,
  text: string,
): Quantity {
  let digits = BigInt(number + fraction);
  if (sign === '-') digits = -digits;
  const scale = suffix.format === 'BinarySI' ? -fraction.length : suffix.exponent - fraction.length;
  // zeros in front are kept, too, but not without end
  const isShort = text.length <= WHOLE_DIGITS_MAX;
  const kept = isShort && isKept(number, fraction, suffix, scale) ? text : undefined;
  if (suffix.format === 'BinarySI') digits *= 2n ** BigInt(suffix.exponent);
  if (kept === undefined) return bounded(digits, scale, suffix.format);
  return new Quantity(digits, scale, suffix.format, kept);
}

/** Upstream keeps what was submitted where a cheap look tells that it is about canonical. */
function isKept(number: string, fraction: string, suffix: Suffix, scale: number): boolean {
  const all = number + fraction;
  if (suffix.format === 'BinarySI') {
    const precision = 15 - number.length - Math.trunc((suffix.exponent * 3) / 10) - 1;
    if (fraction !== '' || precision < 0) return false;
    return Number(BigInt(number) & 7n) !== 0;
  }
  if (all.length > FAST_DIGITS_MAX || scale < NANO) return false;
  return scale % 3 === 0 && !all.endsWith('000') && !all.startsWith('0');
}

/** Rounds below a billionth away from zero and caps binary amounts at int64. */
function bounded(digits: bigint, scale: number, format: QuantityFormat): Quantity {
  let rounded = new Quantity(digits, scale, format);
  if (scale < NANO) rounded = new Quantity(rounded.scaled(NANO), NANO, format);
  if (format !== 'BinarySI') return rounded;
  const max = new Quantity(INT64_MAX, 0, format);
  if (rounded.compare(max) > 0) return max;
  return rounded.negate().compare(max) > 0 ? max.negate() : rounded;
}

/** The form in which upstream answers this text; undefined if it is no quantity. */
export function canonicalQuantity(text: string): string | undefined {
  const parsed = parseQuantity(text);
  return typeof parsed === 'string' ? undefined : parsed.toString();
}

/** For text that is known to be a quantity, as in stored objects: 0 for anything else. */
export function milliValueOf(text: string): number {
  const parsed = parseQuantity(text);
  return typeof parsed === 'string' ? 0 : parsed.milliValue;
}

/** For text that is known to be a quantity, as in stored objects: 0 for anything else. */
export function wholeValueOf(text: string): number {
  const parsed = parseQuantity(text);
  return typeof parsed === 'string' ? 0 : parsed.value;
}

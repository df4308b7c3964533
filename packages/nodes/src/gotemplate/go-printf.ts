/** `fmt.Sprintf` for the values that templates have. */
import { ownMember } from '@megaplane/base/members';
import { formatted, GoFloat, GoInt64, isList, isMap, typeName, type GoValue } from './go-values.ts';

const VERB = /%([-+# 0]*)(\d+|\*)?(?:\.(\d+|\*)?)?(?:\[(\d+)\])?([a-zA-Z%])/g;
/** More is no width for Go, either. */
const WIDTH_MAX = 1_000_000;
/** Digits that `toFixed` gives at most, all exact. */
const FRACTION_MAX = 100;

interface Spec {
  readonly flags: string;
  readonly width: number;
  /** undefined: none given. */
  readonly precision: number | undefined;
}

/** Formats as Go does; a verb that does not fit its operand shows as `%!d(string=x)`. */
export function sprintf(format: string, values: readonly GoValue[]): string {
  let next = 0;
  let isOrdered = true;
  const given = (of: string | undefined): number | undefined => {
    if (of !== '*') return of === undefined ? undefined : Math.min(WIDTH_MAX, Number(of));
    const value = values[next++];
    return typeof value === 'bigint' ? Math.min(WIDTH_MAX, Number(value)) : undefined;
  };
  const text = format.replaceAll(
    VERB,
    (
      whole,
      flags: string,
      wide: string | undefined,
      exact: string | undefined,
      place: string | undefined,
      verb: string,
    ) => {
      const width = given(wide) ?? 0;
      const hasPoint = whole.slice(0, -1).includes('.');
      const precision = hasPoint ? (given(exact) ?? 0) : undefined;
      if (verb === '%') return '%';
      if (place !== undefined) {
        isOrdered = false;
        if (Number(place) < 1 || Number(place) > values.length) return `%!${verb}(BADINDEX)`;
        next = Number(place) - 1;
      }
      if (next >= values.length) return `%!${verb}(MISSING)`;
      const isLeft = width < 0;
      const spec = { flags: isLeft ? `${flags}-` : flags, width: Math.abs(width), precision };
      return shown(verb, spec, values[next++]);
    },
  );
  if (next >= values.length || !isOrdered) return text;
  const extra = values
    .slice(next)
    .map((value) =>
      value === undefined || value === null ? '<nil>' : `${typeName(value)}=${formatted(value)}`,
    );
  return `${text}%!(EXTRA ${extra.join(', ')})`;
}

function shown(verb: string, spec: Spec, value: GoValue): string {
  if (verb === 'T') return padded(typeName(value), spec);
  if (value === undefined || value === null) {
    return verb === 'v' ? padded('<nil>', spec) : `%!${verb}(<nil>)`;
  }
  const inner = (item: GoValue): string =>
    item === undefined || item === null ? '<nil>' : shown(verb, spec, item);
  if (isList(value)) return `[${value.map(inner).join(' ')}]`;
  if (isMap(value)) {
    const members = Object.keys(value).toSorted();
    const each = members.map(
      (name) => `${shown(verb, spec, name)}:${inner(ownMember(value, name))}`,
    );
    return `map[${each.join(' ')}]`;
  }
  const found = scalar(verb, spec, value);
  if (found !== undefined) return found;
  return `%!${verb}(${typeName(value)}=${scalar('v', spec, value) ?? formatted(value)})`;
}

function scalar(verb: string, spec: Spec, value: GoValue): string | undefined {
  if (typeof value === 'bigint') return whole(verb, spec, value);
  if (value instanceof GoInt64) return whole(verb, spec, value.value);
  if (value instanceof GoFloat) return float(verb, spec, value.value);
  if (typeof value === 'boolean') {
    return verb === 't' || verb === 'v' ? padded(String(value), spec) : undefined;
  }
  return words(verb, spec, formatted(value));
}

function words(verb: string, spec: Spec, value: string): string | undefined {
  const { precision } = spec;
  const cut = precision === undefined ? value : Array.from(value).slice(0, precision).join('');
  if (verb === 's' || verb === 'v') return padded(cut, spec);
  if (verb === 'q') return padded(JSON.stringify(cut), spec);
  if (verb !== 'x' && verb !== 'X') return undefined;
  const hex = Buffer.from(value).subarray(0, precision).toString('hex');
  return padded(verb === 'X' ? hex.toUpperCase() : hex, spec);
}

const BASES: Readonly<Record<string, number>> = { v: 10, d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 };
const PREFIXES: Readonly<Record<string, string>> = { b: '0b', o: '0', x: '0x', X: '0X' };

function whole(verb: string, spec: Spec, value: bigint): string | undefined {
  if (verb === 'c' || verb === 'q') {
    const rune = value >= 0n && value <= 0x10ffffn ? String.fromCodePoint(Number(value)) : '\uFFFD';
    return padded(verb === 'c' ? rune : quotedRune(rune), spec);
  }
  if (verb === 'U') {
    const code = BigInt.asUintN(64, value).toString(16).toUpperCase();
    return padded(`U+${code.padStart(4, '0')}`, { ...spec, flags: spec.flags.replace('0', '') });
  }
  const base = ownMember(BASES, verb);
  if (base === undefined) return undefined;
  const digits = (value < 0n ? -value : value).toString(base).padStart(spec.precision ?? 1, '0');
  const marked = spec.flags.includes('#') ? (ownMember(PREFIXES, verb) ?? '') : '';
  const prefix = verb === 'O' ? '0o' : marked;
  const text = verb === 'X' ? digits.toUpperCase() : digits;
  const flags = spec.precision === undefined ? spec.flags : spec.flags.replace('0', '');
  return signed(value < 0n, prefix, text, { ...spec, flags });
}

function quotedRune(rune: string): string {
  if (rune === "'") return String.raw`'\''`;
  const code = rune.codePointAt(0) ?? 0;
  const escape = JSON.stringify(rune).slice(1, -1);
  if (escape === String.raw`\"`) return `'"'`;
  const isPlain = code >= 0x20 && code !== 0x7f;
  if (isPlain || /^\\[a-z]$/.test(escape)) return `'${escape}'`;
  return `'\\x${code.toString(16).padStart(2, '0')}'`;
}

function float(verb: string, spec: Spec, value: number): string | undefined {
  if (!'veEfFgG'.includes(verb)) return undefined;
  if (!Number.isFinite(value)) {
    return padded(formatted(new GoFloat(value)), { ...spec, flags: spec.flags.replace('0', '') });
  }
  const size = Math.abs(value);
  const isBelow = value < 0 || Object.is(value, -0);
  const text = digitsOf(verb, spec.precision, size);
  const isUpper = verb === 'E' || verb === 'G';
  return signed(isBelow, '', isUpper ? text.toUpperCase() : text, spec);
}

function digitsOf(verb: string, precision: number | undefined, size: number): string {
  if (verb === 'f' || verb === 'F') return fixed(size, Math.min(FRACTION_MAX, precision ?? 6));
  if (verb === 'e' || verb === 'E')
    return exponent(size.toExponential(Math.min(FRACTION_MAX, precision ?? 6)));
  if (precision === undefined) return formatted(new GoFloat(size));
  const most = Math.max(1, Math.min(FRACTION_MAX, precision));
  const rounded = Number(size.toPrecision(most));
  const power = rounded === 0 ? 0 : Number(rounded.toExponential().split('e')[1]);
  if (power < -4 || power >= most) return exponent(rounded.toExponential());
  return rounded
    .toFixed(Math.max(0, most - 1 - power))
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');
}

/** Halves go to the even digit, where `toFixed` goes up. */
function fixed(size: number, precision: number): string {
  const text = size.toFixed(precision);
  const exact = size < 1e21 ? size.toFixed(FRACTION_MAX) : '';
  const rest = exact.slice(exact.indexOf('.') + 1 + precision);
  const below = exact.slice(0, exact.length - rest.length).replace(/\.$/, '');
  return /^50*$/.test(rest) && /[02468]$/.test(below) ? below : text;
}

/** Go's exponents have two digits at least. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

function signed(isBelow: boolean, prefix: string, digits: string, spec: Spec): string {
  const plus = spec.flags.includes('+') ? '+' : spec.flags.includes(' ') ? ' ' : '';
  const sign = (isBelow ? '-' : plus) + prefix;
  const isZeros = spec.flags.includes('0') && !spec.flags.includes('-');
  if (!isZeros) return padded(sign + digits, { ...spec, flags: spec.flags.replace('0', '') });
  return sign + digits.padStart(spec.width - sign.length, '0');
}

function padded(text: string, { flags, width }: Spec): string {
  const missing = width - Array.from(text).length;
  if (missing <= 0) return text;
  if (flags.includes('-')) return text + ' '.repeat(missing);
  return (flags.includes('0') ? '0' : ' ').repeat(missing) + text;
}

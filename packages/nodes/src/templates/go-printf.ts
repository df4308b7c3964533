/** `fmt.Sprintf` for the verbs that templates use. */
import { formatted, GoFloat, jsonOf, typeName, type GoValue } from './go-values.ts';

const VERB = /%([-+# 0]*)(\d+|\*)?(?:\.(\d+))?([a-zA-Z%])/g;

/** Formats as Go does; a verb that does not fit its operand shows as `%!d(string=x)`. */
export function sprintf(format: string, values: readonly GoValue[]): string {
  let next = 0;
  const text = format.replaceAll(
    VERB,
    (_, flags: string, width: string | undefined, precision: string | undefined, verb: string) => {
      if (verb === '%') return '%';
      if (next >= values.length) return `%!${verb}(MISSING)`;
      const value = values[next++];
      return padded(one(verb, flags, precision, value), flags, Number(width ?? 0));
    },
  );
  if (next >= values.length) return text;
  const extra = values.slice(next).map((value) => `${typeName(value)}=${formatted(value)}`);
  return `${text}%!(EXTRA ${extra.join(', ')})`;
}

function padded(text: string, flags: string, width: number): string {
  if (flags.includes('-')) return text.padEnd(width);
  const isNumber = /^[+-]?\d/.test(text);
  if (!flags.includes('0') || !isNumber) return text.padStart(width);
  const sign = /^[+-]/.exec(text)?.[0] ?? '';
  return sign + text.slice(sign.length).padStart(width - sign.length, '0');
}

function one(verb: string, flags: string, precision: string | undefined, value: GoValue): string {
  const bad = `%!${verb}(${typeName(value)}=${formatted(value)})`;
  switch (verb) {
    case 'v':
      return formatted(value);
    case 's':
      if (typeof value === 'bigint' || typeof value === 'boolean') return bad;
      return precision === undefined
        ? formatted(value)
        : formatted(value).slice(0, Number(precision));
    case 'q':
      return JSON.stringify(jsonOf(value));
    case 'T':
      return typeName(value);
    case 't':
      return typeof value === 'boolean' ? String(value) : bad;
    case 'd':
      if (typeof value !== 'bigint') return bad;
      return flags.includes('+') && value >= 0n ? `+${value}` : String(value);
    case 'x':
    case 'X':
      return hex(verb, value) ?? bad;
    case 'b':
      return typeof value === 'bigint' ? value.toString(2) : bad;
    case 'o':
      return typeof value === 'bigint' ? value.toString(8) : bad;
    case 'c':
      return typeof value === 'bigint' ? String.fromCodePoint(Number(value)) : bad;
    case 'f':
    case 'F':
      return value instanceof GoFloat ? value.value.toFixed(Number(precision ?? 6)) : bad;
    case 'e':
    case 'g':
      return value instanceof GoFloat ? formatted(value) : bad;
    default:
      return bad;
  }
}

function hex(verb: string, value: GoValue): string | undefined {
  if (typeof value !== 'bigint' && typeof value !== 'string') return undefined;
  const text = typeof value === 'bigint' ? value.toString(16) : Buffer.from(value).toString('hex');
  return verb === 'X' ? text.toUpperCase() : text;
}

/** How jq writes values into texts: JSON with its members in order, and the formats (`@base64`). */
import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { shown } from './jq-values.ts';

/** JSON as gojq writes it: members in the order of their names. */
export function jsonOf(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`;
  if (!isObject(value)) return numberText(value);
  const names = Object.keys(value).toSorted();
  const members = names.map(
    (name) => `${JSON.stringify(name)}:${jsonOf(ownMember(value, name) ?? null)}`,
  );
  return `{${members.join(',')}}`;
}

function numberText(value: JsonValue): string {
  if (typeof value !== 'number' || Number.isFinite(value)) return JSON.stringify(value);
  if (Number.isNaN(value)) return 'null';
  return value > 0 ? '1.7976931348623157e+308' : '-1.7976931348623157e+308';
}

/** A text as it stands, all else as JSON. */
export function jsonText(value: JsonValue): string {
  return typeof value === 'string' ? value : jsonOf(value);
}

const HTML: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '&': '&amp;',
  "'": '&#39;',
  '"': '&quot;',
};

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function base32(text: string): string {
  const bits = Array.from(Buffer.from(text), (byte) => byte.toString(2).padStart(8, '0')).join('');
  const digits = bits.match(/.{1,5}/g) ?? [];
  const made = digits.map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('');
  return made.padEnd(Math.ceil(made.length / 8) * 8, '=');
}

function fromBase32(text: string): string {
  const digits = text.replace(/=+$/, '');
  if (/[^A-Z2-7]/.test(digits)) throw new JqError(`cannot decode with @base32d: ${shown(text)}`);
  const bits = Array.from(digits, (one) => BASE32.indexOf(one).toString(2).padStart(5, '0'));
  const bytes = bits.join('').match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2))).toString('utf8');
}

function fromBase64(text: string): string {
  const isText = /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1;
  if (!isText) throw new JqError(`cannot decode with @base64d: ${shown(text)}`);
  return Buffer.from(text, 'base64').toString('utf8');
}

/** The items of a row as `show` writes them. */
function row(
  name: string,
  separator: string,
  show: (value: JsonValue) => string,
): (value: JsonValue) => string {
  return (value) => {
    if (!Array.isArray(value)) throw new JqError(`${name} cannot be applied to: ${shown(value)}`);
    return value
      .map((item) => {
        if (Array.isArray(item) || isObject(item)) {
          throw new JqError(`${name} cannot format: ${shown(item)}`);
        }
        return show(item);
      })
      .join(separator);
  };
}

function shellText(value: JsonValue): string {
  if (Array.isArray(value) || isObject(value)) {
    throw new JqError(`@sh cannot format: ${shown(value)}`);
  }
  return typeof value === 'string' ? `'${value.replaceAll("'", String.raw`'\''`)}'` : jsonOf(value);
}

const TSV: Readonly<Record<string, string>> = {
  '\t': String.raw`\t`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\\': '\\\\',
};

export const JQ_FORMATS: Readonly<Record<string, (value: JsonValue) => string>> = {
  '@text': jsonText,
  '@json': jsonOf,
  '@html': (value) => jsonText(value).replaceAll(/[<>&'"]/g, (one) => ownMember(HTML, one) ?? one),
  '@uri': (value) =>
    encodeURIComponent(jsonText(value)).replaceAll(
      /[!'()*]/g,
      (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
    ),
  '@urid': (value) => {
    try {
      return decodeURIComponent(jsonText(value));
    } catch (error) {
      throw new JqError(`@urid: ${(error as Error).message}`);
    }
  },
  '@csv': row('@csv', ',', (item) => {
    if (item === null) return '';
    return typeof item === 'string' ? `"${item.replaceAll('"', '""')}"` : jsonOf(item);
  }),
  '@tsv': row('@tsv', '\t', (item) => {
    if (item === null) return '';
    return jsonText(item).replaceAll(/[\t\n\r\\]/g, (one) => ownMember(TSV, one) ?? one);
  }),
  '@sh': (value) => (Array.isArray(value) ? value.map(shellText).join(' ') : shellText(value)),
  '@base64': (value) => Buffer.from(jsonText(value)).toString('base64'),
  '@base64d': (value) => fromBase64(jsonText(value)),
  '@base32': (value) => base32(jsonText(value)),
  '@base32d': (value) => fromBase32(jsonText(value)),
};

/**
 * The formats of strings that the server checks (`strfmt` with the Kubernetes names, as CRDs may
 * use them since 1.34). Dashes in names do not count: `date-time` is `datetime`.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { parseDurationFormat } from './duration-format.ts';
import { isEmail } from '../../gotext/mail-address.ts';
import { isRequestUri } from '../../gotext/go-url.ts';

export type FormatCheck = (text: string) => boolean;

const PLAIN_LETTER = String.raw`[a-zA-Z0-9\p{S}\p{L}]`;
const HOST_LABEL = String.raw`${PLAIN_LETTER}(?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}${PLAIN_LETTER})?`;
const HOSTNAME = new RegExp(
  `^(?:${PLAIN_LETTER}(?:-?${PLAIN_LETTER}{0,62})?` +
    String.raw`|(?:${HOST_LABEL}\.)+[a-zA-Z\p{L}]{2,63})$`,
  'u',
);
const HOSTNAME_BYTES_MAX = 255;
const HOST_LABEL_BYTES_MAX = 63;
const SHORT_NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const SHORT_NAME_MAX = 63;
const LONG_NAME_MAX = 253;

const HEX = '[0-9a-f]';
const LEAF = `${HEX}{4}-?${HEX}{12}`;
const HEAD = `^${HEX}{8}-?${HEX}{4}-?`;
const VARIANT_LEAF = `[89ab]${HEX}{3}-?${HEX}{12}`;

const OCTET = String.raw`(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])`;
const OCTETS = String.raw`${OCTET}\s*,\s*${OCTET}\s*,\s*${OCTET}`;
const CARD =
  '^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}' +
  '|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$';

function matching(pattern: string | RegExp, flags = ''): FormatCheck {
  const expression = new RegExp(pattern, flags);
  return (text) => expression.test(text);
}

function isHostname(text: string): boolean {
  if (!HOSTNAME.test(text) || Buffer.byteLength(text) > HOSTNAME_BYTES_MAX) return false;
  return text.split('.').every((label) => Buffer.byteLength(label) <= HOST_LABEL_BYTES_MAX);
}

/** Upstream tolerates zeros in front of the numbers. */
function withoutLeadingZeros(address: string): string {
  return address.replaceAll(/(?<=^|[.:])0\d+(?=\.|$)/g, (zeros) => zeros.replace(/^0+(?=\d)/, ''));
}

function isSloppyIpv4(text: string): boolean {
  if (!text.includes('.')) return false;
  const address = withoutLeadingZeros(text);
  return isIPv4(address) || (isIPv6(address) && !text.includes('%'));
}

function isStrictIpv6(text: string): boolean {
  return isIPv6(text) && !text.includes('%');
}

function isSloppyCidr(text: string): boolean {
  const slash = text.indexOf('/');
  const bits = text.slice(slash + 1);
  if (slash < 0 || !/^\d{1,3}$/.test(bits)) return false;
  const address = withoutLeadingZeros(text.slice(0, slash));
  if (isIPv4(address)) return Number(bits) <= 32;
  return isStrictIpv6(address) && Number(bits) <= 128;
}

/** 6, 8 or 20 bytes: pairs between colons or dashes, or fours between points. */
function isMac(text: string): boolean {
  const separator = text[2] === ':' || text[2] === '-' ? text[2] : text[4] === '.' ? '.' : '';
  if (separator === '') return false;
  const parts = text.split(separator);
  const width = separator === '.' ? 4 : 2;
  const bytes = (parts.length * width) / 2;
  const isWhole = parts.every((part) => part.length === width && /^[0-9a-fA-F]+$/.test(part));
  return isWhole && (bytes === 6 || bytes === 8 || bytes === 20);
}

function isIsbn10(text: string): boolean {
  const digits = text.replaceAll(/[\s-]+/g, '');
  if (!/^(?:[0-9]{9}X|[0-9]{10})$/.test(digits)) return false;
  let sum = digits[9] === 'X' ? 100 : 10 * Number(digits[9]);
  for (let i = 0; i < 9; i++) sum += (i + 1) * Number(digits[i]);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replaceAll(/[\s-]+/g, '');
  if (!/^[0-9]{13}$/.test(digits)) return false;
  let sum = 0;
  for (let i = 0; i < 12; i++) sum += (i % 2 === 0 ? 1 : 3) * Number(digits[i]);
  return Number(digits[12]) === (10 - (sum % 10)) % 10;
}

function isCreditCard(text: string): boolean {
  const digits = text.replaceAll(/[^0-9]+/g, '');
  if (!new RegExp(CARD).test(digits)) return false;
  let sum = 0;
  for (let i = 1; i <= digits.length; i++) {
    const digit = Number(digits[digits.length - i]);
    const doubled = i % 2 === 0 ? digit * 2 : digit;
    sum += doubled >= 10 ? (doubled % 10) + 1 : doubled;
  }
  return sum % 10 === 0;
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (match === null) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 && isLeap ? 29 : (DAYS[month - 1] ?? 0);
  return day >= 1 && day <= days;
}

const TIME_OF_DAY = /^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$/;

function isDateTime(text: string): boolean {
  const [date = '', time] = text.toLowerCase().split('t');
  if (text.length < 4 || time === undefined || !isDate(date)) return false;
  const [, hours = '', minutes = '', seconds = ''] = TIME_OF_DAY.exec(time) ?? ['', '99'];
  return hours <= '23' && minutes <= '59' && seconds <= '59';
}

const always: FormatCheck = () => true;

const CHECKS: Readonly<Record<string, FormatCheck>> = {
  bsonobjectid: matching('^[0-9a-fA-F]{24}$'),
  uri: isRequestUri,
  email: isEmail,
  hostname: isHostname,
  ipv4: isSloppyIpv4,
  ipv6: isStrictIpv6,
  cidr: isSloppyCidr,
  mac: isMac,
  uuid: matching(`${HEAD}${HEX}{4}-?${LEAF}$`, 'i'),
  uuid3: matching(`${HEAD}3${HEX}{3}-?${LEAF}$`, 'i'),
  uuid4: matching(`${HEAD}4${HEX}{3}-?${VARIANT_LEAF}$`, 'i'),
  uuid5: matching(`${HEAD}5${HEX}{3}-?${VARIANT_LEAF}$`, 'i'),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: matching(String.raw`^(?=.{11}$)\d{3}[- ]?\d{2}[- ]?\d{4}$`),
  hexcolor: matching('^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$'),
  rgbcolor: matching(String.raw`^rgb\(\s*${OCTETS}\s*\)$`),
  byte: matching(
    /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/,
  ),
  password: always,
  date: isDate,
  duration: (text) => parseDurationFormat(text) !== undefined,
  datetime: isDateTime,
  k8sshortname: (text) => text.length <= SHORT_NAME_MAX && SHORT_NAME.test(text),
  k8slongname: (text) =>
    text.length <= LONG_NAME_MAX && text.split('.').every((part) => SHORT_NAME.test(part)),
};

/** The check of a format of strings; null where the server knows none of that name. */
export function formatCheck(format: string): FormatCheck | null {
  const name = format.replaceAll('-', '');
  return Object.hasOwn(CHECKS, name) ? (CHECKS[name] ?? null) : null;
}

/**
 * What counts of a declared format: '' where the server does not know it for values of this type,
 * which it then leaves unchecked (and warns about when the definition is written).
 */
export function effectiveFormat(type: string, format: string): string {
  switch (type) {
    case '':
    case 'string':
      return formatCheck(format) === null ? '' : format;
    case 'integer':
      return format === 'int32' || format === 'int64' ? format : '';
    case 'number':
      return format === 'float' || format === 'double' ? format : '';
    default:
      return '';
  }
}

/** Functions of sprig that cut lines, read URLs, and those of chance. */
import { isMap, memberOf, type GoMap, type GoValue } from './go-values.ts';
import { connected, pascalCase } from './sprig-cases.ts';
import { intOf, textOf } from './sprig-functions.ts';
import type { TemplateFunctions } from './template-run.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const ASCII: string = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join('');
/** Random text that one function may make. */
const RANDOM_LENGTH_MAX = 1024 * 1024;

/** Lines of at most `width`; words that are longer are cut where `cutsWords`, else kept whole. */
function wrapped(width: number, newLine: string, cutsWords: boolean, text: string): string {
  let made = '';
  let at = 0;
  while (text.length - at > width) {
    if (text[at] === ' ') {
      at++;
      continue;
    }
    const space = text.lastIndexOf(' ', at + width);
    const later = space >= at || cutsWords ? space : text.indexOf(' ', at + width);
    if (later >= at) {
      made += text.slice(at, later) + newLine;
      at = later + 1;
    } else if (cutsWords) {
      made += text.slice(at, at + width) + newLine;
      at += width;
    } else {
      return made + text.slice(at);
    }
  }
  return made + text.slice(at);
}

/** A part of the text from near `offset`, with marks where something is left out. */
function abbreviatedBoth(left: number, width: number, text: string): string {
  if (width < 4 || (left > 0 && width < 7) || text.length <= width) return text;
  const offset = Math.min(left, text.length, text.length - (width - 3));
  if (offset <= 4) return `${text.slice(0, width - 3)}...`;
  if (offset + width - 3 >= text.length) return `...${text.slice(text.length - (width - 3))}`;
  return `...${text.slice(offset, offset + width - 6)}...`;
}

function decoded32(text: string): string {
  const digits = text.replace(/(?<!=)=+$/, '');
  const bits = Array.from(digits, (digit) => BASE32.indexOf(digit).toString(2).padStart(5, '0'));
  const bytes = bits.join('').match(/.{8}/g) ?? [];
  const bad = Array.from(digits).findIndex((digit) => !BASE32.includes(digit));
  if (bad >= 0) return `illegal base32 data at input byte ${bad}`;
  if (text.length % 8 > 0) {
    return `illegal base32 data at input byte ${text.length - (text.length % 8)}`;
  }
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2))).toString('utf8');
}

function parsedUrl(text: string): GoMap {
  const escape = /%(?![\da-f]{2}).{0,2}/is.exec(text)?.[0];
  if (escape !== undefined) throw new Error(`invalid URL escape ${JSON.stringify(escape)}`);
  const [, scheme = '', rest = ''] = /^(?:([a-z][a-z\d+.-]*):)?(.*)$/is.exec(text) ?? [];
  const [, before = '', query = '', fragment = ''] =
    /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(rest) ?? [];
  const [, userinfo = '', host = '', path = ''] = /^\/\/(?:([^/@]*)@)?([^/]*)(.*)$/s.exec(
    before,
  ) ?? ['', '', '', before];
  const isOpaque = scheme !== '' && !before.startsWith('/');
  return {
    ...{ scheme: scheme.toLowerCase(), userinfo, host, query, fragment },
    hostname: host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1'),
    path: isOpaque ? '' : path,
    opaque: isOpaque ? before : '',
  };
}

/** What Go escapes in the path of a URL. */
const UNSAFE_IN_PATH = /[^A-Za-z0-9\-_.~$&+,/:;=@!'()*]+/gu;

function joinedUrl(parts: GoValue): string {
  const part = (name: string): string => {
    const value = isMap(parts) ? memberOf(parts, name) : undefined;
    return value === undefined ? '' : textOf(value);
  };
  const before = (mark: string, text: string): string => (text === '' ? '' : mark + text);
  const user = part('userinfo') === '' ? '' : `${part('userinfo')}@`;
  const place = part('host') === '' ? '' : `//${user}${part('host')}`;
  const isApart = place !== '' && part('path') !== '' && !part('path').startsWith('/');
  const own = part('path').replaceAll(UNSAFE_IN_PATH, encodeURIComponent);
  const path = part('opaque') || `${place}${isApart ? '/' : ''}${own}`;
  const scheme = part('scheme') === '' ? '' : `${part('scheme')}:`;
  return `${scheme}${path}${before('?', part('query'))}${before('#', part('fragment'))}`;
}

export const SPRIG_LINES: TemplateFunctions = {
  abbrevboth: (left, right, value) =>
    abbreviatedBoth(Number(intOf(left)), Number(intOf(right)), textOf(value)),
  b32dec: (value) => decoded32(textOf(value)),
  camelcase: (value) => pascalCase(textOf(value)),
  snakecase: (value) => connected(textOf(value), '_'),
  kebabcase: (value) => connected(textOf(value), '-'),
  wrap: (width, value) => wrapped(Math.max(1, Number(intOf(width))), '\n', false, textOf(value)),
  wrapWith: (width, line, value) =>
    wrapped(Math.max(1, Number(intOf(width))), textOf(line) || '\n', true, textOf(value)),
  urlParse: (value) => parsedUrl(textOf(value)),
  urlJoin: joinedUrl,
};

/** Those of chance. */
export function chanceFunctions(random: () => number): TemplateFunctions {
  const below = (count: number): number => Math.floor(random() * count);
  const text = (alphabet: string) => (count: GoValue) => {
    const length = Math.max(0, Number(intOf(count)));
    if (length > RANDOM_LENGTH_MAX) throw new Error('the random text is too long');
    return Array.from({ length }, () => alphabet[below(alphabet.length)] ?? '').join('');
  };
  const bytes = (count: number): Buffer =>
    Buffer.from(Array.from({ length: count }, () => below(256)));
  return {
    randAlpha: text(LETTERS),
    randAlphaNum: text(LETTERS + DIGITS),
    randNumeric: text(DIGITS),
    randAscii: text(ASCII),
    randBytes: (count) =>
      bytes(Math.min(RANDOM_LENGTH_MAX, Number(intOf(count)))).toString('base64'),
    randInt: (from, to) => {
      const count = Number(intOf(to) - intOf(from));
      if (count <= 0) throw new Error('randInt: the second number must be larger');
      return intOf(from) + BigInt(below(count));
    },
    shuffle: (value) => {
      const runes = Array.from(textOf(value));
      for (let at = runes.length - 1; at > 0; at--) {
        const other = below(at + 1);
        [runes[at], runes[other]] = [runes[other] ?? '', runes[at] ?? ''];
      }
      return runes.join('');
    },
    uuidv4: () => {
      const raw = bytes(16);
      raw[6] = ((raw[6] ?? 0) & 0x0f) | 0x40;
      raw[8] = ((raw[8] ?? 0) & 0x3f) | 0x80;
      return raw.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    },
  };
}

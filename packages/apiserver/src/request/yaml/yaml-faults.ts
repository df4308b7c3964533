/** What upstream's parser of YAML refuses, and the library does not: it knows YAML 1.2, too. */

import { isUtf8 } from 'node:buffer';

/** A node of a document as the library parses it. */
export interface YamlNode {
  readonly anchor?: string | undefined;
  /** Of an alias: the anchor that it names. */
  readonly source?: unknown;
  readonly value?: unknown;
  readonly range?: readonly number[] | null;
  readonly items?: readonly (YamlNode | YamlPair)[];
  /** Of an alias: what it stands for. */
  resolve?: unknown;
}

interface YamlPair {
  readonly key: YamlNode | null;
  readonly value: YamlNode | null;
}

// oxlint-disable-next-line no-control-regex -- these are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u0084\u0086-\u009f]/;
/** Upstream takes no halves of characters, not even two that make a whole one. */
const SURROGATE = /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F][0-9a-fA-F]{2}/;

/** What is wrong with bytes that are no UTF-8, of which upstream's reader tells the first. */
export function octetFault(bytes: Buffer): string {
  if (isUtf8(bytes)) return '';
  for (let at = 0; at < bytes.length;) {
    const width = widthOf(bytes[at] ?? 0);
    if (width === 0) return 'invalid leading UTF-8 octet';
    if (at + width > bytes.length) return 'incomplete UTF-8 octet sequence';
    let code = (bytes[at] ?? 0) & (width === 1 ? 0x7f : 0xff >> (width + 1));
    for (let next = 1; next < width; next++) {
      const octet = bytes[at + next] ?? 0;
      if ((octet & 0xc0) !== 0x80) return 'invalid trailing UTF-8 octet';
      code = code * 64 + (octet & 0x3f);
    }
    const least = [0, 0, 0x80, 0x800, 0x10000][width] ?? 0;
    if (code < least) return 'invalid length of a UTF-8 sequence';
    if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return 'invalid Unicode character';
    at += width;
  }
  return '';
}

/** Octets of the character that one begins with such an octet; 0 where none does. */
function widthOf(octet: number): number {
  if (octet < 0x80) return 1;
  if ((octet & 0xe0) === 0xc0) return 2;
  if ((octet & 0xf0) === 0xe0) return 3;
  return (octet & 0xf8) === 0xf0 ? 4 : 0;
}

/** What is wrong with a text before it is looked at closer; '' where nothing is. */
export function textFault(text: string): string {
  if (CONTROLS.test(text)) return 'control characters are not allowed';
  if (text.includes('"') && SURROGATE.test(text))
    return 'found invalid Unicode character escape code';
  const [, directive = '', rest = ''] = /^%(\S*)[ \t]*(.*)/.exec(text) ?? [];
  if (directive === '') return /^\.\.\.\s*$/.test(text) ? 'did not find expected node content' : '';
  if (directive === 'YAML') return /^1\.1\b/.test(rest) ? '' : 'found incompatible YAML document';
  return directive === 'TAG' ? '' : 'found unknown directive name';
}

/** Aliases of a document with all that they stand for, counted and in bytes. */
const ALIASES_MAX = 100_000;
const EXPANDED_BYTES_MAX = 16 * 1024 * 1024;

interface Size {
  aliases: number;
  bytes: number;
}

/** What is wrong with the anchors of a document, or the keys of its mappings; '' if nothing. */
export function contentsFault(contents: YamlNode | null): string {
  const walk = new Walk();
  walk.sizeOf(contents);
  return walk.fault;
}

class Walk {
  fault = '';
  readonly #sizes = new Map<string, Size | null>();
  readonly #nodes = new Map<string, YamlNode>();

  sizeOf(node: YamlNode | null): Size {
    const size = { aliases: 0, bytes: 0 };
    if (node === null || this.fault !== '') return size;
    const { anchor, range } = node;
    if (anchor !== undefined) {
      this.#sizes.set(anchor, null);
      this.#nodes.set(anchor, node);
    }
    if (node.items === undefined && typeof node.source === 'string' && !('value' in node)) {
      const target = this.#nodes.get(node.source);
      // the library goes through the whole document for each alias that is merged
      if (target !== undefined) node.resolve = () => target;
      return this.#aliasSize(node.source);
    }
    size.bytes = (range?.[1] ?? 0) - (range?.[0] ?? 0);
    for (const item of node.items ?? []) {
      if (!isPair(item)) this.#add(size, item);
      else {
        this.#checkKey(item);
        this.#add(size, item.key);
        this.#add(size, item.value);
      }
    }
    if (anchor !== undefined) this.#sizes.set(anchor, size);
    return size;
  }

  #aliasSize(name: string): Size {
    const known = this.#sizes.get(name);
    if (known === null) this.fault ||= `yaml: anchor '${name}' value contains itself`;
    return { aliases: 1 + (known?.aliases ?? 0), bytes: known?.bytes ?? 0 };
  }

  #add(size: Size, node: YamlNode | null): void {
    const own = this.sizeOf(node);
    size.aliases += own.aliases;
    if (own.aliases > 0) size.bytes += own.bytes;
    if (size.aliases > ALIASES_MAX || size.bytes > EXPANDED_BYTES_MAX) {
      this.fault ||= 'yaml: document contains excessive aliasing';
    }
  }

  #checkKey({ key, value }: YamlPair): void {
    if (key?.items !== undefined) this.fault ||= `yaml: invalid map key: ${goText(key)}`;
    if (key !== null && (key.items !== undefined || key.value !== null)) return;
    const named = 'unsupported map key of type: %!s(<nil>), key: <nil>';
    this.fault ||= `${named}, value: ${goText(value)}`;
  }
}

function isPair(item: YamlNode | YamlPair): item is YamlPair {
  return 'key' in item;
}

/** A node as Go prints what it decodes to. */
function goText(node: YamlNode | null): string {
  if (node?.items === undefined) return goScalar(node?.value ?? null);
  const texts = node.items.map((item) =>
    isPair(item) ? `${goText(item.key)}:${goText(item.value)}` : goText(item),
  );
  const isMap = node.items.some(isPair);
  return `${isMap ? 'map[interface {}]interface {}' : '[]interface {}'}{${texts.join(', ')}}`;
}

function goScalar(value: unknown): string {
  if (value === null) return 'interface {}(nil)';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (typeof value === 'boolean') return String(value);
  return JSON.stringify(value);
}

/** Archives in the format of POSIX (ustar): the same entries make the same octets. */
import { gzipSync } from 'node:zlib';

export interface TarEntry {
  /** Without a slash in front; at most 100 octets. */
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'link';
  readonly mode: number;
  readonly owner: number;
  readonly content?: Uint8Array;
  /** Where a link leads. */
  readonly target?: string;
}

const BLOCK_BYTES = 512;
const PATH_BYTES_MAX = 100;
const KINDS = { file: '0', link: '2', directory: '5' } as const;

/** The archive, uncompressed. Throws where a path is too long for the format. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    const content = entry.content ?? new Uint8Array();
    parts.push(header(entry, content.length), content);
    const rest = content.length % BLOCK_BYTES;
    if (rest > 0) parts.push(Buffer.alloc(BLOCK_BYTES - rest));
  }
  parts.push(Buffer.alloc(2 * BLOCK_BYTES));
  return Buffer.concat(parts);
}

/** Compressed so that the same archive makes the same octets on every machine. */
export function gzip(bytes: Uint8Array): Buffer {
  const packed = gzipSync(bytes, { level: 9 });
  // The octet that tells the system it was made on (RFC 1952, 2.3): unknown.
  packed[9] = 255;
  return packed;
}

function header({ path, kind, mode, owner, target = '' }: TarEntry, sizeBytes: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const name = kind === 'directory' ? `${path}/` : path;
  if (Buffer.byteLength(name) > PATH_BYTES_MAX || Buffer.byteLength(target) > PATH_BYTES_MAX) {
    throw new Error(`${name}: more than ${PATH_BYTES_MAX} octets`);
  }
  block.write(name, 0);
  block.write(octal(mode, 7), 100);
  block.write(octal(owner, 7), 108);
  block.write(octal(owner, 7), 116);
  block.write(octal(sizeBytes, 11), 124);
  block.write(octal(0, 11), 136);
  block.write(' '.repeat(8), 148);
  block.write(KINDS[kind], 156);
  block.write(target, 157);
  block.write('ustar\u000000', 257);
  const sum = block.reduce((total, octet) => total + octet, 0);
  block.write(`${octal(sum, 6)}\u0000 `, 148);
  return block;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

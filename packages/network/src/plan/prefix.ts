/**
 * Prefixes of addresses as numbers: the `index`-th piece of a prefix is its base plus the index,
 * shifted, and the piece of an address is a shift back. Nothing is stored for either.
 */
import { ipText, networkStart, parseIp, parseNetwork } from '@megaplane/machinery/ip-address';

/** `bits` wide addresses whose first `length` bits are those of `base`; the others of it are 0. */
export interface Prefix {
  readonly base: bigint;
  readonly length: number;
  readonly bits: 32 | 128;
}

/** Reads `fd00::/76`; a text says what is wrong with it, bits beyond the length for one. */
export function parsePrefix(text: string): Prefix | string {
  const network = parseNetwork(text);
  if (network === undefined) return `${JSON.stringify(text)} is no prefix such as 2001:db8::/64`;
  const bits = network.bitsMax === 32 ? 32 : 128;
  const base = numberOf(networkStart(network), bits);
  if (base !== numberOf(network.address.bytes, bits)) {
    const own = prefixText({ base, length: network.bits, bits });
    return `${text} has bits beyond its length: ${own} is meant, or a longer prefix`;
  }
  return { base, length: network.bits, bits };
}

/** Reads an address; undefined for text that is none. */
export function parseAddress(text: string): { value: bigint; bits: 32 | 128 } | undefined {
  const ip = parseIp(text);
  if (ip === undefined) return undefined;
  const bits = text.includes(':') ? 128 : 32;
  return { value: numberOf(ip.bytes, bits), bits };
}

function numberOf(bytes: Uint8Array, bits: 32 | 128): bigint {
  let value = 0n;
  const from = bytes.length === 16 && bits === 32 ? 12 : 0;
  for (const byte of bytes.subarray(from)) value = (value << 8n) | BigInt(byte);
  return value;
}

export function addressText(value: bigint, bits: 32 | 128): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((at) => (value >> at) & 255n).join('.');
  const bytes = new Uint8Array(16);
  for (let at = 15, rest = value; at >= 0; at--, rest >>= 8n) bytes[at] = Number(rest & 255n);
  return ipText({ bytes, isIpv4: false });
}

export function prefixText({ base, length, bits }: Prefix): string {
  return `${addressText(base, bits)}/${length}`;
}

/** Addresses of a prefix. */
export function sizeOf({ length, bits }: Prefix): bigint {
  return 1n << BigInt(bits - length);
}

/** The `index`-th piece of `length` bits. The caller keeps `index` below the number of pieces. */
export function pieceOf(prefix: Prefix, length: number, index: number): Prefix {
  const { base, bits } = prefix;
  return { base: base + (BigInt(index) << BigInt(bits - length)), length, bits };
}

/** The number of the piece of `length` bits that holds `value`; -1 where none does. */
export function indexIn(prefix: Prefix, length: number, value: bigint): number {
  if (value < prefix.base || value >= prefix.base + sizeOf(prefix)) return -1;
  return Number((value - prefix.base) >> BigInt(prefix.bits - length));
}

export function overlaps(left: Prefix, right: Prefix): boolean {
  if (left.bits !== right.bits) return false;
  return left.base < right.base + sizeOf(right) && right.base < left.base + sizeOf(left);
}

/** All of `inner` lies in `outer`. */
export function holds(outer: Prefix, inner: Prefix): boolean {
  return outer.bits === inner.bits && outer.length <= inner.length && overlaps(outer, inner);
}

/**
 * IP addresses and networks as upstream's rules see them: what an old field takes (zeros in front,
 * IPv4 mapped into IPv6) is told apart from what a new one must be.
 */

/** An address: 16 bytes, IPv4 mapped into IPv6. */
export interface IpAddress {
  readonly bytes: Uint8Array;
  readonly isIpv4: boolean;
  /** An IPv4 part has zeros in front, which other programs read as octal. */
  readonly hasLeadingZeros: boolean;
  /** IPv4 that is written as IPv6, `::ffff:1.2.3.4`. */
  readonly isMapped: boolean;
}

/** A network: an address, as written, and the bits that count. */
export interface IpNetwork {
  readonly address: IpAddress;
  /** Of 32 or 128, as the address was written. */
  readonly bits: number;
  readonly bitsMax: number;
  readonly hasLeadingZeros: boolean;
}

const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** Reads an address; undefined for text that is none. A zone makes it none. */
export function parseIp(text: string): IpAddress | undefined {
  if (text.includes(':')) return parseIpv6(text);
  const parts = ipv4Parts(text);
  if (parts === undefined) return undefined;
  const bytes = new Uint8Array(16);
  bytes[10] = bytes[11] = 0xff;
  bytes.set(parts.numbers, 12);
  return { bytes, isIpv4: true, hasLeadingZeros: parts.hasLeadingZeros, isMapped: false };
}

function ipv4Parts(text: string): { numbers: number[]; hasLeadingZeros: boolean } | undefined {
  const numbers: number[] = [];
  let hasLeadingZeros = false;
  let from = 0;
  let value = 0;
  for (let at = 0; at <= text.length; at++) {
    const code = at === text.length ? DOT : text.charCodeAt(at);
    if (code !== DOT) {
      if (code < ZERO || code > NINE || value > 255) return undefined;
      value = value * 10 + code - ZERO;
      continue;
    }
    if (at === from || value > 255 || numbers.length === 4) return undefined;
    hasLeadingZeros ||= at - from > 1 && text.charCodeAt(from) === ZERO;
    numbers.push(value);
    value = 0;
    from = at + 1;
  }
  return numbers.length === 4 ? { numbers, hasLeadingZeros } : undefined;
}

function parseIpv6(text: string): IpAddress | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [left, right] = halves.map((half) => (half === '' ? [] : half.split(':')));
  if (left === undefined) return undefined;
  const groups = [...left, ...(right ?? [])];
  let hasLeadingZeros = false;
  let tail: number[] = [];
  if (groups.at(-1)?.includes('.') === true) {
    const parts = ipv4Parts(groups.pop() ?? '');
    if (parts === undefined) return undefined;
    ({ numbers: tail, hasLeadingZeros } = parts);
  }
  if (!groups.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group))) return undefined;
  const missing = 16 - groups.length * 2 - tail.length;
  if (right === undefined ? missing !== 0 : missing < 2) return undefined;
  const bytes = new Uint8Array(16);
  const before = right === undefined ? groups.length : left.length;
  for (const [index, group] of groups.entries()) {
    const number = Number.parseInt(group, 16);
    const at = index * 2 + (index < Math.min(before, groups.length) ? 0 : missing);
    bytes[at] = number >> 8;
    bytes[at + 1] = number & 0xff;
  }
  bytes.set(tail, 16 - tail.length);
  const isMapped = MAPPED_PREFIX.every((byte, at) => bytes[at] === byte);
  return { bytes, isIpv4: isMapped, hasLeadingZeros, isMapped };
}

/** The text of an address: RFC 5952, and IPv4 with dots however it was written. */
export function ipText({ bytes, isIpv4 }: Pick<IpAddress, 'bytes' | 'isIpv4'>): string {
  if (isIpv4) return `${bytes[12]}.${bytes[13]}.${bytes[14]}.${bytes[15]}`;
  const groups: number[] = [];
  for (let at = 0; at < 16; at += 2) groups.push((bytes[at] ?? 0) * 256 + (bytes[at + 1] ?? 0));
  let [start, length] = [-1, 1];
  for (let at = 0; at < 8; at++) {
    let run = 0;
    while (groups[at + run] === 0) run++;
    if (run > length) [start, length] = [at, run];
  }
  const hex = (part: readonly number[]): string =>
    part.map((group) => group.toString(16)).join(':');
  if (start < 0) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

/** Reads `address/bits`; undefined for text that is no network. */
export function parseNetwork(text: string): IpNetwork | undefined {
  const slash = text.indexOf('/');
  const address = slash < 0 ? undefined : parseIp(text.slice(0, slash));
  const bits = text.slice(slash + 1);
  const bitsMax = text.includes(':') ? 128 : 32;
  if (address === undefined || !/^\d{1,}$/.test(bits) || Number(bits) > bitsMax) return undefined;
  const hasLeadingZeros = address.hasLeadingZeros || /^0\d/.test(bits);
  return { address, bits: Number(bits), bitsMax, hasLeadingZeros };
}

/** The network's first address. */
export function networkStart({ address, bits, bitsMax }: IpNetwork): Uint8Array {
  const kept = bits + 128 - bitsMax;
  return address.bytes.map((byte, at) => {
    const here = Math.min(8, Math.max(0, kept - at * 8));
    return byte & (0xff00 >> here) & 0xff;
  });
}

/** True if the address has bits beyond those that count. */
export function hasExcessBits(network: IpNetwork): boolean {
  const start = networkStart(network);
  return network.address.bytes.some((byte, at) => byte !== start[at]);
}

/** The text of a network: its first address and the bits; IPv4 however it was written. */
export function networkText(network: IpNetwork): string {
  const { isIpv4, isMapped } = network.address;
  const bits = isMapped ? Math.max(0, network.bits - 96) : network.bits;
  return `${ipText({ bytes: networkStart(network), isIpv4 })}/${bits}`;
}

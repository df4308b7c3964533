/** URLs, addresses and address ranges, as Kubernetes adds them to CEL. */
import { addressFault } from '../values/address-faults.ts';
import { isIPv4, isIPv6 } from 'node:net';
import { parseGoUrl } from '../../gotext/go-url.ts';
import type { Library } from '../values/functions.ts';
import {
  ArrayList,
  CelError,
  EntryMap,
  Opaque,
  type CelMap,
  type CelValue,
} from '../values/values.ts';

class UrlValue extends Opaque {
  readonly typeName = 'kubernetes.URL';
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
  constructor(scheme: string, host: string, path: string, query: string) {
    super();
    this.scheme = scheme;
    this.host = host;
    this.path = path;
    this.query = query;
  }
  equals(other: Opaque): boolean {
    return other instanceof UrlValue && other.#text() === this.#text();
  }
  #text(): string {
    return `${this.scheme}://${this.host}${this.path}?${this.query}`;
  }
}

/** Absolute URIs and absolute paths, as Go's ParseRequestURI takes them. */
function parseUrl(text: string): UrlValue | CelError {
  const found = text === '' ? 'parse "": empty url' : parseGoUrl(text, true);
  if (typeof found === 'string') {
    return new CelError(`URL parse error during conversion from string: ${found}`);
  }
  return new UrlValue(found.scheme, found.host, found.path, found.query);
}

function hostname({ host }: UrlValue): string {
  if (host.startsWith('[')) return host.slice(1, host.indexOf(']'));
  const colon = host.indexOf(':');
  return colon < 0 ? host : host.slice(0, colon);
}

function portOf({ host }: UrlValue): string {
  const rest = host.startsWith('[') ? host.slice(host.indexOf(']') + 1) : host;
  const colon = rest.lastIndexOf(':');
  return colon < 0 ? '' : rest.slice(colon + 1);
}

/** Characters of a path that Go writes escaped. */
function escapedPath({ path }: UrlValue): string {
  return path.replaceAll(/[^A-Za-z0-9\-._~$&+,/:;=@%!'()*]/gu, (rune) => encodeURIComponent(rune));
}

function queryOf({ query }: UrlValue): CelMap {
  const lists = new Map<string, CelValue[]>();
  // as Go does, what is not escaped well is left out
  const pairs = query.split('&').filter((pair) => !/;|%(?![0-9A-Fa-f]{2})/.test(pair));
  for (const [key, value] of new URLSearchParams(pairs.join('&'))) {
    const own = lists.get(key);
    if (own === undefined) lists.set(key, [value]);
    else own.push(value);
  }
  const map = new EntryMap();
  for (const [key, values] of lists) map.set(key, new ArrayList(values));
  return map;
}

export const URL_LIBRARY: Library = {
  'string_to_url: url(string): kubernetes.URL': parseUrl,
  'is_url_string: isURL(string): bool': (text: string) => parseUrl(text) instanceof UrlValue,
  'url_get_scheme: kubernetes.URL . getScheme(): string': ({ scheme }: UrlValue) => scheme,
  'url_get_host: kubernetes.URL . getHost(): string': ({ host }: UrlValue) => host,
  'url_get_hostname: kubernetes.URL . getHostname(): string': hostname,
  'url_get_port: kubernetes.URL . getPort(): string': portOf,
  'url_get_escaped_path: kubernetes.URL . getEscapedPath(): string': escapedPath,
  'url_get_query: kubernetes.URL . getQuery(): map(string, list(string))': queryOf,
};

/** Bytes of an address: 4 or 16. */
class IpValue extends Opaque {
  readonly typeName = 'net.IP';
  readonly bytes: readonly number[];
  constructor(bytes: readonly number[]) {
    super();
    this.bytes = bytes;
  }
  equals(other: Opaque): boolean {
    return other instanceof IpValue && this.text === other.text;
  }
  override get costSize(): number {
    return this.bytes.length;
  }
  get text(): string {
    return this.bytes.length === 4 ? this.bytes.join('.') : ipv6Text(this.bytes);
  }
}

class CidrValue extends Opaque {
  readonly typeName = 'net.CIDR';
  readonly ip: IpValue;
  readonly length: number;
  constructor(ip: IpValue, length: number) {
    super();
    this.ip = ip;
    this.length = length;
  }
  equals(other: Opaque): boolean {
    return other instanceof CidrValue && this.ip.equals(other.ip) && this.length === other.length;
  }
  override get costSize(): number {
    return Math.ceil(this.length / 8);
  }
}

/** RFC 5952: the longest run of zeros is left out. */
function ipv6Text(bytes: readonly number[]): string {
  const words: number[] = [];
  for (let i = 0; i < 16; i += 2) words.push((bytes[i] ?? 0) * 256 + (bytes[i + 1] ?? 0));
  let best = -1;
  let length = 1;
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && words[end] === 0) end++;
    if (end - i > length) [best, length] = [i, end - i];
  }
  const hex = words.map((word) => word.toString(16));
  if (best < 0) return hex.join(':');
  return `${hex.slice(0, best).join(':')}::${hex.slice(best + length).join(':')}`;
}

function bytesOf(text: string): readonly number[] | null {
  if (isIPv4(text)) return text.split('.').map(Number);
  if (!isIPv6(text) || text.includes('%')) return null;
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  let plain = text;
  if (dotted !== null) {
    const [a = 0, b = 0, c = 0, d = 0] = (dotted[2] ?? '').split('.').map(Number);
    plain = `${dotted[1] ?? ''}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  }
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].flatMap((word) => {
    const value = Number.parseInt(word, 16);
    return [value >> 8, value & 255];
  });
}

function parseIp(text: string): IpValue | CelError {
  const wrong = (why: string): CelError =>
    new CelError(
      `IP Address ${JSON.stringify(text)} parse error during conversion from string: ${why}`,
    );
  const [address = ''] = text.split('%');
  const bytes = text.endsWith('%') ? null : bytesOf(address);
  if (bytes === null) return wrong(`ParseAddr(${JSON.stringify(text)}): ${addressFault(text)}`);
  if (text.includes('%')) {
    return new CelError(`IP address ${JSON.stringify(text)} with zone value is not allowed`);
  }
  if (isMapped(bytes)) {
    return new CelError(`IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`);
  }
  return new IpValue(bytes);
}

function isMapped(bytes: readonly number[]): boolean {
  return (
    bytes.length === 16 &&
    bytes.slice(0, 10).every((byte) => byte === 0) &&
    bytes[10] === 255 &&
    bytes[11] === 255
  );
}

const CIDR_FAILURE = 'network address parse error during conversion from string: ';

function parseCidr(text: string): CidrValue | CelError {
  const wrong = (why: string): CelError =>
    new CelError(`${CIDR_FAILURE.repeat(2)}netip.ParsePrefix(${JSON.stringify(text)}): ${why}`);
  const at = text.lastIndexOf('/');
  if (at < 0) return wrong("no '/'");
  const address = text.slice(0, at);
  const [plain = ''] = address.split('%');
  const bytes = address.endsWith('%') ? null : bytesOf(plain);
  if (bytes === null)
    return wrong(`ParseAddr(${JSON.stringify(address)}): ${addressFault(address)}`);
  if (address.includes('%')) return wrong('IPv6 zones cannot be present in a prefix');
  const bits = text.slice(at + 1);
  if (!/^(?:0|[1-9]\d*)$/.test(bits)) {
    return wrong(`bad bits after slash: ${JSON.stringify(bits)}`);
  }
  const length = Number(bits);
  if (length > bytes.length * 8) return wrong('prefix length out of range');
  if (isMapped(bytes)) {
    return new CelError(
      `${CIDR_FAILURE}IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`,
    );
  }
  return new CidrValue(new IpValue(bytes), length);
}

function masked({ bytes }: IpValue, length: number): IpValue {
  return new IpValue(
    bytes.map((byte, index) => {
      const kept = Math.max(0, Math.min(8, length - index * 8));
      return byte & (0xff << (8 - kept)) & 0xff;
    }),
  );
}

function containsIp({ ip, length }: CidrValue, other: IpValue): boolean {
  if (ip.bytes.length !== other.bytes.length) return false;
  return masked(ip, length).equals(masked(other, length));
}

function containsCidr(own: CidrValue, other: CidrValue): boolean {
  return own.length <= other.length && containsIp(own, masked(other.ip, other.length));
}

function isUnicastLocal({ bytes }: IpValue): boolean {
  if (bytes.length === 4) return bytes[0] === 169 && bytes[1] === 254;
  return bytes[0] === 0xfe && ((bytes[1] ?? 0) & 0xc0) === 0x80;
}

function isMulticastLocal({ bytes }: IpValue): boolean {
  if (bytes.length === 4) return bytes[0] === 224 && bytes[1] === 0 && bytes[2] === 0;
  return bytes[0] === 0xff && ((bytes[1] ?? 0) & 0x0f) === 0x02;
}

function isLoopback({ bytes }: IpValue): boolean {
  if (bytes.length === 4) return bytes[0] === 127;
  return bytes.every((byte, index) => byte === (index === 15 ? 1 : 0));
}

function isGlobal(ip: IpValue): boolean {
  const { bytes } = ip;
  const isMulticast = bytes.length === 4 ? (bytes[0] ?? 0) >> 4 === 14 : bytes[0] === 0xff;
  const isBroadcast = bytes.length === 4 && bytes.every((byte) => byte === 255);
  const isZero = bytes.every((byte) => byte === 0);
  return !isZero && !isLoopback(ip) && !isMulticast && !isUnicastLocal(ip) && !isBroadcast;
}

const orFailure =
  <T extends Opaque>(parse: (text: string) => T | CelError, use: (value: T) => CelValue) =>
  (text: string): CelValue => {
    const value = parse(text);
    return value instanceof CelError ? value : use(value);
  };

export const IP_LIBRARY: Library = {
  'string_to_ip: ip(string): net.IP': parseIp,
  'is_ip: isIP(string): bool': (text: string) => parseIp(text) instanceof IpValue,
  'ip_is_canonical: ip.isCanonical(string): bool': (text: string) =>
    orFailure(parseIp, (ip) => ip.text === text)(text),
  'ip_to_string: string(net.IP): string': ({ text }: IpValue) => text,
  'ip_family: net.IP . family(): int': ({ bytes }: IpValue) => (bytes.length === 4 ? 4n : 6n),
  'ip_is_unspecified: net.IP . isUnspecified(): bool': ({ bytes }: IpValue) =>
    bytes.every((byte) => byte === 0),
  'ip_is_loopback: net.IP . isLoopback(): bool': isLoopback,
  'ip_is_link_local_multicast: net.IP . isLinkLocalMulticast(): bool': isMulticastLocal,
  'ip_is_link_local_unicast: net.IP . isLinkLocalUnicast(): bool': isUnicastLocal,
  'ip_is_global_unicast: net.IP . isGlobalUnicast(): bool': isGlobal,
};

export const CIDR_LIBRARY: Library = {
  'string_to_cidr: cidr(string): net.CIDR': parseCidr,
  'is_cidr: isCIDR(string): bool': (text: string) => parseCidr(text) instanceof CidrValue,
  'cidr_to_string: string(net.CIDR): string': ({ ip, length }: CidrValue) => `${ip.text}/${length}`,
  'cidr_contains_ip_string: net.CIDR . containsIP(string): bool': (own: CidrValue, text: string) =>
    orFailure(
      (address) => {
        const ip = parseIp(address);
        return ip instanceof CelError ? new CelError('no such overload') : ip;
      },
      (ip) => containsIp(own, ip),
    )(text),
  'cidr_contains_ip_ip: net.CIDR . containsIP(net.IP): bool': containsIp,
  'cidr_contains_cidr_string: net.CIDR . containsCIDR(string): bool': (
    own: CidrValue,
    text: string,
  ) => orFailure(parseCidr, (other) => containsCidr(own, other))(text),
  'cidr_contains_cidr: net.CIDR . containsCIDR(net.CIDR): bool': containsCidr,
  'cidr_ip: net.CIDR . ip(): net.IP': ({ ip }: CidrValue) => ip,
  'cidr_prefix_length: net.CIDR . prefixLength(): int': ({ length }: CidrValue) => BigInt(length),
  'cidr_masked: net.CIDR . masked(): net.CIDR': ({ ip, length }: CidrValue) =>
    new CidrValue(masked(ip, length), length),
};

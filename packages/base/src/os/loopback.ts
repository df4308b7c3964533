/** Whether a host is this machine alone, which nobody reaches from elsewhere. */
import { BlockList, isIP } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * `host` is an address, with or without the brackets of a URL, or a name. Of names only `localhost`
 * counts (RFC 6761, section 6.3): `127.example.org` may lead anywhere.
 */
export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  const family = isIP(bare);
  if (family === 0) return bare.toLowerCase() === 'localhost';
  return LOOPBACK.check(bare, family === 6 ? 'ipv6' : 'ipv4');
}

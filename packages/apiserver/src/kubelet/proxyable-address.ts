// shell: asks the resolver
/**
 * Which addresses proxies may lead to: none of the server's own machine or link (upstream's
 * IsProxyableHostname). A name is looked up before it is judged, and the address that was judged is
 * the one that is called: `LOCALHOST` and `2130706433` are names that lead to 127.0.0.1.
 */
import { lookup } from 'node:dns';
import { BlockList, isIP } from 'node:net';

const own = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
] as const) {
  own.addSubnet(network, bits, 'ipv4');
}
own.addAddress('255.255.255.255', 'ipv4');
for (const [network, bits] of [
  // unspecified, loopback, and IPv4 addresses in the form that nobody uses any more
  ['::', 96],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  own.addSubnet(network, bits, 'ipv6');
}

/** What upstream says of one that is not. */
export const NOT_ALLOWED = 'address not allowed';

/** Of an IP address; IPv4 within IPv6 is judged as what it is. */
export function isProxyable(address: string): boolean {
  const [bare = ''] = address.split('%', 1);
  const family = isIP(bare);
  return family !== 0 && !own.check(bare, family === 4 ? 'ipv4' : 'ipv6');
}

/**
 * An address that may be called, of a name or of an address; or why there is none. All addresses of
 * a name must be allowed. Calls back once, of an address in this turn.
 */
export function resolveProxyable(
  host: string,
  done: (found: { readonly address: string } | { readonly why: string }) => void,
): void {
  if (isIP(host) !== 0) {
    done(isProxyable(host) ? { address: host } : { why: NOT_ALLOWED });
    return;
  }
  lookup(host, { all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error !== null || first === undefined) {
      done({ why: `lookup ${host}: no such host` });
    } else if (found.every(({ address }) => isProxyable(address))) {
      done({ address: first.address });
    } else {
      done({ why: NOT_ALLOWED });
    }
  });
}

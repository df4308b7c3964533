/** The networks of Services' addresses, as `--service-cluster-ip-range` tells them. */
import { ipText, networkText, parseIp, parseNetwork } from '@megaplane/machinery/ip-address';
import {
  addressText,
  familiesOf,
  networkOf,
  SERVICE_RANGE,
} from '../registry/service/service-networks.ts';

const FLAG = '--service-cluster-ip-range';
/** Upstream's least. */
const ADDRESSES_MIN = 8n;

/**
 * One network, or one of each family by a comma; `address` is where the server is reached, which
 * the Service `kubernetes` leads to. Throws what is wrong, in upstream's words where it has some.
 */
export function serviceRangesOf(
  flag: string = SERVICE_RANGE,
  address: string = '127.0.0.1',
): readonly string[] {
  const texts = flag.split(',');
  const networks = texts.map((text, at) => {
    const network = parseNetwork(text);
    if (network !== undefined) return network;
    const what = at === 0 ? 'a valid cidr' : 'an ip net';
    throw new Error(`service-cluster-ip-range[${at}] is not ${what}: "${text}"`);
  });
  if (texts.length > 2) throw new Error(`${FLAG} must not contain more than two entries`);
  const ranges = networks.map(networkText);
  for (const [at, { bits, bitsMax }] of networks.entries()) {
    if (1n << BigInt(bitsMax - bits) < ADDRESSES_MIN) {
      const why = `must be at least ${ADDRESSES_MIN} IP addresses`;
      throw new Error(`${FLAG}: the service cluster IP range ${why}: ${ranges[at]}`);
    }
    if (networkOf(ranges[at] ?? '') !== null) continue;
    const why = `shortest allowed prefix length for service CIDR is 64, got ${bits}`;
    throw new Error(`${FLAG}: ${why}: ${ranges[at]}`);
  }
  const [primary, secondary] = familiesOf(ranges);
  if (primary === secondary) {
    throw new Error(`${FLAG}[0] and ${FLAG}[1] must be of different IP family`);
  }
  const reached = parseIp(address);
  if (reached !== undefined && (reached.isIpv4 ? 'IPv4' : 'IPv6') !== primary) {
    const families = `service IP family "${ranges[0]}" must match public address family`;
    throw new Error(`${families} "${ipText(reached)}": name ${FLAG}s of both, that one first`);
  }
  return ranges;
}

/** `10.96.0.1` of `10.96.0.0/16`: where pods reach the API server. */
export function firstAddressOf(range: string): string {
  const network = networkOf(range);
  return network === null ? '' : addressText(network.first, network.family);
}

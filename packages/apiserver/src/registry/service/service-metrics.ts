/** What of addresses and node ports Services have, and what is left, under upstream's names. */
import { labelsText } from '../../metrics/labelled-metrics.ts';
import { printFamily } from '../../metrics/metric-families.ts';
import { NODE_PORTS } from './node-port-range.ts';
import { ADDRESSES, claimedPorts } from './service-claims.ts';
import { holds, networksOf, type Network, type NetworkScope } from './service-networks.ts';
import type { World } from '../../lister/world.ts';
import { IPS, PORTS } from '../../metrics/allocation-counts.ts';

/** Follows the last key of the addresses. */
const ADDRESSES_END = Buffer.from(ADDRESSES.replace(/\/$/, '0'));
const ADDRESSES_START: Buffer = Buffer.from(ADDRESSES);

/** Counts when it is asked: nothing is kept beside the claims themselves. */
export function printAllocations(scope: NetworkScope, lines: string[]): void {
  const { world, services } = scope;
  services.allocations.print(lines);
  const networks = [...networksOf(scope, 'IPv4'), ...networksOf(scope, 'IPv6')];
  const taken = addressesOf(world, networks);
  const gauge = (name: string, valueOf: (network: Network) => number): void => {
    printFamily(lines, `${IPS}_${name}`);
    for (const network of networks) {
      lines.push(`${IPS}_${name}{${labelsText({ cidr: network.text })}} ${valueOf(network)}`);
    }
  };
  gauge('allocated_ips', (network) => taken.get(network) ?? 0);
  gauge('available_ips', (network) => roomOf(network) - (taken.get(network) ?? 0));
  const ports = claimedPorts(world).size;
  printFamily(lines, `${PORTS}_allocated_ports`);
  lines.push(`${PORTS}_allocated_ports ${ports}`);
  printFamily(lines, `${PORTS}_available_ports`);
  lines.push(`${PORTS}_available_ports ${NODE_PORTS.last - NODE_PORTS.first + 1 - ports}`);
}

/** Upstream counts with numbers of 64 bits, and so far in networks of IPv6. */
function roomOf({ first, last }: Network): number {
  return Number(last - first + 1n);
}

function addressesOf(world: World, networks: readonly Network[]): Map<Network, number> {
  const { storage } = world;
  const [only] = networks;
  if (only !== undefined && networks.length === 1) {
    return new Map([[only, storage.count(ADDRESSES_START, ADDRESSES_END)]]);
  }
  const counts = new Map<Network, number>();
  const rows = storage.keys?.bind(storage) ?? storage.page.bind(storage);
  rows(ADDRESSES_START, ADDRESSES_END, 0, ({ key, keyStart, keyEnd }) => {
    const address = key.toString('utf8', keyStart + ADDRESSES.length, keyEnd);
    const network = networks.find((one) => holds(one, address));
    if (network !== undefined) counts.set(network, (counts.get(network) ?? 0) + 1);
    return true;
  });
  return counts;
}

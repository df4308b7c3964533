/** Which service networks hold which addresses and each other. */
import {
  networkStart,
  parseIp,
  parseNetwork,
  type IpAddress,
  type IpNetwork,
} from '@megaplane/machinery/ip-address';

/** The networks of one ServiceCIDR, as their texts. */
export type Networks = readonly string[];

/** True if a network of the one is part of, or has as a part, a network of the other. */
export function overlap(one: Networks, other: Networks): boolean {
  return parsed(one).some((left) => parsed(other).some((right) => areNested(left, right)));
}

/** True if each network of the one lies within some network of the others. */
export function isCovered(one: Networks, others: readonly Networks[]): boolean {
  const wide = others.flatMap(parsed);
  return parsed(one).every((inner) =>
    wide.some((outer) => outer.bits <= inner.bits && areNested(outer, inner)),
  );
}

/** The first address of a network is nobody's, and neither is the last one of IPv4. */
export function holdsAddress(networks: Networks, text: string): boolean {
  const address = parseIp(text);
  return address !== undefined && parsed(networks).some((network) => holds(network, address));
}

function parsed(networks: Networks): IpNetwork[] {
  return networks.map(parseNetwork).filter((network) => network !== undefined);
}

function areNested(left: IpNetwork, right: IpNetwork): boolean {
  if (left.bitsMax !== right.bitsMax) return false;
  const bits = Math.min(left.bits, right.bits);
  const start = networkStart({ ...right, bits });
  return networkStart({ ...left, bits }).every((byte, at) => byte === start[at]);
}

function holds(network: IpNetwork, address: IpAddress): boolean {
  const { bits, bitsMax } = network;
  if (address.isIpv4 !== (bitsMax === 32)) return false;
  const host = { address, bits: bitsMax, bitsMax, hasLeadingZeros: false };
  if (!areNested(network, host)) return false;
  const start = networkStart(network);
  if (address.bytes.every((byte, at) => byte === start[at])) return false;
  const kept = bits + 128 - bitsMax;
  const isLast = address.bytes.every((byte, at) => {
    const here = Math.min(8, Math.max(0, kept - at * 8));
    const free = 0xff >> here;
    return (byte & free) === free;
  });
  return !(address.isIpv4 && isLast);
}

// shell: asks the machine for its addresses
/** At which address the Service `kubernetes` leads to this server, and who keeps that up. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { isLoopback } from '@megaplane/base/loopback';
import { ipText, parseIp } from '@megaplane/machinery/ip-address';

/** Texts as given on the command line. */
export interface EndpointFlags {
  readonly advertiseAddress?: string;
  readonly endpointReconcilerType?: string;
}

const RECONCILERS = ['lease', 'none'] as const;
type EndpointReconciler = (typeof RECONCILERS)[number];

/** `--endpoint-reconciler-type`; throws where it is none that is known. */
function reconcilerOf(type = 'lease'): EndpointReconciler {
  const known = RECONCILERS.find((one) => one === type);
  if (known !== undefined) return known;
  const choice = RECONCILERS.join(' or ');
  throw new Error(`--endpoint-reconciler-type: ${JSON.stringify(type)} is not ${choice}`);
}

/** How the Service `kubernetes` leads to this server. */
export interface ShownEndpoint {
  readonly address: string;
  /** By a lease beside those of other servers. Addresses of loopback are left out of that. */
  readonly isLeased: boolean;
  /** Whether the server writes none at its start. */
  readonly leavesEndpoints: boolean;
}

/** A server that is alone on its storage leads to where this machine reaches it. */
export function shownEndpoint(
  { advertiseAddress, endpointReconcilerType }: EndpointFlags,
  bindAddress: string,
  isShared: boolean,
): ShownEndpoint {
  const isNone = reconcilerOf(endpointReconcilerType) === 'none';
  const isLocal = !isShared && advertiseAddress === undefined;
  const address = isLocal
    ? localAddress(bindAddress)
    : advertisedAddress(advertiseAddress, bindAddress);
  const isLeased = isShared && !isNone && !isLoopback(address);
  return { address, isLeased, leavesEndpoints: isNone || isLeased };
}

/**
 * What the serving certificate says besides the names of the Service: everything under which this
 * server is reached. Pods reach it at the first address of each range of Services, and a server
 * that listens on all interfaces at each of theirs.
 */
export function servingNames(
  { bindAddress, externalHostname }: { bindAddress: string; externalHostname?: string },
  advertised: string,
  serviceAddresses: readonly string[],
): readonly string[] {
  const isWild = bindAddress === '0.0.0.0' || bindAddress === '::';
  const own = isWild ? interfaceAddresses() : [bindAddress];
  const addresses = [...own, advertised, ...serviceAddresses].filter((name) => isIP(name) !== 0);
  return externalHostname === undefined ? addresses : [...addresses, externalHostname];
}

/** Of all interfaces; those of a link alone need a zone, which certificates do not have. */
function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ scopeid }) => (scopeid ?? 0) === 0)
    .map(({ address }) => address);
}

/** The address that clients on this machine use. */
export function localAddress(bindAddress: string): string {
  if (bindAddress === '0.0.0.0') return '127.0.0.1';
  return bindAddress === '::' ? '::1' : bindAddress;
}

/**
 * As upstream chooses it: what the flag says, else the address that is listened on, else that of
 * the interface by which other networks are reached.
 */
function advertisedAddress(flag: string | undefined, bindAddress: string): string {
  if (flag !== undefined) {
    if (isIP(flag) === 0) throw new Error(`--advertise-address: ${flag} is no IP address`);
    return textOf(flag);
  }
  const isOwn = bindAddress !== '0.0.0.0' && bindAddress !== '::' && !isLoopback(bindAddress);
  return isOwn ? textOf(bindAddress) : (interfaceAddress(bindAddress) ?? bindAddress);
}

function textOf(address: string): string {
  const ip = parseIp(address);
  return ip === undefined ? address : ipText(ip);
}

/** An address of this machine that others reach, of this family only; undefined: it has none. */
export function reachableAddress(bindAddress: string, isSix: boolean): string | undefined {
  const found = interfaceAddress(bindAddress);
  return found !== undefined && isIP(found) === (isSix ? 6 : 4) ? found : undefined;
}

/** Of the family that is listened on, where there is one. */
function interfaceAddress(bindAddress: string): string | undefined {
  const wanted = bindAddress.includes(':') ? 'IPv6' : 'IPv4';
  const interfaces = networkInterfaces();
  const route = defaultRoute();
  const isReached = (name: string): boolean => route === undefined || name === route;
  const found = Object.entries(interfaces)
    .filter(([name]) => isReached(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(({ internal, scopeid }) => !internal && (scopeid ?? 0) === 0);
  const first = found.find(({ family }) => family === wanted) ?? found[0];
  return first?.address;
}

/** The interface of the route to everywhere, where the system tells of it. */
function defaultRoute(): string | undefined {
  try {
    const [, ...routes] = readFileSync('/proc/net/route', 'latin1').split('\n');
    for (const route of routes) {
      const [name, destination, , , , , , mask] = route.split('\t');
      if (destination === '00000000' && mask === '00000000') return name;
    }
  } catch {
    // not Linux
  }
  return undefined;
}

// shell: asks the machine for its addresses
/**
 * How other machines reach a cluster of `up`. Without flags nobody does: it listens on loopback.
 *
 * `--join` means all that kubelets of other machines need: it listens on all interfaces, tells the
 * address of the interface of the route to everywhere, takes bootstrap tokens, signs what a machine
 * needs to trust the cluster, and approves kubelets' serving certificates.
 */
import { isIP } from 'node:net';
import { reachableAddress } from '@megaplane/apiserver/controlplane/advertised-address';
import { isLoopback } from '@megaplane/base/loopback';
import type { OutsideOptions } from './plan.ts';

export interface OutsideFlags {
  readonly bindAddress?: string;
  readonly advertiseAddress?: string;
  readonly serviceClusterIpRange?: string;
  readonly enableBootstrapTokenAuth?: boolean;
  readonly join?: boolean;
}

/** What the flags come to; undefined: all as it is without them. A text says what is wrong. */
export function outsideOf(flags: OutsideFlags): OutsideOptions | undefined | string {
  const { bindAddress, advertiseAddress, serviceClusterIpRange, join } = flags;
  const isJoinable = join === true;
  const bootstrapTokens = flags.enableBootstrapTokenAuth ?? isJoinable;
  const isAsked = isJoinable || bootstrapTokens;
  const given = [bindAddress, advertiseAddress, serviceClusterIpRange];
  if (!isAsked && given.every((one) => one === undefined)) return undefined;
  for (const [flag, address] of [
    ['--bind-address', bindAddress],
    ['--advertise-address', advertiseAddress],
  ] as const) {
    if (address !== undefined && isIP(address) === 0) return `${flag}: ${address} is no IP address`;
  }
  const isSix = (serviceClusterIpRange ?? advertiseAddress ?? '').split(',')[0]?.includes(':');
  const bind = bindAddress ?? (isJoinable ? (isSix === true ? '::' : '0.0.0.0') : undefined);
  const isWild = bind === '0.0.0.0' || bind === '::';
  const advertise =
    advertiseAddress ?? (isWild ? reachableAddress(bind, isSix === true) : undefined);
  if (isWild && advertise === undefined) {
    const family = isSix === true ? 'IPv6' : 'IPv4';
    return `this machine has no ${family} address that others reach: see --advertise-address`;
  }
  if (isJoinable && isLoopback(advertise ?? bind ?? '')) {
    return `--join: other machines do not reach ${advertise ?? bind}: name an address that they do`;
  }
  return {
    ...(bind === undefined ? {} : { bindAddress: bind }),
    ...(advertise === undefined ? {} : { advertiseAddress: advertise }),
    ...(serviceClusterIpRange === undefined ? {} : { serviceClusterIpRange }),
    ...{ bootstrapTokens, isJoinable },
  };
}

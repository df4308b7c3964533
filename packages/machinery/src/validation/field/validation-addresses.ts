/** IP addresses and networks in objects. */

import { invalidValue } from '../../meta/fielderrors.ts';
import {
  hasExcessBits,
  ipText,
  networkText,
  parseIp,
  parseNetwork,
} from '../../meta/ip-address.ts';
import type { JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors } from '../../meta/names.ts';
import { invalidEach, type Findings } from './validation-rules.ts';

const NO_ADDRESS = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const NO_NETWORK = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

/** What is wrong with an address; IPv6 may be written at any length. */
export function ipFaults(text: string): string[] {
  const address = parseIp(text);
  if (address === undefined) return [NO_ADDRESS];
  const texts: string[] = [];
  if (address.hasLeadingZeros) texts.push('must not have leading 0s');
  else if (address.isMapped) texts.push('must not be an IPv4-mapped IPv6 address');
  return texts;
}

/** What is wrong with an address that must be in the one form of RFC 5952. */
export function canonicalIpFaults(text: string): string[] {
  const faults = ipFaults(text);
  const address = parseIp(text);
  if (faults.length > 0 || address === undefined) return faults;
  const form = ipText(address);
  return form === text ? [] : [`must be in canonical form ("${form}")`];
}

/** What is wrong with a network; IPv6 may be written at any length. */
export function networkFaults(text: string): string[] {
  const network = parseNetwork(text);
  if (network === undefined) return [NO_NETWORK];
  if (network.hasLeadingZeros) return ['must not have leading 0s in IP or prefix length'];
  if (network.address.isMapped) return ['must not have an IPv4-mapped IPv6 address'];
  return hasExcessBits(network) ? ['must not have bits set beyond the prefix length'] : [];
}

/** What is wrong with a network that must be in its one form. */
export function canonicalNetworkFaults(text: string): string[] {
  const faults = networkFaults(text);
  const network = parseNetwork(text);
  if (faults.length > 0 || network === undefined) return faults;
  const form = networkText(network);
  return form === text ? [] : [`must be in canonical form ("${form}")`];
}

/**
 * True if it is an address; findings otherwise. Values among `kept` stood there before and stay,
 * whatever they are.
 */
export function checkIp(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  kept: readonly JsonValue[] = [],
): boolean {
  return check(found, path, value, kept, ipFaults);
}

/** True if it is a network; findings otherwise. `kept` as with `checkIp`. */
export function checkCidr(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  kept: readonly JsonValue[] = [],
): boolean {
  return check(found, path, value, kept, networkFaults);
}

function check(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  kept: readonly JsonValue[],
  faultsOf: (text: string) => string[],
): boolean {
  const text = typeof value === 'string' ? value : '';
  if (kept.includes(text)) return true;
  const faults = faultsOf(text);
  for (const fault of faults) found.push(invalidValue(path, text, fault));
  return faults.length === 0;
}

/** Addresses that something can be reached at: not of this host, not of this link. */
export function checkEndpointIp(found: Findings, path: string, value: JsonValue | undefined): void {
  const text = typeof value === 'string' ? value : '';
  const texts: string[] = [];
  const address = parseIp(text);
  const form = address === undefined ? '' : ipText(address);
  if (address === undefined) texts.push('must be a valid IP address');
  else if (form === '0.0.0.0' || form === '::') {
    texts.push(`may not be unspecified (${text})`);
  } else if (form.startsWith('127.') || form === '::1') {
    texts.push('may not be in the loopback range (127.0.0.0/8, ::1/128)');
  } else if (/^169\.254\.|^fe[89ab][0-9a-f]:/.test(form)) {
    texts.push('may not be in the link-local range (169.254.0.0/16, fe80::/10)');
  } else if (/^224\.0\.0\.|^ff02:/.test(form)) {
    texts.push('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)');
  }
  for (const detail of texts) found.push(invalidValue(path, text, detail));
}

/** The name of a load balancer, '' where there is none. */
export function checkHostname(found: Findings, path: string, host: string): void {
  if (host === '') return;
  invalidEach(found, path, host, dnsSubdomainErrors(host));
  if (parseIp(host) === undefined) return;
  found.push(invalidValue(path, host, 'must be a DNS name, not an IP address'));
}

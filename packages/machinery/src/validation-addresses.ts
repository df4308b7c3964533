/** IP addresses and networks in objects. */

import { isIP, isIPv4 } from 'node:net';
import { invalidValue } from './fielderrors.ts';
import type { JsonValue } from './json-value.ts';
import type { Findings } from './validation-rules.ts';

/** True if it is an address; a finding otherwise. */
export function checkIp(found: Findings, path: string, value: JsonValue | undefined): boolean {
  const text = typeof value === 'string' ? value : '';
  if (isIP(text) !== 0) return true;
  const detail = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  found.push(invalidValue(path, text, detail));
  return false;
}

/** True if it is a network; a finding otherwise. */
export function checkCidr(found: Findings, path: string, value: JsonValue | undefined): boolean {
  const text = typeof value === 'string' ? value : '';
  const [address = '', bits = '', rest] = text.split('/');
  const isNumber = /^(0|[1-9]\d{0,2})$/.test(bits) && rest === undefined;
  if (isIP(address) !== 0 && isNumber && Number(bits) <= (isIPv4(address) ? 32 : 128)) return true;
  const detail = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  found.push(invalidValue(path, text, detail));
  return false;
}

/** Addresses that something can be reached at: not of this host, not of this link. */
export function checkEndpointIp(found: Findings, path: string, value: JsonValue | undefined): void {
  const text = typeof value === 'string' ? value : '';
  const texts: string[] = [];
  if (isIP(text) === 0) texts.push('must be a valid IP address');
  else if (/^(0\.0\.0\.0|::|0(:0){7})$/.test(text)) {
    texts.push(`may not be unspecified (${text})`);
  } else if (text.startsWith('127.') || text === '::1') {
    texts.push('may not be in the loopback range (127.0.0.0/8, ::1/128)');
  } else if (/^169\.254\.|^fe[89ab][0-9a-f]:/i.test(text)) {
    texts.push('may not be in the link-local range (169.254.0.0/16, fe80::/10)');
  } else if (/^224\.0\.0\.|^ff02:/i.test(text)) {
    texts.push('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)');
  }
  for (const detail of texts) found.push(invalidValue(path, text, detail));
}

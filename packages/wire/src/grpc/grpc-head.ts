/** What grpc-go refuses of a call before it looks at the method, in its words and its order. */
import { isUtf8 } from 'node:buffer';
import { decodeBase64 } from '@megaplane/base/base64';
import { quoted } from '@megaplane/base/quoting';
import { parseTimeout } from './grpc-text.ts';
import { GRPC_CODES, type GrpcRefusal } from '../http/grpc.ts';
import type { RequestHead } from '../http2/http2-head.ts';

/** The last value of a field that has one meaning; undefined without it. */
export function lastValue(fields: readonly string[], name: string): string | undefined {
  for (let i = fields.length - 2; i >= 0; i -= 2) if (fields[i] === name) return fields[i + 1];
  return undefined;
}

/** Milliseconds that a client gives its call, Infinity if it says nothing. */
export function timeoutOf(fields: readonly string[]): number {
  return parseTimeout(lastValue(fields, 'grpc-timeout'));
}

/** Why this is no call, null if it is one. */
export function headRefusal(head: RequestHead): GrpcRefusal | null {
  const { method, fields } = head;
  const wrong = hostFault(fields) ?? fieldFault(fields);
  if (wrong !== null) return { code: GRPC_CODES.internal, message: wrong, status: 400 };
  if (method === 'POST') return null;
  const found = `Received a HEADERS frame with :method ${quotedOctets(method)}`;
  return { code: GRPC_CODES.internal, message: `${found} which should be POST`, status: 405 };
}

function hostFault(fields: readonly string[]): string | null {
  let hosts = 0;
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === 'host') hosts++;
  if (hosts < 2) return null;
  const found = `num values of :authority: 1, num values of host: ${hosts}`;
  return `${found}, both must only have 1 value as per HTTP/2 spec`;
}

/** The last field that is malformed is told. */
function fieldFault(fields: readonly string[]): string | null {
  for (let i = fields.length - 2; i >= 0; i -= 2) {
    const name = fields[i] ?? '';
    const value = fields[i + 1] ?? '';
    if (name === 'grpc-timeout' && parseTimeout(value) < 0) {
      return `malformed grpc-timeout: ${timeoutFault(value)}`;
    }
    if (!name.endsWith('-bin')) continue;
    const place = decodeBase64(value, value.length % 4 !== 0);
    if (typeof place !== 'number') continue;
    const what = `malformed binary metadata ${quotedOctets(value)} in header ${quoted(name)}`;
    return `${what}: illegal base64 data at input byte ${place}`;
  }
  return null;
}

function timeoutFault(text: string): string {
  const shown = quotedOctets(text);
  if (text.length < 2) return `transport: timeout string is too short: ${shown}`;
  if (text.length > 9) return `transport: timeout string is too long: ${shown}`;
  if (!'HMSmun'.includes(text.slice(-1))) {
    return `transport: timeout unit is not recognized: ${shown}`;
  }
  return `strconv.ParseUint: parsing ${quotedOctets(text.slice(0, -1))}: invalid syntax`;
}

/** Octets of a field, which are read as Latin-1 here, quoted as Go quotes a string of them. */
export function quotedOctets(text: string): string {
  const octets = Buffer.from(text, 'latin1');
  if (isUtf8(octets)) return quoted(octets.toString());
  return quoted(text).replaceAll(
    /[\u0080-\u00ff]|\\u00([89a-f][\da-f])/g,
    (one, hex?: string) => `\\x${hex ?? one.charCodeAt(0).toString(16)}`,
  );
}

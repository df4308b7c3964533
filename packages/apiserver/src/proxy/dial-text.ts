/** Failures on the way to a kubelet, in the words of upstream's clients. */
import type { Target } from './target.ts';

/** As Go's client says it: kubectl shows it as it is. */
export function requestText(
  verb: string,
  target: Pick<Target, 'host' | 'port' | 'path' | 'isTls'>,
  error: Error,
): string {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  const url = `${target.isTls ? 'https' : 'http'}://${host}:${target.port}${target.path}`;
  const method = verb.charAt(0) + verb.slice(1).toLowerCase();
  return `${method} ${JSON.stringify(url)}: ${goText(error, `${host}:${target.port}`)}`;
}

/** `dial tcp 10.0.0.1:10250: connect: connection refused` */
export function goText(error: Error, address: string): string {
  const code = 'code' in error ? String(error.code) : '';
  const why: Readonly<Record<string, string>> = {
    ECONNREFUSED: 'connect: connection refused',
    EHOSTUNREACH: 'connect: no route to host',
    ENETUNREACH: 'connect: network is unreachable',
    ETIMEDOUT: 'i/o timeout',
    ENOTFOUND: 'no such host',
  };
  if (why[code] !== undefined) return `dial tcp ${address}: ${why[code]}`;
  if (code === 'ECONNRESET' || error.message === 'socket hang up') return 'EOF';
  if (error.message === 'dial timeout') return `dial tcp ${address}: i/o timeout`;
  return /cert|CERT|self-signed|verify/.test(code + error.message)
    ? `tls: failed to verify certificate: ${error.message}`
    : error.message;
}

/** Failures on the way to kubelets, pods, extensions and webhooks, in the words of Go's client. */
import { ownMember } from '@megaplane/base/members';
import { CERTIFICATE_FAULT } from '@megaplane/base/tls-parts';
import { isIP } from 'node:net';
import type { Target } from './target.ts';

/** As Go's client says it: kubectl shows it as it is. */
export function requestText(
  verb: string,
  target: Pick<Target, 'host' | 'port' | 'path' | 'isTls' | 'peer'>,
  error: Error,
): string {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  const url = `${target.isTls ? 'https' : 'http'}://${host}:${target.port}${target.path}`;
  const method = verb.charAt(0) + verb.slice(1).toLowerCase();
  const why = withAdvice(goText(error, `${host}:${target.port}`), target);
  return `${method} ${JSON.stringify(url)}: ${why}`;
}

/** What Go's client says of the alert that a server without a certificate ends a handshake by. */
const NO_CERTIFICATE = 'remote error: tls: internal error';

/** A kubelet whose request for a serving certificate waits has none: what to do is told. */
export function withAdvice(text: string, { peer }: Pick<Target, 'peer'>): string {
  if (text !== NO_CERTIFICATE || peer !== 'kubelet') return text;
  return (
    `${text} (the kubelet has no serving certificate: find its request by "kubectl get csr" and ` +
    'approve it by "kubectl certificate approve NAME", or start the controllers with ' +
    '--approve-kubelet-serving)'
  );
}

const DIALS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'i/o timeout',
};

/** `dial tcp 10.0.0.1:10250: connect: connection refused` */
export function goText(error: Error, address: string): string {
  const code = 'code' in error ? String(error.code) : '';
  const why = ownMember(DIALS, code);
  if (why !== undefined) return `dial tcp ${address}: ${why}`;
  if (error.message === 'dial timeout') return `dial tcp ${address}: i/o timeout`;
  if (error.message === 'socket hang up') return 'EOF';
  return goWords(error.message);
}

/** What Go says of a failed connection, from Node's words for it. */
export function goWords(message: string): string {
  const told = message.indexOf(CERTIFICATE_FAULT);
  if (told >= 0) return message.slice(told);
  const dial = /connect (E[A-Z]+) ([^\s;]+)/.exec(message);
  const why = ownMember(DIALS, dial?.[1] ?? '');
  if (dial !== null && why !== undefined) return `dial tcp ${dial[2] ?? ''}: ${why}`;
  const lookup = /getaddrinfo \w+ (\S+)/.exec(message);
  if (lookup !== null) return `dial tcp: lookup ${lookup[1] ?? ''}: no such host`;
  // what answered in the clear is HTTP as a rule
  if (/wrong version number/.test(message)) {
    return 'http: server gave HTTP response to HTTPS client';
  }
  if (/alert (?:internal error|number 80)/.test(message)) return NO_CERTIFICATE;
  if (/altnames|does not match certificate/i.test(message))
    return CERTIFICATE_FAULT + otherName(message);
  if (/expired/.test(message))
    return `${CERTIFICATE_FAULT}certificate has expired or is not yet valid`;
  if (/certificate|self-signed|self signed/.test(message)) {
    return `${CERTIFICATE_FAULT}certificate signed by unknown authority`;
  }
  return /broke|closed|reset|disconnected|ECONNRESET/.test(message) ? 'EOF' : message;
}

/** A certificate that is another's: Go lists the names of the kind that was looked for. */
function otherName(message: string): string {
  const address = /IP: (\S+) is not in the cert's list:\s*(.*)$/.exec(message);
  if (address !== null) {
    const [, host = '', addresses = ''] = address;
    if (addresses !== '') return `certificate is valid for ${addresses}, not ${host}`;
    return `cannot validate certificate for ${host} because it doesn't contain any IP SANs`;
  }
  const host = /Host: ([^.\s]\S*?)\.? is not/.exec(message)?.[1] ?? '';
  const listed = (/altnames: (?:.*altnames: )?(.*)$/.exec(message)?.[1] ?? '').split(/,\s*/);
  const kind = isIP(host) === 0 ? 'DNS:' : 'IP Address:';
  const names = listed
    .filter((name) => name.startsWith(kind))
    .map((name) => name.slice(kind.length));
  if (names.length > 0) return `certificate is valid for ${names.join(', ')}, not ${host}`;
  return `certificate is not valid for any names, but wanted to match ${host}`;
}

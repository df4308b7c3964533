/**
 * How every TLS connection of this program looks at certificates: as Go's programs do. Nothing else
 * makes such options (a law of the tree), so that no end is stricter or laxer than another.
 *
 * - Each certificate of a bundle is an anchor, whoever has signed it: intermediate ones without
 *   their root, and a server's own. OpenSSL wants a self-signed one unless it is told so.
 * - Names of servers stand among the alternative names; a common name is none.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { PeerCertificate, Server, TLSSocket } from 'node:tls';

/** PEM (or DER, as `node:tls` takes it). */
export type TlsMaterial = string | Buffer | readonly (string | Buffer)[];

export interface ClientTlsParts {
  /** Whom the server's certificate must come from; absent: whom the system trusts. */
  readonly ca?: TlsMaterial | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  /** The name that the certificate has to have, where the server is not called by it. */
  readonly serverName?: string | undefined;
  /** Any certificate is taken. */
  readonly isInsecure?: boolean | undefined;
}

/** For contexts that are made for one name of several. */
export const PARTIAL_CHAINS: { readonly allowPartialTrustChain: true } = {
  allowPartialTrustChain: true,
};

/** Options of a connection to a server, for `tls.connect` and for agents. */
export interface ClientTlsOptions {
  readonly ca?: string | Buffer | (string | Buffer)[];
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly rejectUnauthorized: boolean;
  readonly allowPartialTrustChain: true;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/** For the end that connects. */
export function clientTls(parts: ClientTlsParts): ClientTlsOptions {
  const { ca, cert, key, serverName, isInsecure } = parts;
  return {
    ...(ca === undefined ? {} : { ca: materialOf(ca) }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    rejectUnauthorized: isInsecure !== true,
    allowPartialTrustChain: true,
    checkServerIdentity: (host, certificate) => serverNameFault(serverName ?? host, certificate),
  };
}

/**
 * For clients that tell TLS no name where a server is named by its address, which Node then takes
 * for `localhost`: the certificate must have one of the addresses among `hosts`.
 */
export function namedTls(
  hosts: readonly string[],
): Pick<ClientTlsOptions, 'allowPartialTrustChain' | 'checkServerIdentity'> {
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  return {
    allowPartialTrustChain: true,
    checkServerIdentity: (host, certificate) => {
      if (hosts.includes(host) || addresses.length === 0) return serverNameFault(host, certificate);
      const faults = addresses.map((address) => serverNameFault(address, certificate));
      return faults.includes(undefined) ? undefined : faults[0];
    },
  };
}

/** Options of a server that asks its clients for certificates. */
export interface ClientAuthority {
  readonly ca: string | Buffer | (string | Buffer)[];
  readonly requestCert: true;
  readonly rejectUnauthorized: boolean;
}

/**
 * For the end that is connected to: clients are asked for a certificate of these authorities. With
 * `isRequired`, one without ends at the handshake; otherwise it comes in as nobody in particular.
 * The server needs `trustPartialChains` besides, after each change of its context.
 */
export function clientAuthority(ca: TlsMaterial, isRequired = false): ClientAuthority {
  return { ca: materialOf(ca), requestCert: true, rejectUnauthorized: isRequired };
}

interface NativeContext {
  readonly setAllowPartialTrustChain?: () => void;
}

/**
 * Node's servers leave this option out of what they make their contexts of, so it is set where it
 * lies. Throws where another Node keeps it elsewhere.
 */
export function trustPartialChains(server: Server): void {
  const { _sharedCreds: shared } = server as Server & {
    readonly _sharedCreds?: { readonly context?: NativeContext };
  };
  const context = shared?.context;
  if (context?.setAllowPartialTrustChain === undefined) {
    throw new Error('this Node keeps the context of its TLS servers elsewhere');
  }
  context.setAllowPartialTrustChain();
}

/** Certificates of one chain; more stand in no chain that anybody means. */
const CHAIN_MAX = 16;

/** When the first certificate of a chain expires, in milliseconds since 1970. */
export function chainUntilMs(leaf: X509Certificate): number {
  let untilMs = Date.parse(leaf.validTo);
  let above = leaf.issuerCertificate;
  for (let count = 1; above !== undefined && count < CHAIN_MAX; count++) {
    untilMs = Math.min(untilMs, Date.parse(above.validTo));
    above = above.issuerCertificate;
  }
  return untilMs;
}

const chainEnds = new WeakMap<TLSSocket, number>();

/**
 * Whether the peer's certificate was trusted when the connection (or the session that it goes on
 * with) began, and none of its chain has expired since: a question for each request.
 */
export function isPeerTrusted(socket: TLSSocket, nowMs: number): boolean {
  if (!socket.authorized) return false;
  let untilMs = chainEnds.get(socket);
  if (untilMs === undefined) {
    const leaf = socket.getPeerX509Certificate();
    if (leaf === undefined) return false;
    chainEnds.set(socket, (untilMs = chainUntilMs(leaf)));
  }
  return nowMs <= untilMs;
}

function materialOf(material: TlsMaterial): string | Buffer | (string | Buffer)[] {
  return typeof material === 'string' || Buffer.isBuffer(material) ? material : [...material];
}

/** Names that the text of a refusal lists. */
const LISTED_MAX = 100;

/** The words of Go's crypto/x509 begin with these wherever a name does not fit. */
export const CERTIFICATE_FAULT = 'tls: failed to verify certificate: x509: ';

/**
 * What Go's `VerifyHostname` says of a server's certificate; undefined where the name is one of
 * its alternative names.
 */
export function serverNameFault(host: string, { raw }: PeerCertificate): Error | undefined {
  const certificate = new X509Certificate(raw);
  const name = host.replace(/^\[(.+)\]$/, '$1');
  const isAddress = isIP(name) !== 0;
  const names = alternativeNames(certificate.subjectAltName ?? '');
  const isFit = isAddress
    ? certificate.checkIP(name) !== undefined
    : names.dns.some((pattern) => fits(pattern.toLowerCase(), name.toLowerCase()));
  if (isFit) return undefined;
  const text = CERTIFICATE_FAULT + nameFault(certificate, name, isAddress, names);
  return Object.assign(new Error(text), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
}

interface AlternativeNames {
  readonly dns: readonly string[];
  readonly addresses: readonly string[];
}

function nameFault(
  certificate: X509Certificate,
  name: string,
  isAddress: boolean,
  { dns, addresses }: AlternativeNames,
): string {
  if (certificate.subjectAltName === undefined) {
    const common = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
    if (common !== '' && fits(common.toLowerCase(), name.toLowerCase())) {
      return 'certificate relies on legacy Common Name field, use SANs instead';
    }
  }
  const listed = isAddress ? addresses : dns;
  if (isAddress && listed.length === 0) {
    return `cannot validate certificate for ${name} because it doesn't contain any IP SANs`;
  }
  const kind = isAddress ? 'IP SANs' : 'names';
  if (listed.length >= LISTED_MAX) {
    return `certificate is valid for ${listed.length} ${kind}, but none matched ${name}`;
  }
  if (listed.length > 0) return `certificate is valid for ${listed.join(', ')}, not ${name}`;
  return `certificate is not valid for any names, but wanted to match ${name}`;
}

/** One name after the other: what a comma or a quote stands in is quoted as JSON. */
const ONE_NAME = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;

/** Of a list that cannot be read, nothing counts. */
function alternativeNames(text: string): AlternativeNames {
  const [dns, addresses]: [string[], string[]] = [[], []];
  ONE_NAME.lastIndex = 0;
  while (ONE_NAME.lastIndex < text.length) {
    const found = ONE_NAME.exec(text);
    if (found === null) return { dns: [], addresses: [] };
    const [, kind, value = ''] = found;
    if (kind === 'DNS') dns.push(value);
    else if (kind === 'IP Address') addresses.push(value);
  }
  return { dns, addresses };
}

/** As Go's `matchHostnames`: a star stands for one whole label, the first. */
function fits(pattern: string, name: string): boolean {
  const host = name.replace(/\.$/, '');
  if (pattern === '' || host === '') return false;
  const [labels, parts] = [pattern.split('.'), host.split('.')];
  if (labels.length !== parts.length) return false;
  return labels.every((label, at) => (at === 0 && label === '*' ? true : label === parts[at]));
}

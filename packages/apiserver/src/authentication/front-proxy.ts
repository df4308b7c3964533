/**
 * A front proxy: it authenticates users by itself, shows a certificate of an authority of its own,
 * and names the user in header fields (`--requestheader-*`).
 */
import { addToMember } from '@megaplane/base/members';
import { X509Certificate } from 'node:crypto';
import type { Exchange, PeerCertificate } from '@megaplane/wire/exchange';
import { headerText } from '../request/header-text.ts';
import { identityOf, type Identity } from '../request/identity.ts';
import { knowsCritical } from './critical-extensions.ts';

export interface FrontProxyOptions {
  /** PEM of the authorities of proxies; each holds one certificate. */
  readonly authorities: readonly string[];
  /** PEM of the authorities of users, likewise. */
  readonly userAuthorities: readonly string[];
  /** Common names that proxies have; none: any. */
  readonly names: readonly string[];
  /** Fields in lower case; the first that is there names the user. */
  readonly userFields: readonly string[];
  readonly uidFields: readonly string[];
  readonly groupFields: readonly string[];
  readonly extraPrefixes: readonly string[];
}

/** Uses of certificates (RFC 5280, 4.2.1.12): a client's has one of them if it names any. */
const CLIENT_USES: readonly string[] = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'];
/** OpenSSL's word; unlike Go, it takes "any use" for none and looks at the usage of the key. */
const PURPOSE = 'INVALID_PURPOSE';

/** Who may have signed. */
interface Signers {
  readonly proxies: readonly X509Certificate[];
  readonly users: readonly X509Certificate[];
}

export class FrontProxy {
  readonly #options: FrontProxyOptions;
  #signers: Signers;
  /** Counts changes of the authorities: what was judged before has to be judged again. */
  generation = 0;

  /** Throws an Error where an authority is no certificate. */
  constructor(options: FrontProxyOptions) {
    this.#options = options;
    this.#signers = signersOf(options.authorities, options.userAuthorities);
  }

  /** The authorities have changed. Throws an Error where one is no certificate. */
  trust(authorities: readonly string[], userAuthorities: readonly string[]): void {
    this.#signers = signersOf(authorities, userAuthorities);
    this.generation++;
  }

  /**
   * Whose a certificate is. TLS trusts the authorities of proxies and of users alike, so it counts
   * where the chain ends: whoever may sign for proxies must not make administrators. With `isAgain`
   * TLS has trusted other authorities than there are now.
   */
  judge(
    certificate: PeerCertificate,
    isAgain = false,
  ): { readonly isProxy: boolean; readonly isUser: boolean } {
    const { trusted, failure, commonName } = certificate;
    const { proxies, users } = this.#signers;
    if (trusted && proxies.length === 0 && !isAgain) return { isProxy: false, isUser: true };
    if (!trusted && failure !== PURPOSE) return { isProxy: false, isUser: false };
    const chain = chainOf(certificate);
    const isFit = (one: X509Certificate): boolean => isForClients(one) && knowsCritical(one.raw);
    if (!trusted && !chain.every(isFit)) return { isProxy: false, isUser: false };
    const endsIn = (authorities: readonly X509Certificate[]): boolean =>
      chain.some((one) =>
        authorities.some((above) => one.raw.equals(above.raw) || isIssuedBy(one, above)),
      );
    return { isProxy: this.#isKnown(commonName) && endsIn(proxies), isUser: endsIn(users) };
  }

  /** Whether a proxy of this name may speak for others. */
  #isKnown(commonName: string): boolean {
    const { names } = this.#options;
    return names.length === 0 || names.includes(commonName);
  }

  /** Whom a proxy's request is of; null where it names nobody. */
  identify(exchange: Exchange): Identity | null {
    const { userFields, uidFields, groupFields, extraPrefixes } = this.#options;
    const first = (names: readonly string[]): string => {
      for (const name of names) {
        const value = exchange.header(name);
        if (value !== undefined && value !== '') return headerText(value);
      }
      return '';
    };
    const user = first(userFields);
    if (user === '') return null;
    const groups: string[] = [];
    const extra: Record<string, string[]> = {};
    const fields = exchange.fields();
    for (let at = 0; at < fields.length; at += 2) {
      const [name = '', value = ''] = [fields[at], fields[at + 1]];
      if (groupFields.includes(name)) groups.push(headerText(value));
      const prefix = extraPrefixes.find((one) => name.startsWith(one));
      if (prefix === undefined) continue;
      addToMember(extra, decodeKey(name.slice(prefix.length)), headerText(value));
    }
    return identityOf(user, groups, first(uidFields), extra);
  }
}

/** Keys are percent-encoded where they hold what no field name may; a wrong escape stays. */
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

function signersOf(proxies: readonly string[], users: readonly string[]): Signers {
  const read = (all: readonly string[]): X509Certificate[] =>
    all.map((pem) => new X509Certificate(pem));
  return { proxies: read(proxies), users: read(users) };
}

/** The certificate and what stands above it, as far as each has signed the one below and may. */
function chainOf({ raw, issuers }: PeerCertificate): X509Certificate[] {
  const chain = [new X509Certificate(raw)];
  for (const above of issuers?.() ?? []) {
    const issuer = new X509Certificate(above);
    const last = chain.at(-1);
    if (last === undefined || !issuer.ca || !isIssuedBy(last, issuer)) break;
    chain.push(issuer);
  }
  return chain;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** One that names no uses is for all; Node calls those `keyUsage`. */
function isForClients({ keyUsage }: X509Certificate): boolean {
  const uses = keyUsage as readonly string[] | undefined;
  return uses === undefined || uses.length === 0 || uses.some((one) => CLIENT_USES.includes(one));
}

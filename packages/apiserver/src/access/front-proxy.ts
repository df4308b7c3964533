/**
 * A front proxy: it authenticates users by itself, shows a certificate of an authority of its own,
 * and names the user in header fields (`--requestheader-*`).
 */
import { X509Certificate } from 'node:crypto';
import type { Exchange, PeerCertificate } from '@megaplane/wire/exchange';
import { headerText } from '../header-text.ts';
import { identityOf, type Identity } from '../identity.ts';

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

export class FrontProxy {
  readonly #options: FrontProxyOptions;
  readonly #authorities: readonly X509Certificate[];
  readonly #userAuthorities: readonly X509Certificate[];

  /** Throws an Error where an authority is no certificate. */
  constructor(options: FrontProxyOptions) {
    this.#options = options;
    this.#authorities = options.authorities.map((pem) => new X509Certificate(pem));
    this.#userAuthorities = options.userAuthorities.map((pem) => new X509Certificate(pem));
  }

  /**
   * Whose a trusted certificate is. TLS trusts the authorities of proxies and of users alike, so
   * one that neither has signed itself (but somebody in between) is nobody's: whoever may sign for
   * proxies must not make administrators.
   */
  ownerOf({ raw, commonName }: PeerCertificate): 'proxy' | 'user' | 'nobody' {
    const certificate = new X509Certificate(raw);
    const isOf = (authority: X509Certificate): boolean =>
      certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
    if (this.#isKnown(commonName) && this.#authorities.some(isOf)) return 'proxy';
    return this.#userAuthorities.some(isOf) ? 'user' : 'nobody';
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
      (extra[decodeKey(name.slice(prefix.length))] ??= []).push(headerText(value));
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

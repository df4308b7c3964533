/**
 * Requests that an API server passes on in the name of its users: believed where its certificate is
 * of the authority, and of the name, that the server publishes for this.
 */
import { ownMember } from '@megaplane/base/members';
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Caller } from '@megaplane/client/reviews';

export interface FrontProxy {
  /** PEM. */
  readonly authority: string;
  /** Common names; empty: all of the authority. */
  readonly names: readonly string[];
  /** Names of headers, in lower case, best first. */
  readonly userHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
}

/** What `extension-apiserver-authentication` says of them; null: nothing. */
export function frontProxyOf(configMap: JsonObject): FrontProxy | null {
  const authority = stringAt(configMap, 'data', 'requestheader-client-ca-file');
  if (authority === '') return null;
  const list = (name: string): readonly string[] => {
    const text = stringAt(configMap, 'data', `requestheader-${name}`);
    const found: unknown = text === '' ? [] : parseJson(text);
    return Array.isArray(found) ? found.filter((item) => typeof item === 'string') : [];
  };
  const headers = (name: string): readonly string[] =>
    list(name).map((header) => header.toLowerCase());
  return {
    authority,
    names: list('allowed-names'),
    userHeaders: headers('username-headers'),
    groupHeaders: headers('group-headers'),
  };
}

/** Who asks by way of the proxy; null: it is none, or it names nobody. */
export function proxiedCaller(
  proxy: FrontProxy,
  certificate: Buffer,
  commonName: string,
  request: IncomingMessage,
): Caller | null {
  if (proxy.names.length > 0 && !proxy.names.includes(commonName)) return null;
  if (!isIssuedBy(certificate, proxy.authority)) return null;
  const values = (names: readonly string[]): readonly string[] =>
    names.flatMap((name) => ownMember(request.headersDistinct, name) ?? []);
  const [user] = values(proxy.userHeaders);
  if (user === undefined || user === '') return null;
  return { user, uid: '', groups: values(proxy.groupHeaders) };
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Whether one of the authorities (PEM) has signed the certificate (DER). */
export function isIssuedBy(certificate: Buffer, authorities: string): boolean {
  const shown = new X509Certificate(certificate);
  return (authorities.match(PEM) ?? []).some((text) => {
    const authority = new X509Certificate(text);
    return shown.checkIssued(authority) && shown.verify(authority.publicKey);
  });
}

/**
 * X.509 certificates of a cluster's own authority: ECDSA P-256 with SHA-256 (RFC 5280, RFC 5758).
 *
 * A cluster needs three shapes only: the authority itself, a serving certificate with names and
 * addresses, and client certificates whose subject is the identity (CN the user, each O a group).
 * Time and serial numbers are arguments, so the same input gives the same body.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
} from 'node:crypto';
import { isIP } from 'node:net';
import * as der from '@megaplane/base/der';

/** PEM texts of a certificate and of its PKCS#8 private key. */
export interface KeyAndCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** What the caller decides about a certificate; times in milliseconds since 1970. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** 8 to 20 random bytes; the first bit is cleared. */
  readonly serial: Uint8Array;
  readonly use: 'authority' | 'server' | 'client';
  /** DNS names and IP addresses, for `server`. */
  readonly names?: readonly string[];
}

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  ecdsaSha256: '1.2.840.10045.4.3.2',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

/** Makes a new key and a certificate for it, signed by `issuer` or, for an authority, by itself. */
export function issueCertificate(
  request: CertificateRequest,
  issuer: KeyAndCertificate | null,
): KeyAndCertificate {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicKey = pair.publicKey.export({ type: 'spki', format: 'der' });
  const key = pair.privateKey.export({ type: 'sec1', format: 'pem' }).toString();
  const issuerKey = issuer === null ? pair.privateKey : createPrivateKey(issuer.key);
  const issuerPublic = createPublicKey(issuerKey).export({ type: 'spki', format: 'der' });
  const subject = distinguishedName(request.commonName, request.organizations ?? []);
  const body = der.sequence(
    der.tagged(0, der.unsigned(Uint8Array.of(2))),
    der.unsigned(positive(request.serial)),
    der.sequence(der.objectId(OID.ecdsaSha256)),
    issuer === null ? subject : subjectOf(pemBytes(issuer.certificate)),
    der.sequence(der.time(request.notBeforeMs), der.time(request.notAfterMs)),
    subject,
    publicKey,
    der.tagged(3, der.sequence(...extensions(request, publicKey, issuerPublic))),
  );
  const signature = sign('sha256', body, issuerKey);
  const whole = der.sequence(
    body,
    der.sequence(der.objectId(OID.ecdsaSha256)),
    der.bits(signature),
  );
  return { certificate: pem('CERTIFICATE', whole), key };
}

function positive(serial: Uint8Array): Uint8Array {
  const out = Uint8Array.from(serial);
  out[0] = (out[0] ?? 0) & 0x7f;
  return out;
}

/** Organizations first, then the common name, one attribute per relative name. */
function distinguishedName(commonName: string, organizations: readonly string[]): Uint8Array {
  const attribute = (oid: string, value: string): Uint8Array =>
    der.set(der.sequence(der.objectId(oid), der.utf8(value)));
  return der.sequence(
    ...organizations.map((name) => attribute(OID.organization, name)),
    attribute(OID.commonName, commonName),
  );
}

function extensions(
  request: CertificateRequest,
  publicKey: Uint8Array,
  issuerPublic: Uint8Array,
): Uint8Array[] {
  const isAuthority = request.use === 'authority';
  const usage = isAuthority ? 0x06 : 0xa0;
  const unusedBits = isAuthority ? 1 : 5;
  const list = [
    extension(OID.keyUsage, true, der.bits(Uint8Array.of(usage), unusedBits)),
    extension(OID.basicConstraints, true, der.sequence(...(isAuthority ? [der.truth()] : []))),
    extension(OID.subjectKeyId, false, der.octets(keyId(publicKey))),
    extension(OID.authorityKeyId, false, der.sequence(der.implicit(0, keyId(issuerPublic)))),
  ];
  if (!isAuthority) {
    const purpose = request.use === 'server' ? OID.serverAuth : OID.clientAuth;
    list.push(extension(OID.extKeyUsage, false, der.sequence(der.objectId(purpose))));
  }
  const names = request.names ?? [];
  if (names.length > 0) {
    list.push(extension(OID.subjectAltName, false, der.sequence(...names.map(generalName))));
  }
  return list;
}

function extension(oid: string, critical: boolean, value: Uint8Array): Uint8Array {
  return der.sequence(der.objectId(oid), ...(critical ? [der.truth()] : []), der.octets(value));
}

function generalName(name: string): Uint8Array {
  return isIP(name) === 0
    ? der.implicit(2, Buffer.from(name))
    : der.implicit(7, addressBytes(name));
}

/** Network-order bytes of an IPv4 or IPv6 address. */
export function addressBytes(address: string): Uint8Array {
  if (isIP(address) === 4) return Uint8Array.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right];
  const out = new Uint8Array(16);
  for (const [index, group] of groups.entries()) {
    const value = Number.parseInt(group, 16);
    out[index * 2] = value >>> 8;
    out[index * 2 + 1] = value & 0xff;
  }
  return out;
}

/** RFC 5280 4.2.1.2 (1): SHA-1 of the key bits; the last 65 bytes of a P-256 SPKI are the point. */
function keyId(publicKey: Uint8Array): Uint8Array {
  return createHash('sha1').update(publicKey.subarray(-65)).digest();
}

/** The subject's DER out of a certificate's, so that an issuer is named byte for byte. */
function subjectOf(certificate: Uint8Array): Uint8Array {
  const outer = content(certificate, 0);
  const body = content(certificate, outer.start);
  let offset = body.start;
  // version, serial, algorithm, issuer, validity come before the subject
  for (let skip = 0; skip < 5; skip++) offset = content(certificate, offset).end;
  return certificate.subarray(offset, content(certificate, offset).end);
}

function content(bytes: Uint8Array, offset: number): { start: number; end: number } {
  const first = bytes[offset + 1] ?? 0;
  if (first < 0x80) return { start: offset + 2, end: offset + 2 + first };
  const count = first & 0x7f;
  let length = 0;
  for (let index = 0; index < count; index++) {
    length = length * 256 + (bytes[offset + 2 + index] ?? 0);
  }
  const start = offset + 2 + count;
  return { start, end: start + length };
}

/** The DER inside the first PEM block of `text`. */
export function pemBytes(text: string): Uint8Array {
  const match = /-----BEGIN [^-]+-----([^-]+)-----END/.exec(text);
  return Buffer.from(match?.[1] ?? '', 'base64');
}

function pem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

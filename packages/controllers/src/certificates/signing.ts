/** Signs what a certificate request asks for, by the rules that upstream's signers share. */
import { ownMember } from '@megaplane/base/members';
import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as der from '@megaplane/base/der';
import { derAt, derChildren, objectIdAt, type DerValue } from '@megaplane/base/der-reader';
import type { CertificateRequest } from '@megaplane/machinery/certificate-request';

/** Clocks of those who use the certificate may be behind by this much. */
const BACKDATE_MS = 5 * 60_000;
/** Certificates of less than this are given their whole time from now on. */
const SHORT_MS = 8 * 3_600_000;
const LIFE_MS_MIN = 10 * 60_000;
const SERIAL_BYTES = 16;

/** An authority, read once. */
export interface Authority {
  readonly certificate: X509Certificate;
  readonly key: KeyObject;
}

/** Reads PEM texts; throws where they are none, or not of one another. */
export function readAuthority(certificate: string, key: string): Authority {
  const read = new X509Certificate(certificate);
  const privateKey = createPrivateKey(key);
  if (!['rsa', 'ec', 'ed25519'].includes(privateKey.asymmetricKeyType ?? '')) {
    throw new Error('the key is neither RSA, nor on a curve, nor Ed25519');
  }
  if (!read.checkPrivateKey(privateKey)) throw new Error('the key is not that of the certificate');
  return { certificate: read, key: privateKey };
}

/** How long a certificate lives that was asked for so many seconds (0 = not said). */
export function lifeMs(askedSeconds: number, usualMs: number): number {
  if (askedSeconds <= 0) return usualMs;
  return Math.max(LIFE_MS_MIN, Math.min(usualMs, askedSeconds * 1000));
}

/** Bits of the key usage extension, from the first on. */
const KEY_USAGES: Readonly<Record<string, number>> = {
  signing: 0,
  'digital signature': 0,
  'content commitment': 1,
  'key encipherment': 2,
  'data encipherment': 3,
  'key agreement': 4,
  'cert sign': 5,
  'crl sign': 6,
  'encipher only': 7,
  'decipher only': 8,
};

/** Object identifiers of the extended key usage, in the order in which they stand. */
const PURPOSES: Readonly<Record<string, string>> = {
  any: '2.5.29.37.0',
  'server auth': '1.3.6.1.5.5.7.3.1',
  'client auth': '1.3.6.1.5.5.7.3.2',
  'code signing': '1.3.6.1.5.5.7.3.3',
  'email protection': '1.3.6.1.5.5.7.3.4',
  's/mime': '1.3.6.1.5.5.7.3.4',
  'ipsec end system': '1.3.6.1.5.5.7.3.5',
  'ipsec tunnel': '1.3.6.1.5.5.7.3.6',
  'ipsec user': '1.3.6.1.5.5.7.3.7',
  timestamping: '1.3.6.1.5.5.7.3.8',
  'ocsp signing': '1.3.6.1.5.5.7.3.9',
  'microsoft sgc': '1.3.6.1.4.1.311.10.3.3',
  'netscape sgc': '2.16.840.1.113730.4.1',
};

export interface Terms {
  readonly usages: readonly string[];
  readonly lifeMs: number;
  readonly nowMs: number;
  /** `SERIAL_BYTES` random bytes; the first bit is cleared. */
  readonly random: () => number;
}

/** True if nothing can be signed any more. */
export function isOver({ certificate }: Authority, nowMs: number): boolean {
  return nowMs >= Date.parse(certificate.validTo);
}

/** The certificate, in PEM. */
export function signRequest(
  request: CertificateRequest,
  authority: Authority,
  terms: Terms,
): string {
  const { nowMs } = terms;
  const until = nowMs + terms.lifeMs - (terms.lifeMs < SHORT_MS ? 0 : BACKDATE_MS);
  const notAfter = Math.min(until, Date.parse(authority.certificate.validTo));
  const serial = Uint8Array.from({ length: SERIAL_BYTES }, terms.random);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const algorithm = algorithmOf(authority.key);
  const body = der.sequence(
    der.tagged(0, der.unsigned(Uint8Array.of(2))),
    der.unsigned(serial),
    algorithm.name,
    subjectOf(authority.certificate.raw),
    der.sequence(der.time(nowMs - BACKDATE_MS), der.time(notAfter)),
    request.subject,
    request.publicKey,
    der.tagged(3, der.sequence(...extensionsOf(request, authority, terms.usages))),
  );
  const signature = sign(algorithm.hash, body, authority.key);
  const whole = der.sequence(body, algorithm.name, der.bits(signature));
  const lines =
    Buffer.from(whole)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function algorithmOf({ asymmetricKeyType }: KeyObject): {
  readonly name: Uint8Array;
  readonly hash: string | null;
} {
  if (asymmetricKeyType === 'rsa') {
    const none = der.tlv(0x05);
    return { name: der.sequence(der.objectId('1.2.840.113549.1.1.11'), none), hash: 'sha256' };
  }
  if (asymmetricKeyType === 'ed25519') {
    return { name: der.sequence(der.objectId('1.3.101.112')), hash: null };
  }
  return { name: der.sequence(der.objectId('1.2.840.10045.4.3.2')), hash: 'sha256' };
}

/** The fields of a certificate (RFC 5280, 4.1), from the serial number on. */
function fieldsOf(certificate: Uint8Array): readonly DerValue[] {
  const top = derAt(certificate, 0, certificate.length);
  const [body] = top === undefined ? [] : (derChildren(certificate, top) ?? []);
  const fields = body === undefined ? [] : (derChildren(certificate, body) ?? []);
  return fields[0]?.tag === 0xa0 ? fields.slice(1) : fields;
}

/** The subject of a certificate as it was written: serial, issuer ... come before it. */
function subjectOf(certificate: Uint8Array): Uint8Array {
  const subject = fieldsOf(certificate)[4];
  if (subject === undefined) throw new Error('the certificate of the authority has no subject');
  return certificate.subarray(subject.at, subject.end);
}

function extensionsOf(
  request: CertificateRequest,
  { certificate }: Authority,
  usages: readonly string[],
): Uint8Array[] {
  const list: Uint8Array[] = [];
  const bits = usages.map((one) => ownMember(KEY_USAGES, one)).filter((bit) => bit !== undefined);
  if (bits.length > 0) list.push(extension('2.5.29.15', true, keyUsage(bits)));
  const purposes = Object.keys(PURPOSES).filter((one) => usages.includes(one));
  if (purposes.length > 0) {
    const ids = new Set(purposes.map((one) => ownMember(PURPOSES, one) ?? ''));
    const content = der.sequence(...[...ids].map((one) => der.objectId(one)));
    list.push(extension('2.5.29.37', false, content));
  }
  list.push(extension('2.5.29.19', true, der.sequence()));
  const id = keyIdOf(certificate.raw);
  if (id !== undefined) list.push(extension('2.5.29.35', false, der.sequence(id)));
  // Without a subject the further names are what the certificate is of.
  const isBare = request.subject.length === 2;
  const names = namesOf(request);
  if (names.length > 0) list.push(extension('2.5.29.17', isBare, der.sequence(...names)));
  return list;
}

function extension(oid: string, isCritical: boolean, value: Uint8Array): Uint8Array {
  return der.sequence(der.objectId(oid), ...(isCritical ? [der.truth()] : []), der.octets(value));
}

function keyUsage(set: readonly number[]): Uint8Array {
  const last = Math.max(...set);
  const bytes = new Uint8Array((last >> 3) + 1);
  for (const bit of set) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return der.bits(bytes, 7 - (last & 7));
}

/** Tags of names for hosts, mail, addresses and URIs, in upstream's order; others are left out. */
const NAME_TAGS: readonly number[] = [0x82, 0x81, 0x87, 0x86];

function namesOf({ names }: CertificateRequest): Uint8Array[] {
  const top = names === undefined ? undefined : derAt(names, 0, names.length);
  if (names === undefined || top === undefined) return [];
  const all = derChildren(names, top) ?? [];
  return NAME_TAGS.flatMap((tag) =>
    all.filter((one) => one.tag === tag).map(({ at, end }) => names.subarray(at, end)),
  );
}

/** The identifier that an authority's certificate gives its key, as those that it signs name it. */
function keyIdOf(certificate: Uint8Array): Uint8Array | undefined {
  const last = fieldsOf(certificate).at(-1);
  const [list] = last?.tag === 0xa3 ? (derChildren(certificate, last) ?? []) : [];
  for (const one of list === undefined ? [] : (derChildren(certificate, list) ?? [])) {
    const parts = derChildren(certificate, one) ?? [];
    const [name] = parts;
    const content = parts.at(-1);
    if (name === undefined || content === undefined) continue;
    if (objectIdAt(certificate, name) !== '2.5.29.14') continue;
    const id = derAt(certificate, content.start, content.end);
    if (id !== undefined) return der.implicit(0, certificate.subarray(id.start, id.end));
  }
  return undefined;
}

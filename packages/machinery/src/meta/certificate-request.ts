/** Certificate requests (PKCS #10, RFC 2986): who asks for which names, with which key. */
import { ownMember } from '@megaplane/base/members';
import { createPublicKey, verify, type KeyObject } from 'node:crypto';
import { derAt, derChildren, isDer, objectIdAt, type DerValue } from '@megaplane/base/der-reader';
import { nextPemBlock } from './pem.ts';

/** A request whose signature is that of its own key. */
export interface CertificateRequest {
  /** The subject as it was written, to be taken over byte for byte. */
  readonly subject: Uint8Array;
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** The public key as it was written. */
  readonly publicKey: Uint8Array;
  readonly key: KeyObject;
  /** The content of the extension for further names, where there is one. */
  readonly names: Uint8Array | undefined;
  readonly dnsNames: readonly string[];
  readonly addresses: number;
  /** The addresses themselves, in network order: 4 or 16 bytes each, or what else was written. */
  readonly addressBytes: readonly Uint8Array[];
  readonly emails: number;
  readonly uris: number;
}

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  extensionRequest: '1.2.840.113549.1.9.14',
  subjectAltName: '2.5.29.17',
} as const;

/** Tags of texts in names. */
const TEXT = {
  utf8: 0x0c,
  numeric: 0x12,
  printable: 0x13,
  teletex: 0x14,
  ia5: 0x16,
  universal: 0x1c,
  basic: 0x1e,
} as const;

/** Hash of each kind of signature; null where the kind has its own. */
const HASHES: Readonly<Record<string, string | null>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.3.101.112': null,
};
const REQUEST_BYTES_MAX = 100_000;

interface ReadRequest {
  readonly bytes: Buffer;
  readonly body: DerValue;
  readonly algorithm: DerValue;
  readonly signature: DerValue;
  readonly request: CertificateRequest;
}

/** Reads the PEM of a request, or says what is wrong with it. Who signed it is not looked at. */
export function readRequest(pem: string): CertificateRequest | string {
  const parts = readParts(pem);
  return typeof parts === 'string' ? parts : parts.request;
}

/** The same, of a request that has to be signed with its own key. */
export function parseRequest(pem: string): CertificateRequest | string {
  const parts = readParts(pem);
  return typeof parts === 'string' ? parts : verified(parts);
}

/** What Go says of bytes that are not one value. */
function shapeFault(bytes: Buffer): string {
  if (bytes.length === 0) return 'asn1: syntax error: sequence truncated';
  if (bytes.length === 1) return 'asn1: syntax error: truncated tag or length';
  const top = derAt(bytes, 0, Infinity);
  if (top !== undefined && top.end > bytes.length) return 'asn1: syntax error: data truncated';
  if (top !== undefined && top.end < bytes.length) return 'asn1: syntax error: trailing data';
  return 'the request is no DER';
}

function readParts(pem: string): ReadRequest | string {
  const block = nextPemBlock(pem);
  if (block?.type !== 'CERTIFICATE REQUEST') return 'PEM block type must be CERTIFICATE REQUEST';
  const { bytes } = block;
  if (bytes.length > REQUEST_BYTES_MAX) return `the request is over ${REQUEST_BYTES_MAX} bytes`;
  if (!isDer(bytes)) return shapeFault(bytes);
  const top = derAt(bytes, 0, bytes.length);
  const parts = top?.tag === 0x30 ? childrenOf(bytes, top) : [];
  const [body, algorithm, signature] = parts;
  const isWhole = parts.length === 3 && parts.map(({ tag }) => tag).join(' ') === '48 48 3';
  if (!isWhole || body === undefined || algorithm === undefined || signature === undefined) {
    return 'the request has not the parts of a certificate request';
  }
  if (bytes[signature.start] !== 0) return 'the signature of the request is no row of bytes';
  const request = parseBody(bytes, body);
  return typeof request === 'string' ? request : { bytes, body, algorithm, signature, request };
}

function verified(parts: ReadRequest): CertificateRequest | string {
  const { bytes, body, algorithm, signature, request } = parts;
  const [name] = childrenOf(bytes, algorithm);
  const oid = name === undefined ? '' : objectIdAt(bytes, name);
  const hash = ownMember(HASHES, oid);
  if (hash === undefined) return `the request is signed with ${oid}, which is not known`;
  const signed = bytes.subarray(body.at, body.end);
  // The first byte of a bit string counts its unused bits.
  const own = bytes.subarray(signature.start + 1, signature.end);
  try {
    if (verify(hash, signed, request.key, own)) return request;
  } catch {
    return 'the signature of the request is not of the kind of its key';
  }
  return 'the signature of the request is not that of its key';
}

function childrenOf(bytes: Uint8Array, value: DerValue): DerValue[] {
  return derChildren(bytes, value) ?? [];
}

function parseBody(bytes: Buffer, body: DerValue): CertificateRequest | string {
  const [version, subject, publicKey, attributes] = childrenOf(bytes, body);
  if (version?.tag !== 0x02 || subject?.tag !== 0x30 || publicKey?.tag !== 0x30) {
    return 'the request has not the fields of a certificate request';
  }
  const key = bytes.subarray(publicKey.at, publicKey.end);
  const read = keyOf(key);
  if (read === undefined) return 'the key of the request cannot be read';
  const named = (oid: string): string[] => subjectValues(bytes, subject, oid);
  const names = attributes === undefined ? undefined : namesOf(bytes, attributes);
  return {
    subject: bytes.subarray(subject.at, subject.end),
    commonName: named(OID.commonName).at(-1) ?? '',
    organizations: named(OID.organization),
    publicKey: key,
    key: read,
    ...countNames(names),
  };
}

function keyOf(key: Buffer): KeyObject | undefined {
  try {
    return createPublicKey({ key, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

/** Values of an attribute in a distinguished name, in their order. */
function subjectValues(bytes: Buffer, subject: DerValue, oid: string): string[] {
  const found: string[] = [];
  for (const set of childrenOf(bytes, subject)) {
    for (const attribute of childrenOf(bytes, set)) {
      const [name, value] = childrenOf(bytes, attribute);
      if (name === undefined || value === undefined || objectIdAt(bytes, name) !== oid) continue;
      found.push(textAt(bytes, value));
    }
  }
  return found;
}

/** A text in any of the forms of a directory (RFC 5280, 4.1.2.4); '' of what is no text. */
function textAt(bytes: Buffer, { tag, start, end }: DerValue): string {
  switch (tag) {
    case TEXT.utf8:
    case TEXT.numeric:
    case TEXT.printable:
    case TEXT.ia5:
      return bytes.toString('utf8', start, end);
    case TEXT.teletex:
      return bytes.toString('latin1', start, end);
    case TEXT.universal:
      return wideText(bytes, start, end, 4);
    case TEXT.basic:
      return wideText(bytes, start, end, 2);
    default:
      return '';
  }
}

/** Characters of a fixed number of bytes each, the highest first. */
function wideText(bytes: Buffer, start: number, end: number, size: number): string {
  const codes: number[] = [];
  for (let at = start; at + size <= end; at += size) codes.push(bytes.readUIntBE(at, size));
  return codes.some((code) => code > 0x10ffff) ? '' : String.fromCodePoint(...codes);
}

/** Content of the extension for further names. */
function namesOf(bytes: Buffer, attributes: DerValue): Buffer | undefined {
  for (const attribute of childrenOf(bytes, attributes)) {
    const [name, values] = childrenOf(bytes, attribute);
    if (name === undefined || objectIdAt(bytes, name) !== OID.extensionRequest) continue;
    const lists = values === undefined ? [] : childrenOf(bytes, values);
    for (const extension of lists.flatMap((list) => childrenOf(bytes, list))) {
      const parts = childrenOf(bytes, extension);
      const [id] = parts;
      const content = parts.at(-1);
      if (id === undefined || objectIdAt(bytes, id) !== OID.subjectAltName) continue;
      if (content?.tag === 0x04) return bytes.subarray(content.start, content.end);
    }
  }
  return undefined;
}

function countNames(
  names: Buffer | undefined,
): Pick<
  CertificateRequest,
  'names' | 'dnsNames' | 'addresses' | 'addressBytes' | 'emails' | 'uris'
> {
  const top = names === undefined ? undefined : derAt(names, 0, names.length);
  const list = names === undefined || top === undefined ? [] : childrenOf(names, top);
  const of = (tag: number): DerValue[] => list.filter((one) => one.tag === tag);
  return {
    names,
    dnsNames: of(0x82).map(({ start, end }) => names?.toString('latin1', start, end) ?? ''),
    addresses: of(0x87).length,
    addressBytes: of(0x87).flatMap(({ start, end }) => names?.subarray(start, end) ?? []),
    emails: of(0x81).length,
    uris: of(0x86).length,
  };
}

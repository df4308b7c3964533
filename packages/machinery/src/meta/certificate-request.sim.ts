/** Certificate requests for tests, and an authority to sign them. */
import { generateKeyPairSync, sign } from 'node:crypto';
import * as der from '@megaplane/base/der';

export interface Wanted {
  readonly commonName?: string;
  readonly organizations?: readonly string[];
  /** How texts of the subject are written: as UTF8String where nothing is said. */
  readonly write?: (text: string) => Uint8Array;
  readonly dnsNames?: readonly string[];
  readonly addresses?: readonly (readonly number[])[];
}

const OID = {
  ecdsaSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  extensionRequest: '1.2.840.113549.1.9.14',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
} as const;

function nameOf({ commonName, organizations = [], write = der.utf8 }: Wanted): Uint8Array {
  const attribute = (oid: string, text: string): Uint8Array =>
    der.set(der.sequence(der.objectId(oid), write(text)));
  return der.sequence(
    ...organizations.map((one) => attribute(OID.organization, one)),
    ...(commonName === undefined ? [] : [attribute(OID.commonName, commonName)]),
  );
}

function pem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

/** A request in PEM, signed by a new key on P-256. */
export function newRequest(wanted: Wanted): string {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const names = [
    ...(wanted.dnsNames ?? []).map((one) => der.implicit(2, Buffer.from(one))),
    ...(wanted.addresses ?? []).map((one) => der.implicit(7, Uint8Array.from(one))),
  ];
  const alternative = der.sequence(
    der.objectId(OID.subjectAltName),
    der.octets(der.sequence(...names)),
  );
  const extensions = der.sequence(
    der.objectId(OID.extensionRequest),
    der.set(der.sequence(alternative)),
  );
  const body = der.sequence(
    der.unsigned(Uint8Array.of(0)),
    nameOf(wanted),
    pair.publicKey.export({ type: 'spki', format: 'der' }),
    der.tagged(0, ...(names.length > 0 ? [extensions] : [])),
  );
  const algorithm = der.sequence(der.objectId(OID.ecdsaSha256));
  const signature = der.bits(sign('sha256', body, pair.privateKey));
  return pem('CERTIFICATE REQUEST', der.sequence(body, algorithm, signature));
}

/** An authority that signs itself, in PEM. */
export function newAuthority(
  fromMs: number,
  untilMs: number,
): { readonly certificate: string; readonly key: string } {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = nameOf({ commonName: 'test-ca' });
  const algorithm = der.sequence(der.objectId(OID.ecdsaSha256));
  const constraints = der.sequence(
    der.objectId(OID.basicConstraints),
    der.truth(),
    der.octets(der.sequence(der.truth())),
  );
  const body = der.sequence(
    der.tagged(0, der.unsigned(Uint8Array.of(2))),
    der.unsigned(Uint8Array.of(1)),
    algorithm,
    name,
    der.sequence(der.time(fromMs), der.time(untilMs)),
    name,
    pair.publicKey.export({ type: 'spki', format: 'der' }),
    der.tagged(3, der.sequence(constraints)),
  );
  const signature = der.bits(sign('sha256', body, pair.privateKey));
  return {
    certificate: pem('CERTIFICATE', der.sequence(body, algorithm, signature)),
    key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

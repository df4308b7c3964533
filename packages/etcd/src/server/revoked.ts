/** Serial numbers in a certificate revocation list (RFC 5280 section 5.1), PEM or DER. */

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;

interface Part {
  readonly tag: number;
  readonly start: number;
  readonly end: number;
}

/** The element at `at`; null when the bytes end inside it. */
function part(bytes: Buffer, at: number, limit: number): Part | null {
  if (at + 2 > limit) return null;
  const tag = bytes[at] ?? 0;
  const first = bytes[at + 1] ?? 0;
  const count = first < 0x80 ? 0 : first & 0x7f;
  if (count > 4 || at + 2 + count > limit) return null;
  const size = count === 0 ? first : bytes.readUIntBE(at + 2, count);
  const start = at + 2 + count;
  return start + size > limit ? null : { tag, start, end: start + size };
}

function parts(bytes: Buffer, { start, end }: Part): Part[] | null {
  const found: Part[] = [];
  for (let at = start; at < end;) {
    const one = part(bytes, at, end);
    if (one === null) return null;
    found.push(one);
    at = one.end;
  }
  return found;
}

/** Upper-case hexadecimal without leading zeros, as node:crypto shows serial numbers. */
function serialText(bytes: Buffer, { start, end }: Part): string {
  return bytes.toString('hex', start, end).replace(/^0+/, '').toUpperCase();
}

/** Null when the text is no list. */
export function revokedSerials(file: Buffer): ReadonlySet<string> | null {
  const pem = /-----BEGIN X509 CRL-----([^-]+)-----END/.exec(file.toString('latin1'));
  const bytes = pem === null ? file : Buffer.from(pem[1] ?? '', 'base64');
  const whole = part(bytes, 0, bytes.length);
  const body = whole?.tag === SEQUENCE ? parts(bytes, whole)?.[0] : undefined;
  const items = body?.tag === SEQUENCE ? parts(bytes, body) : null;
  if (items === null) return null;
  // version?, algorithm, issuer, this update, next update?, then the list if there is any.
  const times = items.flatMap(({ tag }, index) =>
    tag === UTC_TIME || tag === GENERALIZED_TIME ? [index] : [],
  );
  const list = items[(times.at(-1) ?? items.length) + 1];
  if (times.length === 0) return null;
  const serials = new Set<string>();
  for (const row of list?.tag === SEQUENCE ? (parts(bytes, list) ?? []) : []) {
    const serial = part(bytes, row.start, row.end);
    if (serial?.tag === INTEGER) serials.add(serialText(bytes, serial));
  }
  return serials;
}

/** The serial of a certificate in the same form. */
export function comparableSerial(serialNumber: string): string {
  return serialNumber.replace(/^0+/, '').toUpperCase();
}

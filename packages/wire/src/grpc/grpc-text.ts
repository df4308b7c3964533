/** What gRPC writes as text in header fields: timeouts and messages. */

const TIMEOUT_UNITS_MS = new Map<string, number>([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1000],
  ['m', 1],
  ['u', 0.001],
  ['n', 0.000_001],
]);

/** Milliseconds of a `grpc-timeout`; Infinity without one, -1 if it is malformed. */
export function parseTimeout(text: string | undefined): number {
  if (text === undefined) return Infinity;
  const unit = TIMEOUT_UNITS_MS.get(text.slice(-1));
  const digits = text.slice(0, -1);
  if (unit === undefined || !/^\d{1,8}$/.test(digits)) return -1;
  return Number(digits) * unit;
}

/** `grpc-timeout` for a number of milliseconds, at most 8 digits as the protocol wants. */
export function formatTimeout(timeoutMs: number): string {
  const ms = Math.max(0, Math.ceil(timeoutMs));
  if (ms < 100_000_000) return `${ms}m`;
  return `${Math.min(99_999_999, Math.ceil(ms / 1000))}S`;
}

/** A message as `grpc-message` carries it: UTF-8, percent-encoded outside of printable ASCII. */
export function encodeMessage(message: string): string {
  if (/^[ -$&-~]*$/.test(message)) return message;
  let coded = '';
  for (const octet of Buffer.from(message)) {
    const plain = octet >= 32 && octet <= 126 && octet !== 37;
    coded += plain
      ? String.fromCharCode(octet)
      : `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return coded;
}

/** The reverse; what is not well-formed is kept as it is. */
export function decodeMessage(text: string): string {
  if (!text.includes('%')) return text;
  const octets: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const hex = text.slice(i + 1, i + 3);
    if (text[i] === '%' && /^[0-9a-fA-F]{2}$/.test(hex)) {
      octets.push(Number.parseInt(hex, 16));
      i += 2;
    } else {
      octets.push(text.charCodeAt(i) & 255);
    }
  }
  return Buffer.from(octets).toString('utf8');
}

/**
 * What a connection thread and the thread that serves say to each other, by rings in shared memory.
 *
 * A slot is a connection of one thread: from `OPENED`, its first message, to `FORGET`, the last,
 * after which the thread uses it again.
 */
import { parseNested } from '@megaplane/base/nested-json';
import type { PeerCertificate } from '../http/exchange.ts';

/** From the thread that owns the sockets. */
export const OPENED = 1;
/** What the peer sent, decrypted. */
export const RECEIVED = 2;
/** The peer half-closed. */
export const PEER_ENDED = 3;
/** The kernel has taken all that waited, and `WRITTEN_BYTES` or more since this was last said. */
export const DRAINED = 4;
/** The socket is gone: nothing of this slot follows. */
export const CLOSED = 5;

/** From the thread that serves. */
export const SEND = 16;
/** So many octets of `RECEIVED` are done with; four octets, little-endian. */
export const TAKEN = 17;
/** End after what was sent. */
export const END = 18;
/** Cut the connection. */
export const DESTROY = 19;
/** Answers `CLOSED`. */
export const FORGET = 20;

/** Octets that must have left before it is worth a message that nothing waits any more. */
export const WRITTEN_BYTES: number = 16 * 1024;
/** Octets of one connection on their way to the thread that serves; above it it is not read. */
export const AHEAD_BYTES_MAX: number = 64 * 1024;
/** Of those, what is told of together as done with. */
export const TAKEN_BYTES: number = 32 * 1024;
/** Octets of one message; longer pieces are cut. */
export const PIECE_BYTES: number = 128 * 1024;

/** What one thread tells before its connection's first octet. */
export interface Opening {
  readonly secure: boolean;
  readonly isHttp2: boolean;
  readonly remoteAddress: string;
  readonly certificate: PeerCertificate | null;
}

interface CertificateText extends Omit<PeerCertificate, 'raw' | 'issuers'> {
  /** Base64. */
  readonly raw: string;
  readonly issuers: readonly string[];
}

interface OpeningText extends Omit<Opening, 'certificate'> {
  readonly certificate: CertificateText | null;
}

export function writeOpening(opening: Opening): Buffer {
  const { certificate } = opening;
  const text: OpeningText = {
    ...opening,
    certificate:
      certificate === null
        ? null
        : {
            ...certificate,
            raw: certificate.raw.toString('base64'),
            issuers: (certificate.issuers?.() ?? []).map((each) => each.toString('base64')),
          },
  };
  return Buffer.from(JSON.stringify(text));
}

/** Reads what `writeOpening` wrote. */
export function readOpening(bytes: Buffer): Opening {
  const { certificate, ...rest } = parseNested(bytes.toString()) as OpeningText;
  if (certificate === null) return { ...rest, certificate };
  const raw = Buffer.from(certificate.raw, 'base64');
  const issuers = certificate.issuers.map((each) => Buffer.from(each, 'base64'));
  return { ...rest, certificate: { ...certificate, raw, issuers: () => issuers } };
}

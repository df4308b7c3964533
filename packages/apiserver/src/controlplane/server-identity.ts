/** The name of a server among those on the same storage. */
import { createHash } from 'node:crypto';

/** Who this server is among those on the same storage. */
export interface ServerIdentity {
  /** `apiserver-` and a hash of the host. */
  readonly id: string;
  /** Told anew at each start. */
  readonly holder: string;
  readonly hostname: string;
}

/** As upstream names servers: by a hash of the host; `run` is a random text for this run. */
export function identityOfHost(name: string, run: string): ServerIdentity {
  const hash = createHash('sha256').update(name).digest().subarray(0, 16);
  const id = `apiserver-${base32(hash).toLowerCase()}`;
  return { id, holder: `${id}_${run}`, hostname: name };
}

/** RFC 4648, section 6, without padding. */
function base32(bytes: Uint8Array): string {
  let [text, bits, held] = ['', 0, 0];
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(held >> (bits - 5)) & 31] ?? '';
    held &= (1 << bits) - 1;
  }
  return bits === 0 ? text : text + (BASE32[(held << (5 - bits)) & 31] ?? '');
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

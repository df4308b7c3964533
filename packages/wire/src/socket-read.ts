// shell
/**
 * Reads sockets into one piece of memory that all of them share.
 *
 * Node gives each read 64 KiB of its own and a Buffer around it: at 100 MB/s that is what the
 * garbage collector mostly does. `net.connect` has an option against it (`onread`), sockets that a
 * server accepts do not, and TLS has it on neither side; the fields behind the option are the same
 * for all of them. Where a Node has other fields, chunks come as 'data' events as ever.
 */
import type { Socket } from 'node:net';

/** A read takes at most this; more of it is more requests for one write of answers. */
const READ_BYTES: number = 256 * 1024;

const shared: Buffer = Buffer.allocUnsafeSlow(READ_BYTES);

interface Handle {
  useUserBuffer?(memory: Uint8Array): void;
}

/**
 * From now on `take` is called with the memory and the count of bytes in it, which are its own
 * during the call. False when that cannot be had; then nothing was changed.
 */
export function readInPlace(socket: Socket, take: (bytes: Buffer, count: number) => void): boolean {
  const fields = socket as unknown as Record<symbol, unknown> & { _handle: Handle | null };
  const handle = fields._handle;
  // What was read before stands in the stream, and must come first.
  if (handle?.useUserBuffer === undefined || socket.readableLength > 0) return false;
  const { memory, callback } = fieldNames(socket);
  if (memory === undefined || callback === undefined) return false;
  fields[memory] = shared;
  fields[callback] = (count: number): boolean => {
    take(shared, count);
    return true;
  };
  handle.useUserBuffer(shared);
  return true;
}

function fieldNames(socket: Socket): { memory: symbol | undefined; callback: symbol | undefined } {
  let memory: symbol | undefined;
  let callback: symbol | undefined;
  for (const field of Object.getOwnPropertySymbols(socket)) {
    if (field.description === 'kBuffer') memory = field;
    if (field.description === 'kBufferCb') callback = field;
  }
  return { memory, callback };
}

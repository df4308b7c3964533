// shell
/**
 * Reads sockets into one piece of memory that all of them share.
 *
 * Node gives each read 64 KiB of its own and a Buffer around it: at 100 MB/s that is what the
 * garbage collector mostly does. `net.connect` has an option against it (`onread`), sockets that a
 * server accepts do not, and TLS has it on neither side; the fields behind the option are the same
 * for all of them. Where a Node has other fields, chunks come as 'data' events as ever.
 */
import { nextTurn } from '@megaplane/base/deferred';
import type { Socket } from 'node:net';
import type { Rest } from '../http/exchange.ts';
import { ReadRounds, type RestingReader } from './read-rounds.ts';

/**
 * A read takes at most this. More is more requests for one write of answers, and a longer turn:
 * what a read brings is handled before the clock is looked at. 64 KiB cost a tenth of the processor
 * where a connection has 100 puts of 1 KB in flight, 256 KiB none less than this.
 */
const READ_BYTES: number = 128 * 1024;

const shared: Buffer = Buffer.allocUnsafeSlow(READ_BYTES);

/** The rounds of this process's event loop, for sockets that share `readMsMax` of each. */
export function readRounds(readMsMax: number): ReadRounds {
  const world = {
    nowMs: () => performance.now(),
    afterRound: (callback: () => void) => {
      nextTurn(callback);
    },
  };
  return new ReadRounds(world, readMsMax);
}

/** Is given memory and how much of it was read, for the call. */
type Take = (bytes: Buffer, count: number) => void;

interface Handle {
  reading: boolean;
  readStop(): number;
  useUserBuffer?(memory: Uint8Array): void;
}

/**
 * From now on `take` is called with the memory and the count of bytes in it, which are its own
 * during the call; within `rounds` for as long as one lasts, or as `restOf` says. False when that
 * cannot be had; then nothing was changed.
 */
export function readInPlace(
  socket: Socket,
  rounds: ReadRounds | null,
  take: Take,
  restOf: () => Rest = () => 'late',
): boolean {
  const fields = socket as unknown as Record<symbol, unknown> & { _handle: Handle | null };
  const handle = fields._handle;
  // What was read before stands in the stream, and must come first.
  if (handle?.useUserBuffer === undefined || socket.readableLength > 0) return false;
  const { memory, callback } = fieldNames(socket);
  if (memory === undefined || callback === undefined) return false;
  fields[memory] = shared;
  fields[callback] =
    rounds === null
      ? takeAll(take)
      : takeInRounds(new SocketReader(socket, handle, restOf), rounds, take);
  handle.useUserBuffer(shared);
  return true;
}

function takeAll(take: Take): (count: number) => boolean {
  return (count) => {
    take(shared, count);
    return true;
  };
}

function takeInRounds(
  reader: SocketReader,
  rounds: ReadRounds,
  take: Take,
): (count: number) => boolean {
  return (count) => {
    rounds.begin();
    take(shared, count);
    return rounds.goesOn(reader, count);
  };
}

/** Stops the reading below the stream, which knows nothing of it. */
class SocketReader implements RestingReader {
  loudRound = 0;
  readRound = 0;
  readBytes = 0;
  readMs = 0;
  readCycle = 0;
  isResting = false;
  readonly #socket: Socket;
  readonly #handle: Handle;
  readonly #restOf: () => Rest;

  constructor(socket: Socket, handle: Handle, restOf: () => Rest) {
    this.#socket = socket;
    this.#handle = handle;
    this.#restOf = restOf;
  }

  restOf(): Rest {
    return this.#restOf();
  }

  rest(): void {
    if (!this.#handle.reading || this.#socket.destroyed) return;
    this.#handle.reading = false;
    this.#handle.readStop();
  }

  wake(): void {
    if (this.#socket.destroyed || this.#socket.isPaused()) return;
    this.#socket.resume();
  }
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

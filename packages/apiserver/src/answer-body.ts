/**
 * The body of an answer of unknown length, compressed where the client asks for it and it is worth
 * it: more than 128 KiB, as upstream decides. Each piece becomes a gzip member of its own (RFC 1952
 * allows a file of many), so that a list still streams in constant memory.
 */
import { constants, gzipSync } from 'node:zlib';
import type { Call } from './call.ts';
import type { Outlet } from './list-stream.ts';

/** Answers up to here are sent as they are. */
export const PLAIN_BYTES_MAX: number = 128 * 1024;

/** True where the client takes gzip, which a weight of 0 says it does not (RFC 9110, 12.5.3). */
export function takesGzip({ exchange }: Call): boolean {
  const codings = (exchange.header('accept-encoding') ?? '').split(',');
  return codings.some((coding) => {
    const [name = '', weight = ''] = coding.split(';');
    return name.trim() === 'gzip' && !/^\s*q\s*=\s*0(?:\.0*)?\s*$/.test(weight);
  });
}

export class AnswerBody implements Outlet {
  readonly #call: Call;
  readonly #contentType: string;
  /** What was written before the head had to be sent; null afterwards. */
  #pending: Buffer[] | null;
  #pendingBytes = 0;
  readonly #headers: readonly string[];
  #isCompressed = false;
  #sentBytes = 0;
  /** Upstream counts how long the client takes to take it, too. */
  readonly #serialized: () => void;

  /** `headers` go with the answer whichever way its body does. */
  constructor(call: Call, contentType: string, headers: readonly string[] = call.headers()) {
    this.#headers = headers;
    this.#call = call;
    this.#serialized = call.timed('serialize-response-object', () => {});
    this.#contentType = contentType;
    const asked = takesGzip(call);
    this.#pending = asked ? [] : null;
    call.isLasting = true;
    call.exchange.onClose = () => call.done();
    call.code = 200;
    if (!asked) call.exchange.open(200, contentType, headers);
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (this.#call.record !== null) this.#call.keepAnswer(bytes.slice(start, end));
    if (this.#pending === null) {
      this.#send(bytes, start, end);
      return;
    }
    this.#pending.push(Buffer.from(bytes.subarray(start, end)));
    this.#pendingBytes += end - start;
    if (this.#pendingBytes > PLAIN_BYTES_MAX) this.#decide(true);
  }

  writable(): number {
    return this.#pending === null ? this.#call.exchange.writable() : PLAIN_BYTES_MAX;
  }

  end(): void {
    if (this.#pending !== null) this.#decide(false);
    this.#call.sizes?.addSize(this.#sentBytes);
    this.#call.exchange.end();
    this.#serialized();
    this.#call.done();
  }

  #decide(isCompressed: boolean): void {
    const pieces = this.#pending ?? [];
    this.#pending = null;
    this.#isCompressed = isCompressed;
    const more = isCompressed ? ['content-encoding', 'gzip', 'vary', 'Accept-Encoding'] : [];
    this.#call.exchange.open(200, this.#contentType, [...this.#headers, ...more]);
    for (const piece of pieces) this.#send(piece, 0, piece.length);
  }

  #send(bytes: Uint8Array, start: number, end: number): void {
    const { exchange } = this.#call;
    if (!this.#isCompressed) {
      this.#sentBytes += end - start;
      exchange.write(bytes, start, end);
      return;
    }
    const packed = gzipSync(bytes.subarray(start, end), { level: constants.Z_BEST_SPEED });
    this.#sentBytes += packed.length;
    exchange.write(packed);
  }
}

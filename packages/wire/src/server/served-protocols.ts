// shell
/** Which protocol a connection speaks, and what it is served with: one for all of a listener's. */
import { WallDate } from '../http/response-date.ts';
import type { BodyOwner, Handler, StreamsBody } from '../http/exchange.ts';
import type { GrpcRoutes } from '../grpc/grpc-routes.ts';
import { Http1Server } from '../http1/http1-server.ts';
import { PREFACE } from '../http2/frames.ts';
import { SERVER_LIMITS, type WireLimits } from '../limits.ts';
import { AnswerBudget } from '../transport/answer-budget.ts';
import { BodyBudget } from '../transport/body-budget.ts';
import type { Protocol, Transport } from '../transport/transport.ts';
import { Http2Server, type Http2ServerOptions } from './http2-server.ts';

/** What the connections of a listener are served with. */
export interface ServingOptions {
  /**
   * Closes without a word, as etcd's ports do, where plain HTTP comes to a port of TLS and where
   * what comes to a plain one opens neither HTTP/2 nor HTTP/1 (cmux's matchers). Without it both
   * are told, as by Go's own servers.
   */
  readonly isSilent?: boolean;
  /** False: HTTP/2 is neither offered nor understood over TLS. */
  readonly speaksHttp2?: boolean;
  readonly handler: Handler;
  readonly streamsBody?: StreamsBody;
  readonly grpc?: GrpcRoutes;
  /** Whose a body is that does not come with its head; absent: that of its peer's address. */
  readonly bodyOwner?: BodyOwner;
  readonly limits?: Partial<WireLimits>;
  /** Errors thrown by handlers. Default: written to standard error. */
  readonly onError?: (error: unknown) => void;
}

/** One for all listeners. */
const DATE = new WallDate();
/** Octets within which a silent port wants to see the end of the first line, as cmux does. */
const FIRST_LINE_BYTES_MAX = 4096;
const LINE_FEED = 10;

export class ServedProtocols {
  readonly options: Http2ServerOptions;
  readonly #speaksHttp2: boolean;
  readonly #isSilent: boolean;

  constructor(options: ServingOptions) {
    const limits = { ...SERVER_LIMITS, ...options.limits };
    this.#speaksHttp2 = options.speaksHttp2 !== false;
    this.#isSilent = options.isSilent === true;
    this.options = {
      handler: options.handler,
      streamsBody: options.streamsBody ?? (() => false),
      limits,
      bodies: new BodyBudget(limits.listenerBodiesBytesMax),
      answers: new AnswerBudget(limits.listenerQueuesBytesMax),
      date: DATE,
      onError: options.onError ?? ((error) => console.error(error)),
      grpc: options.grpc ?? null,
      ...(options.bodyOwner === undefined ? {} : { bodyOwner: options.bodyOwner }),
    };
  }

  /** Where TLS has agreed on it. */
  http2(transport: Transport): Protocol {
    return new Http2Server(transport, this.options);
  }

  /** By the first octets; null: they do not tell yet, or the connection was cut for them. */
  choose(transport: Transport, bytes: Buffer): Protocol | null {
    const count = Math.min(bytes.length, 3);
    const isHttp2 = this.#speaksHttp2 || !transport.secure;
    if (isHttp2 && bytes.compare(PREFACE, 0, count, 0, count) === 0) {
      return count < 3 ? null : this.http2(transport);
    }
    if (this.#isSilent && !transport.secure) {
      const end = bytes.indexOf(LINE_FEED);
      if (end < 0 && bytes.length < FIRST_LINE_BYTES_MAX) return null;
      if (end >= 0 && !opensHttp1(bytes, end)) {
        transport.destroy();
        return null;
      }
    }
    return new Http1Server(transport, this.options);
  }
}

/** Does a line name a version of HTTP/1? What else is wrong with it is told by that protocol. */
function opensHttp1(bytes: Buffer, end: number): boolean {
  return / HTTP\/1\.\d+\s*$/.test(bytes.toString('latin1', Math.max(0, end - 32), end));
}

/** The methods of a gRPC server, and what is refused before any of them is asked. */
import { assert } from '@megaplane/base/assert';
import { GrpcInPlace } from './grpc-in-place.ts';
import { headRefusal, lastValue, quotedOctets, timeoutOf } from './grpc-head.ts';
import { isKnownEncoding } from './grpc-inflate.ts';
import { GRPC_CODES, type GrpcRoute, type GrpcRefusal } from '../http/grpc.ts';
import type {
  GrpcCallFactory,
  GrpcMethods,
  GrpcOptions,
  GrpcShape,
  InPlaceHandler,
} from '../http/grpc.ts';
import type { RequestHead } from '../http2/http2-head.ts';

const OPTIONS: GrpcOptions = {
  messageBytesMax: 4 * 1024 * 1024,
  messageTooLargeText: (bytes, bytesMax) =>
    `received message larger than max (${bytes} vs. ${bytesMax})`,
};

export class GrpcRoutes implements GrpcMethods {
  readonly options: GrpcOptions;
  readonly inPlace: GrpcInPlace;
  readonly #routes = new Map<string, GrpcRoute>();
  readonly #services = new Set<string>();

  constructor(options: Partial<GrpcOptions> = {}) {
    this.options = { ...OPTIONS, ...options };
    this.inPlace = new GrpcInPlace(this.options);
  }

  unary(path: string, handler: InPlaceHandler): void {
    this.#add({ path, inPlace: handler, factory: null, shape: 'unary' });
  }

  call(path: string, factory: GrpcCallFactory, shape: GrpcShape = 'bidi_stream'): void {
    this.#add({ path, inPlace: null, factory, shape });
  }

  find(path: string): GrpcRoute | null {
    return this.#routes.get(path) ?? null;
  }

  /** Why a call with this head is refused at once; null if it is not. */
  refusal(head: RequestHead): GrpcRefusal | null {
    const refused = headRefusal(head);
    if (refused !== null) return refused;
    const { unimplemented, deadlineExceeded } = GRPC_CODES;
    if (head.route === null) {
      return { code: unimplemented, message: this.#unknown(head.path), status: 200 };
    }
    const encoding = lastValue(head.fields, 'grpc-encoding') ?? '';
    if (!isKnownEncoding(encoding)) {
      const quotes = quotedOctets(encoding);
      const message = `grpc: Decompressor is not installed for grpc-encoding ${quotes}`;
      return { code: unimplemented, message, status: 200 };
    }
    // What is less than the clock tells apart is over when the request is read.
    if (timeoutOf(head.fields) >= 1) return null;
    return { code: deadlineExceeded, message: 'context deadline exceeded', status: 200 };
  }

  #unknown(path: string): string {
    const slash = path.lastIndexOf('/');
    if (slash < 1) return `malformed method name: ${quotedOctets(path)}`;
    const service = path.slice(1, slash);
    const named = Buffer.from(service, 'latin1').toString();
    if (!this.#services.has(service)) return `unknown service ${named}`;
    const method = Buffer.from(path.slice(slash + 1), 'latin1').toString();
    return `unknown method ${method} for service ${named}`;
  }

  #add(route: GrpcRoute): void {
    assert(/^\/[^/]+\/[^/]+$/.test(route.path), 'a method path is /package.Service/Method');
    assert(!this.#routes.has(route.path), 'a method is registered once');
    this.#routes.set(route.path, route);
    this.#services.add(route.path.slice(1, route.path.lastIndexOf('/')));
  }
}

/** The methods of a gRPC server, and what is refused before any of them is asked. */
import { assert } from '@megaplane/base/assert';
import { GrpcInPlace } from './grpc-in-place.ts';
import type {
  GrpcCallFactory,
  GrpcCode,
  GrpcMethods,
  GrpcOptions,
  InPlaceHandler,
} from './grpc.ts';
import { parseTimeout } from './grpc-text.ts';
import { fieldValue } from './http2-head.ts';
import type { RequestHead } from './http2-head.ts';

/** A registered method: one of the two handlers is set. */
export interface GrpcRoute {
  readonly path: string;
  readonly inPlace: InPlaceHandler | null;
  readonly factory: GrpcCallFactory | null;
}

export interface GrpcRefusal {
  readonly code: GrpcCode;
  readonly message: string;
}

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
    this.#add({ path, inPlace: handler, factory: null });
  }

  call(path: string, factory: GrpcCallFactory): void {
    this.#add({ path, inPlace: null, factory });
  }

  find(path: string): GrpcRoute | null {
    return this.#routes.get(path) ?? null;
  }

  /** Why a call with this head is refused at once; null if it is not. */
  refusal(head: RequestHead): GrpcRefusal | null {
    if (head.method !== 'POST') return { code: 13, message: `method ${head.method}, want POST` };
    if (head.route === null) return this.#unknown(head.path);
    const encoding = fieldValue(head.fields, 'grpc-encoding');
    if (encoding !== undefined && encoding !== 'identity') {
      const message = `grpc: Decompressor is not installed for grpc-encoding "${encoding}"`;
      return { code: 12, message };
    }
    if (parseTimeout(fieldValue(head.fields, 'grpc-timeout')) < 0) {
      return { code: 13, message: 'malformed grpc-timeout' };
    }
    return null;
  }

  #unknown(path: string): GrpcRefusal {
    const slash = path.lastIndexOf('/');
    const service = path.slice(1, slash);
    if (slash < 1) return { code: 12, message: `malformed method name: "${path}"` };
    if (!this.#services.has(service)) return { code: 12, message: `unknown service ${service}` };
    const method = path.slice(slash + 1);
    return { code: 12, message: `unknown method ${method} for service ${service}` };
  }

  #add(route: GrpcRoute): void {
    assert(/^\/[^/]+\/[^/]+$/.test(route.path), 'a method path is /package.Service/Method');
    assert(!this.#routes.has(route.path), 'a method is registered once');
    this.#routes.set(route.path, route);
    this.#services.add(route.path.slice(1, route.path.lastIndexOf('/')));
  }
}

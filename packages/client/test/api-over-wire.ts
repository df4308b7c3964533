import type { Exchange } from '@megaplane/wire/exchange';
import { listen, type Listener, type ListenOptions } from '@megaplane/wire/listener';
import type { FakeServer } from './fake-server.ts';

/**
 * Serves a `FakeServer` over real sockets: GET of the collection is its stream, PUT of
 * `/<namespace>/<name>` stores the body, anything else is answered by its method and path.
 */
export class ApiOverWire {
  readonly server: FakeServer;
  readonly paths: string[] = [];
  readonly tokens: Set<string> = new Set();
  listener: Listener | null = null;
  #ticker: NodeJS.Timeout | null = null;

  constructor(server: FakeServer) {
    this.server = server;
  }

  get port(): number {
    return this.listener?.address.port ?? 0;
  }

  async start(options: Partial<ListenOptions> = {}): Promise<void> {
    this.listener = await listen({
      ...(options.unixPath === undefined ? { port: 0 } : {}),
      handler: (exchange) => this.#handle(exchange),
      ...options,
    });
    this.#ticker = setInterval(() => this.server.pumpAll(1 << 20), 2);
  }

  /** Cuts all connections; `start` with the same port brings it back. */
  async stop(): Promise<void> {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    this.server.cut('server stopped');
    await this.listener?.close(0);
  }

  #handle(exchange: Exchange): void {
    this.paths.push(exchange.path);
    this.tokens.add(exchange.header('authorization') ?? '');
    const [, prefix, namespace = '', name = ''] = exchange.path.split('/');
    if (prefix === 'objects') {
      if (exchange.method === 'PUT') this.server.put(namespace, name, exchange.body.toString());
      else this.server.delete(namespace, name);
      exchange.respond(200, 'application/json', '{"kind":"Status"}');
    } else if (prefix === 'api') {
      this.#stream(exchange);
    } else {
      exchange.respond(200, 'text/plain', `${exchange.method} ${exchange.path}`);
    }
  }

  #stream(exchange: Exchange): void {
    const stream = this.server.stream(exchange.path, {
      onHead: (status) => exchange.open(status, 'application/json'),
      onData: (bytes, start, end) => exchange.write(bytes, start, end),
      onEnd: (error) => (error === null ? exchange.end() : exchange.reset()),
    });
    exchange.onClose = () => stream.cancel();
  }
}

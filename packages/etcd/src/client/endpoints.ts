// shell: connections to the members of an etcd cluster
/**
 * One connection at a time, to one of several endpoints. A connection that cannot be made, breaks
 * or is given up moves on to the next endpoint; once all were tried, the next round waits, longer
 * each time. Requests that were certainly not worked on are given again there.
 */
import { afterMs } from '@megaplane/base/deferred';
import { connect, type ConnectTls } from '@megaplane/wire/connect';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';

/** A member that has not answered the greeting by then is left for the next one. */
const CONNECT_MS_MAX = 3000;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 1000;

/** `http://127.0.0.1:2379`, taken apart. */
export interface Endpoint {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

export interface EndpointsOptions {
  readonly endpoints: readonly Endpoint[];
  /** Asked before each connection, so that renewed files count; null without TLS. */
  readonly tls: () => ConnectTls | null;
  readonly log: (message: string) => void;
  /** Default CONNECT_MS_MAX. */
  readonly connectMsMax?: number;
}

/** Reads a list of URLs by commas. Throws with the flag's name where one is none. */
export function parseEndpoints(flag: string, text: string): Endpoint[] {
  const found: Endpoint[] = [];
  for (const part of text.split(/[,;]/)) {
    const trimmed = part.trim();
    if (trimmed === '') continue;
    const url = URL.parse(trimmed.includes('://') ? trimmed : `http://${trimmed}`);
    const isHttp = url !== null && ['http:', 'https:'].includes(url.protocol);
    if (!isHttp || url.hostname === '' || url.pathname !== '/') {
      throw new Error(`${flag}: ${trimmed} is no URL such as https://10.0.0.1:2379`);
    }
    found.push({
      url: url.origin,
      host: url.hostname.replaceAll(/[[\]]/g, ''),
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
      isTls: url.protocol === 'https:',
    });
  }
  if (found.length === 0) throw new Error(`${flag}: no server is named`);
  return found;
}

export class Endpoints {
  readonly #options: EndpointsOptions;
  #at = 0;
  #client: GrpcClient | null = null;
  #isOpen = false;
  #failures = 0;
  #timer: NodeJS.Timeout | null = null;
  #waiting: ((client: GrpcClient | null) => void)[] = [];
  #isClosed = false;
  /** When the last connection was lost. */
  #downMs: number = performance.now();
  /** Why the last connection is no more; '' while there is one. */
  fault = 'no connection was made yet';

  constructor(options: EndpointsOptions) {
    this.#options = options;
  }

  /** The endpoint in use or tried next. */
  get url(): string {
    return this.#endpoint.url;
  }

  get #endpoint(): Endpoint {
    const { endpoints } = this.#options;
    const found = endpoints[this.#at % endpoints.length];
    if (found === undefined) throw new Error('there is no endpoint');
    return found;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** For how long there has been no connection; 0 while there is one. */
  get downForMs(): number {
    return this.#isOpen ? 0 : performance.now() - this.#downMs;
  }

  /** The open connection, as soon as there is one; null once closed. */
  open(): Promise<GrpcClient | null> {
    if (this.#isClosed) return Promise.resolve(null);
    if (this.#client !== null && this.#isOpen) return Promise.resolve(this.#client);
    const { promise, resolve } = Promise.withResolvers<GrpcClient | null>();
    this.#waiting.push(resolve);
    if (this.#client === null && this.#timer === null) this.#connect();
    return promise;
  }

  #connect(): void {
    this.#timer = null;
    const endpoint = this.#endpoint;
    const tls = this.#tlsOf(endpoint);
    if (tls === undefined) return;
    const connection = connect({
      host: endpoint.host,
      port: endpoint.port,
      ...(tls === null ? {} : { tls }),
    });
    const client = grpcClient(connection);
    this.#client = client;
    const waitMs = this.#options.connectMsMax ?? CONNECT_MS_MAX;
    const slow = afterMs(waitMs, () => connection.destroy());
    slow.unref();
    connection.onOpen = () => {
      clearTimeout(slow);
      this.#isOpen = true;
      this.#failures = 0;
      this.fault = '';
      this.#release(client);
    };
    connection.onDraining = () => {
      if (this.#client === client) this.#lose('the server drains');
    };
    connection.onClosed = (reason) => {
      clearTimeout(slow);
      if (this.#client === client) this.#lose(reason);
    };
  }

  /** Undefined where the files cannot be read: tried again later. */
  #tlsOf(endpoint: Endpoint): ConnectTls | null | undefined {
    if (!endpoint.isTls) return null;
    try {
      return this.#options.tls() ?? {};
    } catch (error) {
      this.#lose(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  #lose(reason: string): void {
    const { endpoints, log } = this.#options;
    const text = reason === '' ? 'the connection was closed' : reason;
    if (this.#isClosed) return;
    this.fault = `${this.#endpoint.url}: ${text}`;
    if (this.#isOpen || this.#failures < endpoints.length) log(`etcd: ${this.fault}`);
    if (this.#isOpen) this.#downMs = performance.now();
    this.#client = null;
    this.#isOpen = false;
    this.#at = (this.#at + 1) % endpoints.length;
    this.#failures++;
    const round = Math.floor(this.#failures / endpoints.length);
    const waitMs = round === 0 ? 0 : Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** (round - 1));
    this.#timer = afterMs(waitMs, () => this.#connect());
    this.#timer.unref();
  }

  /** The member behind `client` does not answer: go on with the next one. */
  leave(client: GrpcClient, why: string): void {
    if (this.#client === client) this.#lose(why);
    client.connection.destroy();
  }

  #release(client: GrpcClient | null): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve(client);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#client?.connection.destroy();
    this.#client = null;
    this.#release(null);
  }
}

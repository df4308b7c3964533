/** Watches that come and go, a quarter of which are never read. */
import { request, Agent, type RequestOptions } from 'node:https';
import type { KubeClient } from '@megaplane/client/kube-client';

const PATHS: readonly string[] = [
  '/api/v1/pods',
  '/api/v1/configmaps',
  '/api/v1/events',
  '/api/v1/namespaces',
  '/apis/apps/v1/deployments',
  '/apis/batch/v1/jobs',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
];
/** One of so many reads nothing of what it is sent. */
const DEAF_EVERY = 4;

export class Watchers {
  readonly #client: KubeClient;
  /** The oldest first: what ends each of them. */
  readonly #open: (() => void)[] = [];
  #opened = 0;
  read = 0;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** Opens some, and closes the oldest beyond `keep`. */
  turnOver(count: number, keep: number): void {
    for (let left = count; left > 0; left--) {
      const number = this.#opened++;
      const path = `${PATHS[number % PATHS.length]}?watch=1&allowWatchBookmarks=true`;
      const isDeaf = number % DEAF_EVERY === DEAF_EVERY - 1;
      this.#open.push(isDeaf ? this.#deaf(path) : this.#reading(path));
    }
    this.close(keep);
  }

  close(keep = 0): void {
    while (this.#open.length > keep) this.#open.shift()?.();
  }

  #reading(path: string): () => void {
    const handle = this.#client.stream(path, {
      onHead: () => undefined,
      onData: (_bytes, start, end) => void (this.read += end - start),
      onEnd: () => undefined,
    });
    return () => handle.cancel();
  }

  /** A connection of its own, HTTP/1.1, of which nothing is read but the head. */
  #deaf(path: string): () => void {
    const { address, tls } = this.#client.endpoint;
    if (address.kind !== 'tcp' || tls === null) throw new Error('a server over TLS is needed');
    const { ca, cert, key } = tls;
    const agent = new Agent({ keepAlive: false });
    const options: RequestOptions = { agent, path, host: address.host, port: address.port };
    const sent = request({ ...options, ca, cert, key }, (answer) => void answer.pause());
    sent.on('error', () => undefined);
    sent.end();
    return () => sent.destroy();
  }
}

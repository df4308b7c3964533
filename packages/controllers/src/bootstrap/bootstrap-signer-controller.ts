/**
 * Signs the kubeconfig in `kube-public/cluster-info` with every bootstrap token that is for
 * signing, so that who holds a token can trust what anybody may read. A detached JWS (RFC 7515,
 * appendix F) under `jws-kubeconfig-<token id>`.
 */
import { createHmac } from 'node:crypto';
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ControllerContext } from '../framework/controller-context.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { expiryMs, isToken } from './token-cleaner-controller.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 1;
const MAP = 'kube-public/cluster-info';
const PATH = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const CONTENT = 'kubeconfig';
const PREFIX = 'jws-kubeconfig-';
const NAME = /^bootstrap-token-([a-z0-9]{6})$/;
const TYPE_MARK = Buffer.from('bootstrap.kubernetes.io/token');
const MAP_MARK = Buffer.from('"cluster-info"');

export class BootstrapSignerController {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #tokens: ObjectCache;
  readonly #maps: ObjectCache;

  constructor({ client, informers, onError }: ControllerContext) {
    this.#client = client;
    const queue = informers.queues.queue('bootstrap_signer_queue');
    this.#workers = new Workers(client.timers, WORKERS, () => this.#work(), onError, queue);
    this.#tokens = new ObjectCache(
      informers,
      '/api/v1/secrets',
      () => this.#workers.add(MAP),
      () => {},
      (object) => object.includes(TYPE_MARK),
    );
    this.#maps = new ObjectCache(
      informers,
      '/api/v1/configmaps',
      (key) => {
        if (key === MAP) this.#workers.add(MAP);
      },
      () => {},
      (object) => object.includes(MAP_MARK),
    );
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(): Promise<WorkResult> {
    const map = this.#maps.get(MAP);
    const data = objectAt(map, 'data') ?? {};
    const content = data[CONTENT];
    if (map === undefined || typeof content !== 'string') return 'done';
    const kept = Object.entries(data).filter(([key]) => !key.startsWith(PREFIX));
    const wanted: JsonObject = Object.fromEntries(kept);
    for (const key of this.#tokens.keys()) {
      const [id, secret] = this.#signingToken(this.#tokens.get(key) ?? {});
      if (id !== '') wanted[PREFIX + id] = detachedSignature(content, id, secret);
    }
    if (equals(data, wanted)) return 'done';
    const body = { ...map, data: wanted };
    const answer = await this.#client.request({ method: 'PUT', path: PATH, body });
    // What was changed meanwhile comes by the watch.
    return answer.ok || answer.code === 404 || answer.code === 409 ? 'done' : 'retry';
  }

  /** Id and secret of a token that may sign now; two empty texts for others. */
  #signingToken(secret: JsonObject): readonly [id: string, secret: string] {
    const read = (field: string): string =>
      Buffer.from(stringAt(secret, 'data', field), 'base64').toString();
    const id = NAME.exec(stringAt(secret, 'metadata', 'name'))?.[1];
    const isFor = read('usage-bootstrap-signing') === 'true' && read('token-id') === id;
    const isOver = expiryMs(secret) <= this.#client.timers.wallMs();
    const text = read('token-secret');
    return id === undefined || !isToken(secret) || !isFor || isOver || text === ''
      ? ['', '']
      : [id, text];
  }
}

function detachedSignature(content: string, id: string, secret: string): string {
  const encode = (text: string): string => Buffer.from(text).toString('base64url');
  const header = encode(JSON.stringify({ alg: 'HS256', kid: id }));
  const hash = createHmac('sha256', secret).update(`${header}.${encode(content)}`);
  return `${header}..${hash.digest('base64url')}`;
}

/** Deletes bootstrap tokens whose time is over, at the second. */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import type { ControllerContext } from '../framework/controller-context.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 1;
const NAMESPACE = 'kube-system';
const TYPE = 'bootstrap.kubernetes.io/token';
const MARK = Buffer.from(TYPE);

export class TokenCleanerController {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #tokens: ObjectCache;

  constructor({ client, informers, onError }: ControllerContext) {
    this.#client = client;
    this.#workers = new Workers(
      client.timers,
      WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('token_cleaner'),
    );
    this.#tokens = new ObjectCache(
      informers,
      '/api/v1/secrets',
      (key, after) => {
        if (after !== undefined && isToken(after)) this.#workers.add(key);
      },
      () => {},
      (object) => object.includes(MARK),
    );
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const secret = this.#tokens.get(key);
    const endMs = secret === undefined ? Infinity : expiryMs(secret);
    if (secret === undefined || endMs === Infinity) return 'done';
    const waitMs = endMs - this.#client.timers.wallMs();
    if (waitMs > 0) return { againMs: waitMs };
    const path = `/api/v1/namespaces/${NAMESPACE}/secrets/${stringAt(secret, 'metadata', 'name')}`;
    const body = { preconditions: { uid: stringAt(secret, 'metadata', 'uid') } };
    const answer = await this.#client.request({ method: 'DELETE', path, body });
    return answer.ok || answer.code === 404 || answer.code === 409 ? 'done' : 'retry';
  }
}

/** A bootstrap token of the cluster. */
export function isToken(secret: JsonObject): boolean {
  return (
    stringAt(secret, 'type') === TYPE && stringAt(secret, 'metadata', 'namespace') === NAMESPACE
  );
}

/** When a token ends; Infinity for never. One whose time cannot be read has ended, as upstream. */
export function expiryMs(secret: JsonObject): number {
  const text = Buffer.from(stringAt(secret, 'data', 'expiration'), 'base64').toString();
  if (text === '' || !isToken(secret)) return Infinity;
  const time = parseTime(text);
  return time === undefined ? 0 : time.seconds * 1000;
}

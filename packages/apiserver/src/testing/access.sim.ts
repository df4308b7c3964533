/** A server, users with tokens, and a webhook that a test answers for. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from '../webhook/webhook-call.ts';
import { stringAt } from '@megaplane/machinery/json';
import { createApiServer, type ServerOptions } from '../server/assembly.ts';
import { ConnectionModel, ExchangeModel, type Headers } from './exchange-model.sim.ts';
import { bootstrapPolicy } from '../controlplane/bootstrap-policy.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

/** One call of a webhook that waits for its answer. */
export interface WaitingCall {
  readonly target: WebhookTarget;
  readonly body: JsonObject;
  readonly timeoutMs: number;
  answer(response: WebhookResponse): void;
}

/** Calls are collected until the test answers them. */
export class WebhookModel implements WebhookCaller {
  readonly calls: WaitingCall[] = [];

  call(
    target: WebhookTarget,
    body: Buffer,
    timeoutMs: number,
    then: (response: WebhookResponse) => void,
  ): void {
    const value = JSON.parse(body.toString('utf8')) as JsonObject;
    this.calls.push({ target, body: value, timeoutMs, answer: then });
  }

  /** Answers the oldest call, or all of them, with an object. */
  answer(value: JsonObject, status = 200): JsonObject {
    const call = this.calls.shift();
    if (call === undefined) throw new Error('nobody asked the webhook');
    call.answer({
      ok: true,
      status,
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(value)),
    });
    return call.body;
  }

  fail(why: string): void {
    this.calls.shift()?.answer({ ok: false, why });
  }
}

const STANDARD = ['system:discovery', 'system:basic-user', 'system:public-info-viewer'];

/** A server without sockets, and a way to ask it. */
export class AccessModel {
  nowMs = 1_700_000_000_000;
  readonly #api: ReturnType<typeof createApiServer>;
  readonly #later: (() => void)[] = [];

  constructor(options: Partial<ServerOptions>) {
    const edge = {
      nowMs: () => this.nowMs,
      below: () => 0,
      uuid: () => '00000000-0000-4000-8000-000000000001',
      defer: (work: () => void) => void this.#later.push(work),
      deferPiece: (work: () => void) => void this.#later.push(work),
    };
    this.#api = createApiServer({ storage: new StorageModel(), edge, address: '', ...options });
    this.#makeStandardRoles();
  }

  /** What every user may do rests on objects, as it does in a server that was started. */
  #makeStandardRoles(): void {
    for (const object of bootstrapPolicy()) {
      const name = stringAt(object, 'metadata', 'name');
      if (!STANDARD.includes(name)) continue;
      const plural = object['kind'] === 'ClusterRole' ? 'clusterroles' : 'clusterrolebindings';
      this.ask('POST', `/apis/rbac.authorization.k8s.io/v1/${plural}`, object);
    }
  }

  /** Asks with a bearer token; without one as an administrator. */
  ask(
    method: string,
    path: string,
    body?: unknown,
    token = '',
    headers: Headers = {},
  ): ExchangeModel {
    const own = token === '' ? {} : { authorization: `Bearer ${token}` };
    const connection = new ConnectionModel(token === '');
    const exchange = new ExchangeModel(method, path, body, { ...own, ...headers }, connection);
    this.#api.handle(exchange);
    exchange.endTurn();
    this.settle();
    return exchange;
  }

  /** Networks of Services' addresses. */
  set serviceRanges(ranges: readonly string[]) {
    this.#api.parts.services.serviceRanges = ranges;
  }

  settle(): void {
    while (this.#later.length > 0) this.#later.shift()?.();
  }
}

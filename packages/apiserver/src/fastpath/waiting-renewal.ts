/** A renewal of a lease that waits for its turn: no call is made of it unless somebody asks. */
import type { Exchange } from '@megaplane/wire/exchange';
import type { Call } from '../request/call.ts';
import type { Waiter } from '../flowcontrol/held-request.ts';
import type { Identity } from '../request/identity.ts';
import { durationMs, Query } from '../request/query.ts';
import { parseRequest, queryStart, type RequestInfo } from '../request/request-info.ts';

export class WaitingRenewal implements Waiter {
  readonly exchange: Exchange;
  readonly identity: Identity;
  readonly nowMs: number;
  readonly #callOf: () => Call;
  onDone: (() => void) | null = null;
  #code = 0;

  /** `callOf` makes a call of it, once, to refuse it. */
  constructor(exchange: Exchange, identity: Identity, nowMs: number, callOf: () => Call) {
    this.exchange = exchange;
    this.identity = identity;
    this.nowMs = nowMs;
    this.#callOf = callOf;
  }

  get info(): RequestInfo {
    const { method, path } = this.exchange;
    const info = parseRequest(method, path);
    if (info === null) throw new Error(`the path of a renewal is plain: ${path}`);
    return info;
  }

  get timeoutMs(): number {
    const { path } = this.exchange;
    const query = path.slice(queryStart(path));
    return query === '' ? 0 : (durationMs(new Query(query).text('timeout')) ?? 0);
  }

  get code(): number {
    return this.#code;
  }

  answered(code: number): void {
    this.#code = code;
    this.done();
  }

  done(): void {
    const { onDone } = this;
    this.onDone = null;
    onDone?.();
  }

  keepBody(): void {
    this.exchange.keepBody();
  }

  broke(): void {
    const call = this.#callOf();
    call.broke();
    this.answered(call.code);
  }

  sendText(code: number, text: string, fields: readonly string[] = []): void {
    this.#callOf().sendText(code, text, fields);
    this.answered(code);
  }
}

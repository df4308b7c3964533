import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt, stringAt } from '@megaplane/machinery/json';
import { conflict, notFound } from '@megaplane/machinery/status';
import type { Client, ClientRequest, ClientResponse } from '../src/rest/client.ts';
import { noAnswer } from '../src/rest/answer.ts';
import type { FakeTimers } from './fake-timers.ts';

const LEASES = { group: 'coordination.k8s.io', name: 'leases' };

/** One Lease on a server that several candidates share; the test cuts candidates off. */
export class FakeLeases {
  lease: JsonObject | null = null;
  version = 10;
  writes = 0;
  readonly #timers: FakeTimers;
  #seed = 7;

  constructor(timers: FakeTimers) {
    this.#timers = timers;
  }

  /** A client whose requests fail while `isCut()`. */
  client(isCut: () => boolean): Client {
    const request = (asked: ClientRequest): Promise<ClientResponse> =>
      Promise.resolve(isCut() ? noAnswer(asked, 'cut off') : this.#answer(asked));
    const random = (): number => {
      this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) & 0x7fffffff;
      return this.#seed / 0x80000000;
    };
    return { request, timers: this.#timers, random } as unknown as Client;
  }

  get holder(): string {
    return stringAt(this.lease ?? undefined, 'spec', 'holderIdentity');
  }

  get transitions(): number {
    return numberAt(this.lease ?? undefined, 'spec', 'leaseTransitions');
  }

  #answer({ method, body }: ClientRequest): ClientResponse {
    if (method === 'GET') {
      if (this.lease === null) return { ok: false, code: 404, status: notFound(LEASES, 'lock') };
      return this.#ok(200, this.lease);
    }
    const object = body as JsonObject;
    const isCurrent =
      method === 'POST'
        ? this.lease === null
        : stringAt(object, 'metadata', 'resourceVersion') === `${this.version}`;
    if (!isCurrent) return { ok: false, code: 409, status: conflict(LEASES, 'lock') };
    this.version++;
    this.writes++;
    const metadata = { ...(object['metadata'] as JsonObject), resourceVersion: `${this.version}` };
    this.lease = { ...object, metadata };
    return this.#ok(method === 'POST' ? 201 : 200, this.lease);
  }

  #ok(code: number, object: JsonObject): ClientResponse {
    return { ok: true, code, object: structuredClone(object), bytes: Buffer.alloc(0) };
  }
}

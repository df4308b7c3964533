/**
 * The API server in memory with what workloads need beyond it: names from generateName,
 * generations, updates with their precondition; and a kubelet that brings pods up and ends them.
 * Faults come when they are asked for: refusals, answers that are lost.
 */
import type {
  ClientRequest,
  ClientResponse,
  StreamHandle,
  StreamSink,
} from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { equals, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import * as status from '@megaplane/machinery/status';
import { FakeApi } from './fake-api.ts';

export type Fault = 'conflict' | 'refused' | 'forbidden' | 'throttled' | 'lost' | 'none';

export class WorkloadApi extends FakeApi {
  /** Asked before each change that a controller makes. */
  faultOf: (request: ClientRequest) => Fault = () => 'none';
  #names = 0;
  #held: (() => void)[] | undefined;

  #isHeld: (path: string) => boolean = () => false;

  /** Watches of a collection, or all, say nothing until `releaseWatches`. */
  holdWatches(collection = ''): void {
    this.#held ??= [];
    this.#isHeld = (path) => path.startsWith(collection);
  }

  releaseWatches(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const deliver of held) deliver();
  }

  override stream(path: string, sink: StreamSink): StreamHandle {
    return super.stream(path, {
      onHead: (code, retryAfterSeconds) => sink.onHead(code, retryAfterSeconds),
      onEnd: (error) => sink.onEnd(error),
      onData: (bytes, start, end) => {
        const copy = bytes.slice(start, end);
        if (this.#held === undefined || !this.#isHeld(path)) sink.onData(copy, 0, copy.length);
        else this.#held.push(() => sink.onData(copy, 0, copy.length));
      },
    });
  }

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const fault = request.method === 'GET' ? 'none' : this.faultOf(request);
    if (fault === 'refused') {
      return { ok: false, code: 500, status: status.internalError('no') };
    }
    if (fault === 'forbidden') {
      const text = 'pods "x" is forbidden: exceeded quota: q';
      return { ok: false, code: 403, status: { ...status.internalError(text), code: 403 } };
    }
    if (fault === 'throttled') {
      return { ok: false, code: 429, status: { ...status.internalError('busy'), code: 429 } };
    }
    if (fault === 'conflict') {
      return { ok: false, code: 409, status: status.conflict({ group: '', name: 'x' }, 'x') };
    }
    const answer = await this.#carryOut(request);
    if (fault === 'lost') return { ok: false, code: 0, status: status.timeout() };
    return answer;
  }

  async #carryOut(request: ClientRequest): Promise<ClientResponse> {
    const { method } = request;
    const given = request.body;
    const body =
      typeof given === 'string'
        ? (JSON.parse(given) as JsonObject)
        : isObject(given as JsonObject)
          ? (given as JsonObject)
          : {};
    if (method === 'POST') return super.request({ ...request, body: this.#named(body) });
    if (method === 'DELETE') return super.request({ ...request, body });
    if (method === 'PATCH' || method === 'PUT') return this.#change({ ...request, body });
    return super.request(request);
  }

  #named(body: JsonObject): JsonObject {
    const metadata = objectAt(body, 'metadata') ?? {};
    const prefix = stringAt(metadata, 'generateName');
    const name = stringAt(metadata, 'name') || `${prefix}${++this.#names}`;
    return { ...body, metadata: { ...metadata, name, generation: 1 } };
  }

  /** A change of the spec counts; a precondition is held for updates as well as for patches. */
  async #change(request: ClientRequest): Promise<ClientResponse> {
    const path = request.path.replace(/\/status$/, '');
    const before = await super.request({ method: 'GET', path });
    if (!before.ok) return before;
    const body = request.body as JsonObject;
    const wanted = stringAt(body, 'metadata', 'resourceVersion');
    if (wanted !== '' && wanted !== stringAt(before.object, 'metadata', 'resourceVersion')) {
      return { ok: false, code: 409, status: status.conflict({ group: '', name: 'x' }, 'x') };
    }
    const isSpec = body['spec'] !== undefined && !request.path.endsWith('/status');
    if (request.method !== 'PATCH' || !isSpec) return super.request(request);
    const spec = { ...objectAt(before.object, 'spec'), ...objectAt(body, 'spec') };
    if (equals(spec, before.object['spec'])) return super.request(request);
    const generation = numberAt(before.object, 'metadata', 'generation') + 1;
    const metadata = { ...objectAt(body, 'metadata'), generation };
    return super.request({ ...request, body: { ...body, metadata } });
  }

  /** What a kubelet would do now: every pod that is not ready becomes so. */
  async bringUp(limit: number = Infinity): Promise<void> {
    let count = 0;
    for (const [key, pod] of this.objects) {
      if (!key.startsWith('/api/v1/pods ') || objectAt(pod, 'status') !== undefined) continue;
      if (++count > limit) return;
      const [namespace = '', name = ''] = key.slice('/api/v1/pods '.length).split('/');
      const now = new Date(this.timers.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z');
      const ready = { type: 'Ready', status: 'True', lastTransitionTime: now };
      await super.request({
        method: 'PATCH',
        path: `/api/v1/namespaces/${namespace}/pods/${name}`,
        contentType: 'application/merge-patch+json',
        body: {
          spec: { nodeName: 'n1' },
          status: { phase: 'Running', podIP: '10.0.0.1', conditions: [ready] },
        },
      });
    }
  }

  /** Objects of a collection in the namespace `default`. */
  all(collection: string): JsonObject[] {
    return [...this.objects]
      .filter(([key]) => key.startsWith(`${collection} default/`))
      .map(([, object]) => object);
  }
}

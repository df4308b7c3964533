/** A cluster for tests: it answers requests from a script and writes a transcript. */
import type { ClientResponse, Method } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import type { Status } from '@megaplane/machinery/status';
import type { ClusterApi } from './cluster-api.ts';

export class FakeCluster implements ClusterApi {
  readonly objects: Map<string, JsonObject> = new Map();
  readonly transcript: string[] = [];
  /** Codes to answer with instead, in order, by `METHOD path`. */
  readonly refusals: Map<string, number[]> = new Map();

  request(method: Method, path: string, body?: JsonValue): Promise<ClientResponse> {
    const shown = body === undefined ? '' : ` ${JSON.stringify(body)}`;
    this.transcript.push(`${method} ${decodeURIComponent(path)}${shown}`);
    const code = this.refusals.get(`${method} ${path}`)?.shift();
    return Promise.resolve(code === undefined ? this.#answer(method, path, body) : refused(code));
  }

  #answer(method: Method, path: string, body: JsonValue | undefined): ClientResponse {
    const key = path.replace(/\/status$/, '');
    const found = this.objects.get(key);
    if (method === 'POST') {
      const metadata = ((body ?? {}) as JsonObject)['metadata'] as JsonObject | undefined;
      if (!path.endsWith('/eviction')) {
        this.objects.set(`${path}/${stringAt(metadata, 'name')}`, body as JsonObject);
      }
      return ok(body as JsonObject);
    }
    if (found === undefined) return refused(404);
    if (method === 'DELETE') this.objects.delete(key);
    return ok(found);
  }
}

function ok(object: JsonObject): ClientResponse {
  return { ok: true, code: 200, object, bytes: Buffer.alloc(0) };
}

function refused(code: number): ClientResponse {
  const status = { kind: 'Status', code, message: `refused with ${code}` } as unknown as Status;
  return { ok: false, code, status };
}

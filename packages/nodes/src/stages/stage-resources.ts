/** Where the kinds that stages name live on a server, by its discovery. */
import type { Client } from '@megaplane/client/client';
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { StageResource } from './stage-requests.ts';

/** Resources found so far, by `apiVersion kind`. */
export class StageResources {
  readonly #client: Client;
  readonly #found: Map<string, StageResource> = new Map();
  readonly #asked: Set<string> = new Set();

  constructor(client: Client) {
    this.#client = client;
  }

  /** The resource of a kind; undefined where the server has none, or was not asked yet. */
  readonly of = (apiVersion: string, kind: string): StageResource | undefined => {
    const found = this.#found.get(`${apiVersion} ${kind}`);
    if (found === undefined && !this.#asked.has(apiVersion)) {
      this.#asked.add(apiVersion);
      // The step that needs it is tried again with its object's next change.
      void this.load(apiVersion).catch(() => this.#asked.delete(apiVersion));
    }
    return found;
  };

  /** Asks the server for the resources of a group and version; rejects when it cannot tell. */
  async load(apiVersion: string): Promise<void> {
    const root = apiVersion.includes('/') ? '/apis/' : '/api/';
    const answer = await this.#client.request({ method: 'GET', path: `${root}${apiVersion}` });
    if (!answer.ok) throw new Error(answer.status.message ?? `no ${apiVersion}`);
    this.#asked.add(apiVersion);
    for (const item of listAt(answer.object, 'resources')) {
      const resource = stringAt(item, 'name');
      if (resource.includes('/')) continue;
      const kind = stringAt(item, 'kind');
      const namespaced = valueAt(item, 'namespaced') === true;
      this.#found.set(`${apiVersion} ${kind}`, { apiVersion, kind, resource, namespaced });
    }
  }
}

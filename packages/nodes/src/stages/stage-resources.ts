/** Where the kinds that stages name live on a server, by its discovery. */
import type { Client } from '@megaplane/client/client';
import { Discovery } from '@megaplane/client/discovery';
import type { StageResource } from './stage-requests.ts';

/** Resources found so far, by `apiVersion kind`. */
export class StageResources {
  readonly #discovery: Discovery;
  readonly #found: Map<string, StageResource> = new Map();
  readonly #asked: Set<string> = new Set();

  constructor(client: Client) {
    this.#discovery = new Discovery(client);
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
    const kinds = await this.#discovery.kindsOf(apiVersion);
    this.#asked.add(apiVersion);
    for (const one of kinds) this.#found.set(`${apiVersion} ${one.kind}`, one);
  }
}

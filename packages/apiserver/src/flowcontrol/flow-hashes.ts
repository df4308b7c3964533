/** Hashes of flows, remembered: a digest takes longer than many a request. */
import { hashFlow } from './shuffle-shard.ts';

const FLOWS_MAX = 8192;

export class FlowHashes {
  readonly #known = new Map<string, bigint>();

  of(schema: string, distinguisher: string): bigint {
    const flow = `${schema}\0${distinguisher}`;
    let hash = this.#known.get(flow);
    if (hash === undefined) {
      if (this.#known.size >= FLOWS_MAX) this.#known.clear();
      this.#known.set(flow, (hash = hashFlow(schema, distinguisher)));
    }
    return hash;
  }
}

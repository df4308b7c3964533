/** Admission: plugins that look at a write after it was decoded and before it is checked. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import type { RuleContext } from './behaviour.ts';

/** One write. `object` is null for deletions, `previous` for creations. */
export interface Admitted extends RuleContext {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly subresource: string;
  readonly object: JsonObject | null;
  readonly previous: JsonObject | null;
}

/** A plugin may change `object` in place, and refuses by returning a Status. */
export interface AdmissionPlugin {
  readonly name: string;
  readonly mutate?: (write: Admitted) => Status | null;
  readonly validate?: (write: Admitted) => Status | null;
}

export class Admission {
  readonly #plugins: readonly AdmissionPlugin[];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = plugins;
  }

  /** All mutating plugins in order, until one refuses. */
  mutate(write: Admitted): Status | null {
    for (const plugin of this.#plugins) {
      const refusal = plugin.mutate?.(write) ?? null;
      if (refusal !== null) return refusal;
    }
    return null;
  }

  /** All validating plugins in order, until one refuses. */
  validate(write: Admitted): Status | null {
    for (const plugin of this.#plugins) {
      const refusal = plugin.validate?.(write) ?? null;
      if (refusal !== null) return refusal;
    }
    return null;
  }
}

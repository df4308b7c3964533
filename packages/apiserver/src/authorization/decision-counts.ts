/** Which authorizer decided how often, under upstream's name (pkg/authorization/metrics). */
import type { Authorizer } from './authorization.ts';
import { LabelledCounter, labelsText } from '../metrics/labelled-metrics.ts';

export class DecisionCounts {
  readonly #counts = new LabelledCounter('apiserver_authorization_decisions_total');

  /** The same authorizer, counted where its word is the last one. */
  of(type: string, name: string, authorize: Authorizer): Authorizer {
    const allowed = labelsText({ decision: 'allowed', name, type });
    const denied = labelsText({ decision: 'denied', name, type });
    return (identity, attributes) => {
      const decision = authorize(identity, attributes);
      if (decision.pending !== undefined) return decision;
      if (decision.allowed) this.#counts.add(allowed);
      else if (decision.isFinal === true) this.#counts.add(denied);
      return decision;
    };
  }

  print(lines: string[]): void {
    this.#counts.print(lines);
  }
}

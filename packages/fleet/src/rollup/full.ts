/**
 * The roll-up as a function of all requests: the rule in its plainest form. The operator keeps the
 * same rows from watch events (`rolling.ts`); the two are compared in its test.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt, valueAt } from '@megaplane/machinery/json';
import type { Quantity } from '@megaplane/machinery/quantity';
import { rowKey } from './cell.ts';
import type { Row } from './cell.ts';
import { isRefusal, readShape } from './request.ts';
import type { Refusal, Shape } from './request.ts';

export interface RollUp {
  /** In the order in which their requests are first met. */
  readonly rows: readonly Row[];
  /** `namespace/name` of requests that were not acknowledged yet and are part of it. */
  readonly pending: readonly string[];
  /** `namespace/name` of requests that cannot be part of any, and why. */
  readonly skipped: ReadonlyMap<string, Refusal>;
}

export interface RollUpOptions {
  /** Gangs of two namespaces are two, whatever their selectors; the reference makes them one. */
  readonly groupsByNamespace: boolean;
}

/** Phases of a request that nobody has acknowledged. */
export function isPendingPhase(phase: string): boolean {
  return phase === '' || phase === 'Pending';
}

/** Adds up `requests`, CapacityRequests as JSON, in their order. */
export function rollUp(requests: readonly JsonObject[], options: RollUpOptions): RollUp {
  const cells = new Map<string, Cell>();
  const pending: string[] = [];
  const skipped = new Map<string, Refusal>();
  for (const request of requests) {
    const namespace = stringAt(request, 'metadata', 'namespace');
    const name = `${namespace}/${stringAt(request, 'metadata', 'name')}`;
    const groupNamespace = options.groupsByNamespace ? namespace : '';
    const shape = readShape(valueAt(request, 'spec'), { groupNamespace });
    if (isRefusal(shape)) {
      skipped.set(name, shape);
      continue;
    }
    const key = rowKey(shape);
    const cell = cells.get(key) ?? new Cell(shape);
    cells.set(key, cell);
    cell.add(shape);
    if (isPendingPhase(stringAt(request, 'status', 'phase'))) pending.push(name);
  }
  return { rows: [...cells.values()], pending, skipped };
}

class Cell implements Row {
  readonly profile;
  readonly fingerprint;
  readonly group;
  readonly aggregate = new Map<string, Quantity>();
  readonly minUnit = new Map<string, Quantity>();

  constructor({ profile, fingerprint, group }: Shape) {
    this.profile = profile;
    this.fingerprint = fingerprint;
    this.group = group;
  }

  add({ resources }: Shape): void {
    for (const [name, quantity] of resources) {
      const sum = this.aggregate.get(name);
      this.aggregate.set(name, sum === undefined ? quantity : sum.add(quantity));
      const largest = this.minUnit.get(name);
      if (largest === undefined || quantity.compare(largest) > 0) this.minUnit.set(name, quantity);
    }
  }
}

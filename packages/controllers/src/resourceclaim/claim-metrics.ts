/** How many claims of devices there are, and were asked for, under upstream's names. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { Counter, MetricsRegistry } from '../framework/metrics-registry.ts';

const SUBSYSTEM = 'resourceclaim_controller';

export class ClaimMetrics {
  readonly #creations: Counter;
  readonly #claims: Counter;

  constructor(board: MetricsRegistry) {
    const asked = 'Number of ResourceClaims creation requests, by outcome and admin access';
    const labels = ['status', 'admin_access'];
    this.#creations = board.counter(`${SUBSYSTEM}_creates_total`, asked, labels);
    const there = 'Number of ResourceClaims, by allocation status, admin access, and source.';
    const by = ['allocated', 'admin_access', 'source'];
    this.#claims = board.gauge(`${SUBSYSTEM}_resource_claims`, there, by);
  }

  created(claim: JsonObject, isWell: boolean): void {
    this.#creations.add([isWell ? 'success' : 'failure', isOfAdmin(claim)]);
  }

  changed(before: JsonObject | undefined, after: JsonObject | undefined): void {
    if (before !== undefined) this.#claims.add(labelsOf(before), -1);
    if (after !== undefined) this.#claims.add(labelsOf(after), 1);
  }
}

function labelsOf(claim: JsonObject): string[] {
  const isAllocated = objectAt(claim, 'status', 'allocation') !== undefined;
  const annotations = objectAt(claim, 'metadata', 'annotations') ?? {};
  const of = (name: string): boolean =>
    stringAt(annotations, `resource.kubernetes.io/${name}`) !== '';
  const source = of('pod-claim-name') ? 'resource_claim_template' : '';
  return [
    String(isAllocated),
    isOfAdmin(claim),
    of('extended-resource-claim') ? 'extended_resource' : source,
  ];
}

function isOfAdmin(claim: JsonObject): string {
  const requests = listAt(claim, 'spec', 'devices', 'requests');
  return String(requests.some((one) => valueAt(one, 'exactly', 'adminAccess') === true));
}

/** Whom the node lifecycle may call silent, and how fast nodes of a zone are emptied. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import type { Audit } from './auditor.ts';
import type { Change, Sight } from './cluster-record.ts';
import { isEvicting } from './past.ts';

/** One node of a zone in so long, as `--node-eviction-rate` has it. */
const EVICTION_MS = 10_000;
/** A renewal may be on its way as the node is judged, and a time has whole seconds. */
const JUDGED_MS = 1_000;
const PARTIAL_SHARE = 0.55;
const FEW = 2;

export class NodeLaws {
  /** When a node of each zone was tainted last. */
  readonly #taintedMs: Map<string, number> = new Map();
  /** Since when each zone has been so disturbed that none of its nodes may be tainted. */
  readonly #disturbedMs: Map<string, number> = new Map();

  forget(): void {
    this.#taintedMs.clear();
  }

  changed(audit: Audit, { sight, before, isGone }: Change): void {
    const zone = sight.label('topology.kubernetes.io/zone');
    this.#count(audit, zone);
    if (isGone || before === undefined) return;
    const wasUnknown = readiness(before) === 'Unknown';
    if (!wasUnknown && readiness(sight.object) === 'Unknown') silenced(audit, sight);
    if (isEvicting(before) || !isEvicting(sight.object)) return;
    audit.check(
      readiness(sight.object) !== 'True',
      () => `${sight.title} is ready and tainted NoExecute`,
    );
    const sinceMs = audit.nowMs - (this.#taintedMs.get(zone) ?? -Infinity);
    audit.check(
      sinceMs >= EVICTION_MS - JUDGED_MS,
      () => `${sight.title} is tainted ${sinceMs} ms after another one of ${zone}`,
    );
    this.#taintedMs.set(zone, audit.nowMs);
    audit.check(
      !((this.#disturbedMs.get(zone) ?? Infinity) < audit.sinceMs),
      () => `${sight.title} is tainted, and most nodes of ${zone} are silent`,
    );
  }

  #count(audit: Audit, zone: string): void {
    let all = 0;
    let silent = 0;
    for (const node of audit.record.ofKind('Node')) {
      if (node.label('topology.kubernetes.io/zone') !== zone) continue;
      all++;
      if (!node.isReady) silent++;
    }
    const isDisturbed = silent > FEW && silent < all && silent / all >= PARTIAL_SHARE;
    if (!isDisturbed) this.#disturbedMs.delete(zone);
    else if (!this.#disturbedMs.has(zone)) this.#disturbedMs.set(zone, audit.nowMs);
  }
}

function readiness(node: JsonObject): string {
  const conditions = (node['status'] as JsonObject | undefined)?.['conditions'];
  const all = Array.isArray(conditions) ? conditions : [];
  return stringAt(
    all.find((one) => stringAt(one, 'type') === 'Ready'),
    'status',
  );
}

/** Who is called silent has been so for the whole grace, by a clock that stood while none ran. */
function silenced(audit: Audit, node: Sight): void {
  const renewedMs = audit.record.renewedMs.get(node.name) ?? -Infinity;
  const silentMs = audit.awakeMs - renewedMs;
  audit.check(
    silentMs >= audit.graceMs - JUDGED_MS,
    () => `${node.title} is called silent after ${silentMs} ms`,
  );
}

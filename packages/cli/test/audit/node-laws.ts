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
  /** When nodes of each zone were tainted of late. */
  readonly #taintedMs: Map<string, readonly number[]> = new Map();
  /** Since when, awake, each zone has been so disturbed that none of its nodes may be tainted. */
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
    this.#paced(audit, sight, zone);
    const knownMs = audit.awakeMs - (audit.nowMs - audit.sinceMs);
    audit.check(
      !((this.#disturbedMs.get(zone) ?? Infinity) < knownMs),
      () => `${sight.title} is tainted, and most nodes of ${zone} are silent`,
    );
  }

  /** Where what was refused is written later, the turns of some nodes come at once. */
  #paced(audit: Audit, { title }: Sight, zone: string): void {
    const sinceMs = audit.nowMs - EVICTION_MS + JUDGED_MS;
    const known = this.#taintedMs.get(zone) ?? [];
    const recent = known.filter((timeMs) => timeMs > sinceMs);
    const lateMs = audit.isQuiet ? 0 : audit.nowMs - audit.sinceMs;
    const most = 1 + Math.floor(lateMs / EVICTION_MS);
    recent.push(audit.nowMs);
    audit.check(
      recent.length <= most,
      () => `${title} is one of ${recent.length} of ${zone} tainted within ${EVICTION_MS} ms`,
    );
    this.#taintedMs.set(zone, recent);
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
    else if (!this.#disturbedMs.has(zone)) this.#disturbedMs.set(zone, audit.awakeMs);
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

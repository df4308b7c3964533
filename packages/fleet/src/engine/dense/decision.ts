/** What the dense phases decided, in the words of the plain ones. */
import { type Amounts, worstPerMille, coversMillis, millisOf } from '../amounts.ts';
import { type Missing, gangKey } from '../carried.ts';
import { RECLAIM_GRACE_SECONDS } from '../cost.ts';
import type { Machine } from '../machine.ts';
import type { Decision } from '../plain/decide.ts';
import { CANDIDATES_MAX } from '../plain/domains.ts';
import { type Holds, isOver } from '../plain/reclaim.ts';
import type { Action, DomainCoverage, Verdict } from '../row.ts';
import { byUtf8 } from '../../contract/text-order.ts';
import type { ClusterDemand } from './clusters.ts';
import { NO_DOMAIN } from './clusters.ts';
import type { Buyer } from './credit.ts';
import type { ReportedDomain } from './domains.ts';
import type { DenseDecision, DenseEngine } from './engine.ts';
import { IDLE } from './machines.ts';

/** Domains of gangs, by cluster and position of the row. */
export type Reports = Map<ClusterDemand, Map<number, readonly ReportedDomain[]>>;

export interface Wanted {
  readonly holds: Holds;
  readonly nowSeconds: number;
  readonly isParked: (demand: ClusterDemand, position: number) => boolean;
  /** Set if all rows are to be told of, not only those that lack something. */
  readonly reports: Reports | undefined;
}

export function decisionOf(engine: DenseEngine, dense: DenseDecision, wanted: Wanted): Decision {
  const { machines, vectors } = engine.tables;
  const preemptions = dense.preempted.map((preempted): Action => {
    const machine = machines.machineAt(preempted.slot);
    const { graceSeconds, preemptorPriority } = preempted;
    const { cluster } = machine;
    return { kind: 'Preempt', machine, cluster, graceSeconds, preemptorPriority };
  });
  const isTold = wanted.reports !== undefined;
  const amounts = (values: Float64Array): Amounts => vectors.amountsAt(values, 0);
  const unresolved = (isTold ? dense.unresolved : []).map(({ buyer, deficit, victims, freed }) => {
    const verdict = shortVerdict(engine, buyer, wanted);
    return { verdict, deficit: amounts(deficit), victims, freed: amounts(freed) };
  });
  return {
    verdicts: isTold ? allOf(engine, dense, wanted) : [],
    unresolved,
    stuck: stuckOf(engine, dense),
    missing: missingOf(engine, dense),
    acquisitions: acquisitionsOf(engine, dense),
    preemptions,
    reclaims: reclaimsOf(engine),
    releases: releasesOf(engine, dense, wanted),
  };
}

function acquisitionsOf(engine: DenseEngine, { buyers }: DenseDecision): Action[] {
  const { machines } = engine.tables;
  return buyers.flatMap(({ demand, position, profileId, held }) => {
    const profile = engine.profileAt(profileId);
    const group = machines.groups.keyOf(demand.normal.group[position] ?? 0);
    const actions = [...held].map((slot): Action => {
      const machine = machines.machineAt(slot);
      const kind = machine.state === 'Idle' ? 'Bootstrap' : 'Provision';
      return { kind, machine, cluster: demand.name, profile, group };
    });
    return actions.toSorted(
      (left, right) => Number(left.kind > right.kind) - Number(left.kind < right.kind),
    );
  });
}

function stuckOf({ tables }: DenseEngine, { unsatisfied }: DenseDecision): string[] {
  const { facts } = tables.profiles;
  return unsatisfied.flatMap(({ demand, position, profileId, held }) => {
    const profile = facts[profileId]?.profile;
    if (facts[profileId]?.sameKey === undefined || profile === undefined) return [];
    if (demand.isSatisfiable[position] === 1 || held.size > 0) return [];
    const group = tables.machines.groups.keyOf(demand.normal.group[position] ?? 0);
    return [gangKey(demand.name, group, profile)];
  });
}

/** Summed by profile. */
function missingOf(engine: DenseEngine, { unresolved }: DenseDecision): Missing[] {
  const sums = new Map<number, Float64Array>();
  for (const { buyer, deficit } of unresolved) {
    const sum = sums.get(buyer.profileId) ?? new Float64Array(deficit.length);
    sums.set(buyer.profileId, sum);
    for (const [at, amount] of deficit.entries()) sum[at] = (sum[at] ?? 0) + amount;
  }
  return [...sums].map(([profileId, sum]) => {
    const deficit = engine.tables.vectors.amountsAt(sum, 0);
    return { profile: engine.profileAt(profileId), deficit };
  });
}

function reclaimsOf(engine: DenseEngine): Action[] {
  const { demands, machines } = engine.tables;
  const reported = demands.filter(({ hasReported, liveCount }) => hasReported && liveCount > 0);
  return reported
    .toSorted((left, right) => byUtf8(left.name, right.name))
    .flatMap((demand) => {
      return [...engine.surplusOf(demand)].map((slot): Action => {
        const machine = machines.machineAt(slot);
        const { name: cluster } = demand;
        return { kind: 'Reclaim', machine, cluster, graceSeconds: RECLAIM_GRACE_SECONDS };
      });
    });
}

function releasesOf(
  { tables: { machines, kinds } }: DenseEngine,
  { isTaken }: DenseDecision,
  { holds, nowSeconds }: Wanted,
): Action[] {
  const over: Machine[] = [];
  for (const list of kinds.lists.keys()) {
    const slots = machines.listOf(IDLE, list);
    const count = slots.refresh();
    for (let at = 0; at < count; at++) {
      const slot = slots.items[at] ?? -1;
      const capacityType = kinds.capacityType[machines.kind[slot] ?? -1] ?? 'Unspecified';
      const idleSince = machines.idleSince[slot] ?? nowSeconds;
      if (!isOver({ capacityType, idleSince }, holds, nowSeconds) || isTaken(slot)) continue;
      over.push(machines.machineAt(slot));
    }
  }
  return over
    .toSorted((left, right) => byUtf8(left.id, right.id))
    .map((machine) => ({ kind: 'Delete', machine, cluster: '' }));
}

function shortVerdict(engine: DenseEngine, buyer: Buyer, wanted: Wanted): Verdict {
  const { demand, position, held, deficit } = buyer;
  const claimed = [...claimsOf(engine, demand, position), ...held];
  const amounts = engine.tables.vectors.amountsAt(deficit, 0);
  return verdictAt(engine, demand, position, { claimed, deficit: amounts, wanted });
}

function claimsOf(engine: DenseEngine, demand: ClusterDemand, position: number): readonly number[] {
  return [...demand.claims.subarray(demand.starts[position], demand.ends[position])];
}

function allOf(engine: DenseEngine, { buyers }: DenseDecision, wanted: Wanted): Verdict[] {
  const { facts } = engine.tables.profiles;
  const byRow = new Map(buyers.map((buyer) => [`${buyer.demand.id}/${buyer.position}`, buyer]));
  const rows = engine.tables.demands.flatMap((demand) => {
    return Array.from({ length: demand.normal.count }, (_, position) => ({ demand, position }));
  });
  const folded = ({ demand, position }: (typeof rows)[number]): number =>
    Number(position >= demand.normal.keptCount);
  const priority = ({ demand, position }: (typeof rows)[number]): number =>
    facts[demand.normal.profile[position] ?? 0]?.profile.priority ?? 0;
  rows.sort((left, right) => {
    const byFold = folded(left) - folded(right);
    const byName = byUtf8(left.demand.name, right.demand.name);
    if (byFold !== 0) return byFold;
    if (folded(left) === 1) return byName || left.position - right.position;
    return (
      priority(right) - priority(left) ||
      left.demand.arrival - right.demand.arrival ||
      byName ||
      left.position - right.position
    );
  });
  return rows.map(({ demand, position }) => {
    const buyer = byRow.get(`${demand.id}/${position}`);
    if (buyer !== undefined) return shortVerdict(engine, buyer, wanted);
    const claimed = claimsOf(engine, demand, position);
    return verdictAt(engine, demand, position, { claimed, deficit: new Map(), wanted });
  });
}

function verdictAt(
  engine: DenseEngine,
  demand: ClusterDemand,
  position: number,
  found: {
    readonly claimed: readonly number[];
    readonly deficit: Amounts;
    readonly wanted: Wanted;
  },
): Verdict {
  const { kinds, machines } = engine.tables;
  const { isParked, reports } = found.wanted;
  const row = engine.rowAt(demand, demand.normal, position);
  const value = demand.domain[position] ?? NO_DOMAIN;
  return {
    row,
    parked: isParked(demand, position),
    claimed: found.claimed.map((slot) => machines.machineAt(slot)),
    deficit: found.deficit,
    domain: value < 0 ? '' : kinds.valueText(value),
    satisfiable: demand.isSatisfiable[position] === 1,
    candidates: candidatesOf(engine, row.aggregate, reports?.get(demand)?.get(position) ?? []),
  };
}

function candidatesOf(
  { tables: { vectors } }: DenseEngine,
  aggregate: Amounts,
  domains: readonly ReportedDomain[],
): readonly DomainCoverage[] {
  const deficit = millisOf(aggregate);
  const candidates = domains.map(({ domain, total }) => {
    const millis = millisOf(vectors.amountsAt(total, 0));
    const coveragePerMille = worstPerMille(millis, deficit);
    return { domain, coveragePerMille, satisfiable: coversMillis(millis, deficit) };
  });
  const ranked = candidates.toSorted((left, right) => {
    return right.coveragePerMille - left.coveragePerMille || byUtf8(left.domain, right.domain);
  });
  return ranked.slice(0, CANDIDATES_MAX);
}

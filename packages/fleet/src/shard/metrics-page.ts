/** The metrics of a shard, by the reference's names. */
import { Exposition } from '@megaplane/client/exposition';
import { bucketOfDollars } from '../contract/penalty.ts';
import { PenaltyBucket } from '../contract/tables/capacity.ts';
import type { LabelledCount } from './counts.ts';
import type { ShardCore } from './core.ts';

const PREFIX = 'bigfleet_shard_';
/** Ages of shortfalls in cycles, by the least. */
const AGES = [
  ['300+', 300],
  ['60-299', 60],
  ['10-59', 10],
  ['1-9', 1],
] as const;

/** All metrics as text; `isPaused` as the shard was told at its start. */
export function metricsPage(core: ShardCore, isPaused: boolean): string {
  const page = new Exposition();
  writeCycles(page, core);
  writeActions(page, core);
  writeSessions(page, core);
  gauge(page, 'actuation_paused', 'Whether nothing is carried out.', isPaused ? 1 : 0);
  return page.toString();
}

function gauge(page: Exposition, name: string, help: string, value: number): void {
  page.family(PREFIX + name, 'gauge', help);
  page.value({}, value);
}

function counter(page: Exposition, name: string, help: string, value: number): void {
  page.family(PREFIX + name, 'counter', help);
  page.value({}, value);
}

function labelled(
  page: Exposition,
  [name, help]: readonly [string, string],
  labels: readonly string[],
  counts: LabelledCount,
): void {
  page.family(PREFIX + name, 'counter', help);
  for (const [key, value] of counts.values) {
    const texts = key.split('\0');
    page.value(Object.fromEntries(labels.map((label, at) => [label, texts[at] ?? ''])), value);
  }
}

function writeCycles(page: Exposition, { counts, last, machines }: ShardCore): void {
  page.family(`${PREFIX}cycle_duration_seconds`, 'histogram', 'Processor time of one cycle.');
  page.histogram({}, counts.cycleSeconds);
  page.family(`${PREFIX}request_bootstrap_seconds`, 'histogram', 'Waiting for blobs.');
  page.histogram({}, counts.bootstrapSeconds);
  page.family(`${PREFIX}configure_phase_seconds`, 'histogram', 'Joining of machines.');
  page.histogram({}, counts.configureSeconds);
  page.family(`${PREFIX}inventory_machines`, 'gauge', 'Machines that are known.');
  const cells = new Map<string, { readonly labels: Record<string, string>; count: number }>();
  for (const { state, capacityType, penalty, count } of machines.inventory.tally()) {
    const labels = {
      state,
      capacity_type: capacityType,
      interruption_penalty_bucket: bucketName(penalty),
    };
    const key = Object.values(labels).join('\0');
    const cell = cells.get(key);
    if (cell === undefined) cells.set(key, { labels, count });
    else cell.count += count;
  }
  for (const { labels, count } of cells.values()) page.value(labels, count);
  gauge(page, 'shortfalls', 'Profiles that lack capacity.', last.shortfalls.length);
  page.family(`${PREFIX}shortfalls_aged`, 'gauge', 'The same by age, in cycles.');
  const left = [...last.shortfalls];
  for (const [bucket, least] of AGES) {
    const aged = left.filter(({ age }) => age >= least);
    for (const one of aged) left.splice(left.indexOf(one), 1);
    page.value({ bucket }, aged.length);
  }
}

function bucketName(dollars: number): string {
  const bucket = bucketOfDollars(dollars);
  const found = Object.entries(PenaltyBucket).find(([, number]) => number === bucket);
  return (found?.[0] ?? '').replace(/^_/, '').toLowerCase();
}

function writeActions(page: Exposition, { counts, actuator }: ShardCore): void {
  labelled(page, ['actions_total', 'Actions that were begun.'], ['kind'], counts.actions);
  labelled(
    page,
    ['action_execute_outcomes_total', 'How actions ended.'],
    ['kind', 'outcome'],
    counts.outcomes,
  );
  labelled(page, ['actions_suppressed_total', 'While paused.'], ['kind'], counts.suppressed);
  labelled(page, ['actions_dryrun_total', 'Only looked at.'], ['kind'], counts.dryRun);
  counter(page, 'actions_deferred_total', 'Cut by the limit of a cycle.', counts.deferred);
  counter(page, 'actions_dropped_total', 'Found no room in the queue.', counts.dropped);
  counter(page, 'actions_deduped_total', 'For busy machines.', counts.deduped);
  counter(page, 'reclaims_capped_total', 'Kept back by the cap.', counts.capped);
  counter(page, 'idle_releases_total', 'Machines that were idle for long.', counts.idleReleases);
  gauge(page, 'action_queue_depth', 'Actions that wait.', actuator.queued);
  gauge(page, 'execute_inflight', 'Actions under way.', actuator.inFlight);
}

function writeSessions(page: Exposition, { counts, sessions }: ShardCore): void {
  const rejected = ['machines_rejected_total', 'Records of providers that were refused.'] as const;
  labelled(page, rejected, ['reason'], counts.machinesRejected);
  const refused = ['rollups_rejected_total', 'Roll-ups that were refused.'] as const;
  labelled(page, refused, ['cluster'], counts.rollupsRejected);
  page.family(`${PREFIX}rollup_quarantined`, 'gauge', 'Roll-ups in a row that were held.');
  for (const [cluster, reports] of counts.quarantined) page.value({ cluster }, reports);
  gauge(page, 'active_sessions', 'Clusters with a session.', sessions.clusters);
  labelled(page, ['session_lifecycle_total', 'Sessions.'], ['event'], counts.sessions);
  const help = 'Sessions whose certificate is of another cluster.';
  counter(page, 'session_identity_rejected_total', help, counts.identityRejected);
}

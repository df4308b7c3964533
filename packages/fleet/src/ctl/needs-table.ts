/** Rows of demand as a table for people. */
import { operatorName } from '../contract/profile.ts';
import { amountsText, textTable } from '../contract/text-table.ts';
import { UnmetReason } from '../contract/tables/shardread.ts';
import type { NodeSelectorRequirement } from '../contract/tables/capacity.ts';
import type { InspectNeedsResponse, NeedView } from '../contract/tables/shardread.ts';

const HEAD = ['CLUSTER', 'PRIORITY', 'WANTS', 'LACKS', 'MACHINES', 'REASON', 'AGE', 'REQUIRES'];

/** One line for each row; with `onlyUnmet` for those that lack something. */
export function needsTable(frames: readonly InspectNeedsResponse[], onlyUnmet: boolean): string {
  const views = frames.flatMap(({ frame }) => (frame.case === 'need' ? [frame.value] : []));
  const shown = onlyUnmet ? views.filter(({ satisfied }) => !satisfied) : views;
  const header = frames.find(({ frame }) => frame.case === 'header')?.frame;
  const isComputed = header?.case === 'header' && header.value.cycle > 0n;
  if (!isComputed) return 'The shard has not decided anything yet: is its /readyz ok?';
  return textTable(HEAD, shown.map(cellsOf));
}

function cellsOf(view: NeedView): string[] {
  const { clusterId, need, satisfied, residualDeficit, claimedMachineCount } = view;
  return [
    clusterId,
    String(need?.priority ?? 0),
    amountsText(need?.aggregateResources),
    satisfied ? '-' : amountsText(residualDeficit?.resources),
    String(claimedMachineCount),
    satisfied ? '-' : reasonOf(view),
    satisfied ? '-' : String(view.ageCyclesUnmet),
    (need?.requirements ?? []).map(requirementText).join(' ') || '-',
  ];
}

function reasonOf({ unmetReason, acquisitionParked, preemption }: NeedView): string {
  const found = Object.entries(UnmetReason).find(([, number]) => number === unmetReason);
  const parked = acquisitionParked ? ' (parked)' : '';
  const victims = preemption === undefined ? '' : ` (${preemption.victimsFound} drain)`;
  return `${found?.[0] ?? 'UNSPECIFIED'}${parked}${victims}`;
}

export function requirementText(one: NodeSelectorRequirement): string {
  const { key, operator, values } = one;
  const list = values.length === 0 ? '' : `(${values.join(',')})`;
  return `${key}:${operatorName(operator)}${list}`;
}

/**
 * What plugins say that a profile runs without their preparation. A profile that turns a plugin off
 * at `multiPoint`, or at `preFilter` or `preScore`, and on again at `filter` or `score` has it look
 * for what it never wrote down: most end the try with an error, in these words.
 */
import type { Filter, Plugin } from '../plugin.ts';
import type { PodInfo } from '../pod-info.ts';
import type { Snapshot } from '../snapshot.ts';

const FILTER_TEXTS: ReadonlyMap<string, string> = new Map([
  ['NodePorts', 'reading "PreFilterNodePorts" from cycleState: not found'],
  ['NodeResourcesFit', 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'],
  ['PodTopologySpread', 'reading "PreFilterPodTopologySpread" from cycleState: not found'],
  ['InterPodAffinity', 'error reading "PreFilterInterPodAffinity" from cycleState: not found'],
  ['VolumeRestrictions', 'cannot read "PreFilterVolumeRestrictions" from cycleState'],
  ['VolumeBinding', 'not found'],
  ['DynamicResources', 'not found'],
]);

const SCORE_TEXTS: ReadonlyMap<string, string> = new Map([
  ['TaintToleration', 'failed to read "PreScoreTaintToleration" from cycleState: not found'],
  ['PodTopologySpread', 'error reading "PreScorePodTopologySpread" from cycleState: not found'],
  ['InterPodAffinity', 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'],
]);

/** The filter of a plugin that was not prepared: no nodes are left out before it. */
export function unpreparedFilter(plugin: Plugin, pod: PodInfo, snapshot: Snapshot): Filter | null {
  const text = FILTER_TEXTS.get(plugin.name);
  if (text !== undefined) return { filter: () => ({ code: 'error', reasons: [text] }) };
  const outcome = plugin.preFilter?.(pod, snapshot) ?? { kind: 'skip' };
  if (outcome.kind === 'skip') return null;
  return outcome.kind === 'run' ? outcome.filter : { filter: () => outcome.rejection };
}

/** Why a plugin that was not prepared cannot score; empty if it can. */
export function unpreparedScoreError(name: string): string {
  const text = SCORE_TEXTS.get(name);
  return text === undefined ? '' : `running Score plugins: plugin "${name}" failed with: ${text}`;
}

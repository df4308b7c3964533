/**
 * The pod printer, whose STATUS column condenses the states of all containers into a word.
 *
 * Order of precedence, later wins: phase; status.reason; scheduling gates; the init container that
 * holds the pod up; containers from last to first; deletion.
 */
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { ageText, agoText } from './printing-age.ts';
import { podDigest } from './printing-digest.ts';
import {
  columnsOf,
  conditionOf,
  isBeingDeleted,
  isConditionTrue,
  nameOf,
  type Printer,
  type Row,
} from './printing-columns.ts';

const SUCCEEDED: readonly JsonObject[] = [
  {
    type: 'Completed',
    status: 'True',
    reason: 'Succeeded',
    message: 'The pod has completed successfully.',
  },
];
const FAILED: readonly JsonObject[] = [
  { type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' },
];

export const podPrinter: Printer = {
  digest: podDigest,
  columns: columnsOf(
    'Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, ' + '+Readiness Gates',
  ),
  row(pod: JsonObject, nowMs: number): Row {
    const summary = summarize(pod);
    const { restarts, restartedMs } = summary;
    const ago = restarts > 0 && restartedMs > 0 ? agoText(restartedMs, nowMs) : '';
    const cells: JsonValue[] = [
      nameOf(pod),
      `${summary.ready}/${summary.total}`,
      summary.reason,
      ago === '' ? String(restarts) : `${restarts} (${ago} ago)`,
      ageText(pod, nowMs),
      stringAt(listAt(pod, 'status', 'podIPs')[0], 'ip') ||
        stringAt(pod, 'status', 'podIP') ||
        '<none>',
      stringAt(pod, 'spec', 'nodeName') || '<none>',
      stringAt(pod, 'status', 'nominatedNodeName') || '<none>',
      readinessGates(pod),
    ];
    const phase = stringAt(pod, 'status', 'phase');
    if (phase === 'Succeeded') return { cells, conditions: SUCCEEDED };
    return phase === 'Failed' ? { cells, conditions: FAILED } : { cells };
  },
};

/** What the walk over the containers gathers. */
interface Summary {
  reason: string;
  total: number;
  ready: number;
  restarts: number;
  /** End of the last run before a restart; 0 if there is none. */
  restartedMs: number;
}

function summarize(pod: JsonObject): Summary {
  const phase = stringAt(pod, 'status', 'phase');
  const isGated = stringAt(conditionOf(pod, 'PodScheduled'), 'reason') === 'SchedulingGated';
  const sidecars = sidecarNames(pod);
  const summary: Summary = {
    reason: isGated ? 'SchedulingGated' : stringAt(pod, 'status', 'reason') || phase,
    total: listAt(pod, 'spec', 'containers').length + sidecars.size,
    ready: 0,
    restarts: 0,
    restartedMs: 0,
  };
  const sidecarRestarts = { restarts: 0, restartedMs: 0 };
  const isInitializing = walkInitContainers(pod, sidecars, summary, sidecarRestarts);
  if (!isInitializing || isConditionTrue(pod, 'Initialized')) {
    summary.restarts = sidecarRestarts.restarts;
    summary.restartedMs = sidecarRestarts.restartedMs;
    walkContainers(pod, summary);
  }
  if (isBeingDeleted(pod)) {
    if (stringAt(pod, 'status', 'reason') === 'NodeLost') summary.reason = 'Unknown';
    else if (phase !== 'Succeeded' && phase !== 'Failed') summary.reason = 'Terminating';
  }
  return summary;
}

/** Init containers that keep running beside the others. */
function sidecarNames(pod: JsonObject): ReadonlySet<string> {
  const names = new Set<string>();
  for (const container of listAt(pod, 'spec', 'initContainers')) {
    if (stringAt(container, 'restartPolicy') === 'Always') names.add(stringAt(container, 'name'));
  }
  return names;
}

type Restarts = Pick<Summary, 'restarts' | 'restartedMs'>;

function countRestarts(status: JsonValue, into: Restarts): void {
  into.restarts += numberAt(status, 'restartCount');
  const ended = Date.parse(stringAt(status, 'lastState', 'terminated', 'finishedAt'));
  if (ended > into.restartedMs) into.restartedMs = ended;
}

/** True where an init container holds the pod up; its state is then the reason. */
function walkInitContainers(
  pod: JsonObject,
  sidecars: ReadonlySet<string>,
  summary: Summary,
  sidecarRestarts: Restarts,
): boolean {
  const total = listAt(pod, 'spec', 'initContainers').length;
  for (const [index, status] of listAt(pod, 'status', 'initContainerStatuses').entries()) {
    const isSidecar = sidecars.has(stringAt(status, 'name'));
    countRestarts(status, summary);
    if (isSidecar) countRestarts(status, sidecarRestarts);
    const terminated = objectAt(status, 'state', 'terminated');
    const waiting = stringAt(status, 'state', 'waiting', 'reason');
    if (terminated !== undefined && numberAt(terminated, 'exitCode') === 0) continue;
    if (isSidecar && valueAt(status, 'started') === true) {
      if (valueAt(status, 'ready') === true) summary.ready++;
      continue;
    }
    if (terminated !== undefined) summary.reason = `Init:${endOf(terminated)}`;
    else if (waiting !== '' && waiting !== 'PodInitializing') summary.reason = `Init:${waiting}`;
    else summary.reason = `Init:${index}/${total}`;
    return true;
  }
  return false;
}

function endOf(terminated: JsonObject): string {
  const reason = stringAt(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = numberAt(terminated, 'signal');
  return signal !== 0 ? `Signal:${signal}` : `ExitCode:${numberAt(terminated, 'exitCode')}`;
}

/** From last to first, so that the first container that has something to say has the last word. */
function walkContainers(pod: JsonObject, summary: Summary): void {
  let hasRunning = false;
  let errorReason = '';
  for (const status of [...listAt(pod, 'status', 'containerStatuses')].reverse()) {
    countRestarts(status, summary);
    const waiting = stringAt(status, 'state', 'waiting', 'reason');
    const terminated = objectAt(status, 'state', 'terminated');
    if (waiting !== '') {
      summary.reason = waiting;
    } else if (terminated !== undefined) {
      summary.reason = endOf(terminated);
      if (numberAt(terminated, 'exitCode') !== 0) errorReason = summary.reason;
    } else if (
      valueAt(status, 'ready') === true &&
      objectAt(status, 'state', 'running') !== undefined
    ) {
      hasRunning = true;
      summary.ready++;
    }
  }
  if (summary.reason !== 'Completed') return;
  if (hasRunning && isConditionTrue(pod, 'Ready')) summary.reason = 'Running';
  else if (errorReason !== '') summary.reason = errorReason;
  else if (hasRunning) summary.reason = 'NotReady';
}

function readinessGates(pod: JsonObject): string {
  const gates = listAt(pod, 'spec', 'readinessGates');
  if (gates.length === 0) return '<none>';
  const open = gates.filter((gate) => isConditionTrue(pod, stringAt(gate, 'conditionType')));
  return `${open.length}/${gates.length}`;
}

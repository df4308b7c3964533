/**
 * What a run of many nodes and pods was, from the looks at its programs: phases, what each cost,
 * and how late leases were meanwhile.
 */
import type { HistoryDump } from '@megaplane/dashboard/history';
import { History } from '@megaplane/dashboard/history';
import { bucketsOf, labelOf, quantileOf, ratesOf, sumOf } from '../observe/exposition.ts';
import { figuresBetween, spanOf } from '../observe/figures.ts';
import type { Look } from '../observe/sources.ts';

const LATENESS = 'megaplane_lease_renewal_lateness_seconds';
/** Kinds of requests that are told apart in the report. */
const REQUESTS_MAX = 24;
/** A day of looks, one a second. */
const ROWS_MAX = 86_400;

/** One part of the run: the nodes, or the pods. */
export interface Phase {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
  readonly processes: readonly {
    readonly name: string;
    readonly cpuSeconds: number;
    readonly usPerObject: number;
  }[];
  readonly requests: readonly {
    readonly verb: string;
    readonly resource: string;
    readonly count: number;
  }[];
  readonly watchEvents: number;
  readonly renewals: number;
  readonly latenessP50: number;
  readonly latenessP99: number;
  readonly latenessMax: number;
}

/** The whole run, as `report.json` has it. */
export interface RunRecord {
  readonly machine: string;
  readonly command: string;
  readonly nodes: number;
  readonly pods: number;
  /** Whether all pods were bound; else what there was when it ended. */
  readonly isWhole: boolean;
  readonly marks: { readonly firstPodMs: number | null; readonly lastBoundMs: number | null };
  /** Seconds from the first creation of a pod to the last binding; null where not reached. */
  readonly boundSeconds: number | null;
  readonly runningSeconds: number | null;
  readonly nodesReadySeconds: number | null;
  readonly peakMib: number;
  readonly processes: readonly { readonly name: string; readonly rssPeakMib: number }[];
  readonly phases: readonly Phase[];
  readonly history: HistoryDump;
}

/** Takes looks as they come, and keeps those between which phases lie. */
export class RunRecorder {
  readonly history: History = new History(ROWS_MAX);
  readonly #nodes: number;
  readonly #pods: number;
  #first: Look | null = null;
  #last: Look | null = null;
  #ready: Look | null = null;
  #beforePods: Look | null = null;
  #bound: Look | null = null;
  #running: Look | null = null;
  #peakMib = 0;
  readonly #peaks: Map<string, number> = new Map();

  constructor(nodes: number, pods: number) {
    this.#nodes = nodes;
    this.#pods = pods;
  }

  /** How far it is, for people. */
  get counts(): { readonly ready: number; readonly bound: number; readonly running: number } {
    const families = this.#last?.seen.get('nodes')?.families ?? new Map();
    const gauge = (name: string): number => sumOf(families, `megaplane_${name}`) || 0;
    return {
      ready: gauge('nodes_ready'),
      bound: gauge('pods_bound'),
      running: gauge('pods_running'),
    };
  }

  /** True once all pods are bound and running, or all nodes ready where no pods are wanted. */
  get isDone(): boolean {
    return this.#pods === 0 ? this.#ready !== null : this.#running !== null;
  }

  add(look: Look): void {
    const before = this.#last;
    this.#first ??= look;
    this.#last = look;
    let mib = 0;
    for (const { name, rssMib, rssPeakMib } of look.seen.values()) {
      mib += Number.isNaN(rssMib) ? 0 : rssMib;
      if (rssPeakMib > (this.#peaks.get(name) ?? 0)) this.#peaks.set(name, rssPeakMib);
    }
    this.#peakMib = Math.max(this.#peakMib, mib);
    if (before === null) return;
    this.history.add(look.timeMs, figuresBetween(before, look));
    const { ready, bound, running } = this.counts;
    if (ready >= this.#nodes) this.#ready ??= look;
    if (createdPods(look) > 0) this.#beforePods ??= before;
    if (this.#pods === 0) return;
    if (bound >= this.#pods) this.#bound ??= look;
    if (running >= this.#pods) this.#running ??= look;
  }

  /** All that is known now. */
  record(about: { readonly machine: string; readonly command: string }): RunRecord {
    const { history } = this;
    const seconds = (from: Look | null, to: Look | null): number | null =>
      from === null || to === null ? null : (to.steadyMs - from.steadyMs) / 1000;
    return {
      ...about,
      nodes: this.#nodes,
      pods: this.#pods,
      isWhole: this.isDone,
      marks: {
        firstPodMs: this.#beforePods?.timeMs ?? null,
        lastBoundMs: this.#bound?.timeMs ?? null,
      },
      boundSeconds: seconds(this.#beforePods, this.#bound),
      runningSeconds: seconds(this.#beforePods, this.#running),
      nodesReadySeconds: seconds(this.#first, this.#ready),
      peakMib: this.#peakMib,
      processes: [...this.#peaks].map(([name, rssPeakMib]) => ({ name, rssPeakMib })),
      phases: this.#phases(),
      history: history.dump(),
    };
  }

  #phases(): Phase[] {
    const { ready, bound } = this.counts;
    const last = this.#last;
    if (this.#first === null || last === null) return [];
    const nodes = phaseOf('nodes', this.#first, this.#ready ?? this.#beforePods ?? last, ready);
    if (this.#beforePods === null) return [nodes];
    const end = this.#running ?? last;
    return [nodes, phaseOf('pods', this.#beforePods, end, Math.min(bound, this.#pods))];
  }
}

function createdPods(look: Look): number {
  const families = look.seen.get('apiserver')?.families ?? new Map();
  return sumOf(families, 'apiserver_request_total', (labels) => {
    const isPod = labelOf(labels, 'resource') === 'pods' && labelOf(labels, 'subresource') === '';
    return isPod && labelOf(labels, 'verb') === 'POST' && labelOf(labels, 'code') === '201';
  });
}

function phaseOf(name: string, from: Look, to: Look, count: number): Phase {
  const server = spanOf(from, to, 'apiserver');
  const nodes = spanOf(from, to, 'nodes');
  const { seconds } = server;
  const processes = [...to.seen.values()].flatMap((seen) => {
    const cpuSeconds = seen.cpuSeconds - (from.seen.get(seen.name)?.cpuSeconds ?? 0);
    if (!Number.isFinite(cpuSeconds)) return [];
    return [{ name: seen.name, cpuSeconds, usPerObject: (cpuSeconds * 1e6) / Math.max(1, count) }];
  });
  const rates = ratesOf(server, 'apiserver_request_total', (labels) => {
    const sub = labelOf(labels, 'subresource');
    const of = sub === '' ? '' : `/${sub}`;
    return `${labelOf(labels, 'verb')} ${labelOf(labels, 'resource')}${of}`;
  });
  const requests = [...rates]
    .map(([key, rate]) => {
      const [verb = '', resource = ''] = key.split(' ');
      return { verb, resource, count: Math.round(rate * seconds) };
    })
    .filter(({ count: made }) => made > 0)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, REQUESTS_MAX);
  const events = ratesOf(server, 'apiserver_watch_events_total').get('') ?? 0;
  const renewals = ratesOf(nodes, 'megaplane_lease_renewals_total').get('') ?? 0;
  const lateness = bucketsOf(nodes, LATENESS).get('') ?? { bounds: [], counts: [] };
  return {
    name,
    fromMs: from.timeMs,
    toMs: to.timeMs,
    count,
    processes,
    requests,
    watchEvents: Math.round(events * seconds),
    renewals: Math.round(renewals * seconds),
    latenessP50: quantileOf(lateness, 0.5),
    latenessP99: quantileOf(lateness, 0.99),
    latenessMax: quantileOf(lateness, 1),
  };
}

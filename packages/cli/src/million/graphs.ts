/** The graphs of the founding report, from the figures of a run. */
import type { LinePlot, PlotMark } from '../plot/plot.ts';
import type { RunRecord } from './run-record.ts';

/** A graph, and the name of its file. */
export interface Graph {
  readonly file: string;
  readonly plot: LinePlot;
}

type Lines = readonly (readonly [figure: string, label: string, factor?: number])[];

const PROGRAMS = ['apiserver', 'scheduler', 'controllers', 'nodes'] as const;
const MIB = 2 ** 20;
/** A curve has no more points than its picture has room for. */
const POINTS_MAX = 1200;

const GRAPHS: readonly (readonly [
  file: string,
  title: string,
  yTitle: string,
  yFormat: string,
  lines: Lines,
])[] = [
  ['nodes-ready', 'Nodes ready', 'nodes', '~s', [['nodesReady', 'ready']]],
  [
    'pods',
    'Pods bound and running',
    'pods',
    '~s',
    [
      ['podsBound', 'bound'],
      ['podsRunning', 'running'],
    ],
  ],
  [
    'store-puts',
    'Store: puts',
    'per second',
    '~s',
    [
      ['putsPerS', 'puts'],
      ['leaseWritesPerS', 'of leases'],
    ],
  ],
  ['store-size', 'Store: objects', 'objects', '~s', [['objects', 'objects']]],
  [
    'apiserver-requests',
    'API server: requests',
    'per second',
    '~s',
    [
      ['writesPerS', 'writes'],
      ['readsPerS', 'reads'],
      ['podsCreatedPerS', 'pods created'],
      ['podStatusPerS', 'status of pods'],
    ],
  ],
  [
    'apiserver-latency',
    'API server: latency of requests',
    'ms',
    '~s',
    [
      ['writeP50', 'writes p50', 1000],
      ['writeP99', 'writes p99', 1000],
      ['readP99', 'reads p99', 1000],
    ],
  ],
  [
    'apiserver-watches',
    'API server: events to watchers',
    'per second',
    '~s',
    [['watchEventsPerS', 'events']],
  ],
  [
    'apiserver-memory',
    'API server: memory',
    'MiB',
    '~s',
    [
      ['rss.apiserver', 'resident', 1 / MIB],
      ['heapBytes', 'heap', 1 / MIB],
    ],
  ],
  [
    'apiserver-collector',
    'API server: pauses of the collector',
    '% of the time',
    '~s',
    [['gcSecondsPerS', 'pauses', 100]],
  ],
  [
    'scheduler-rate',
    'Scheduler: pods scheduled',
    'per second',
    '~s',
    [
      ['scheduledPerS', 'scheduled'],
      ['podsCreatedPerS', 'created'],
    ],
  ],
  ['scheduler-pending', 'Scheduler: pending pods', 'pods', '~s', [['pending', 'pending']]],
  [
    'scheduler-latency',
    'Scheduler: latency of an attempt',
    'ms',
    '~s',
    [
      ['attemptP50', 'p50', 1000],
      ['attemptP99', 'p99', 1000],
    ],
  ],
  ['nodes-renewals', 'Nodes: leases renewed', 'per second', '~s', [['renewalsPerS', 'renewals']]],
  [
    'nodes-lateness',
    'Nodes: lateness of leases',
    's',
    '~s',
    [
      ['latenessP50', 'p50'],
      ['latenessP99', 'p99'],
    ],
  ],
  [
    'processor',
    'Processor',
    '% of a core',
    '~s',
    PROGRAMS.map((name) => [`cpu.${name}`, name, 100] as const),
  ],
  [
    'memory',
    'Memory',
    'MiB',
    '~s',
    PROGRAMS.map((name) => [`rss.${name}`, name, 1 / MIB] as const),
  ],
];

/** All graphs whose figures are known. */
export function graphsOf({ history, marks }: RunRecord): Graph[] {
  const [startMs = 0] = history.timesMs;
  const at = (ms: number): number => (ms - startMs) / 1000;
  const lineMarks: PlotMark[] = [];
  if (marks.firstPodMs !== null)
    lineMarks.push({ x: at(marks.firstPodMs), label: 'first pod created' });
  if (marks.lastBoundMs !== null)
    lineMarks.push({ x: at(marks.lastBoundMs), label: 'last pod bound' });
  const step = Math.max(1, Math.ceil(history.timesMs.length / POINTS_MAX));
  return GRAPHS.flatMap(([file, title, yTitle, yFormat, figures]) => {
    const lines = figures.flatMap(([figure, label, factor = 1]) => {
      const column = history.columns[history.names.indexOf(figure)];
      if (column === undefined) return [];
      const points = column.flatMap((value, row) =>
        value === null || row % step !== 0
          ? []
          : [[at(history.timesMs[row] ?? 0), value * factor] as const],
      );
      return points.length < 2 ? [] : [{ label, points }];
    });
    if (lines.length === 0) return [];
    const xDomain = [0, at(history.timesMs.at(-1) ?? 0)] as const;
    const plot = { title, xTitle: 'seconds', yTitle, yFormat, lines, marks: lineMarks, xDomain };
    return [{ file, plot }];
  });
}

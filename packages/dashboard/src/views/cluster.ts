// shell: the clock, for the age of events
/** The whole cluster at a glance. */
import type { VNode } from 'preact';
import type { Live } from '../live/live.ts';
import { counter } from '../parts/counter.ts';
import { curve } from '../parts/curve.ts';
import type { Line } from '../parts/curve.ts';
import type { Unit } from '../model/protocol.ts';
import { card, div, span, tag } from '../parts/element.ts';
import { field } from '../parts/field.ts';
import { gridCard } from '../parts/grid-table.ts';
import { ago, shown } from '../parts/numbers.ts';

/** A view: what is known, and the name of the colours in use. */
export type ViewOf = (live: Live, theme: string) => VNode;

/** Curves of a view, each with its title, unit and lines. */
export type Curves = readonly (readonly [
  title: string,
  unit: Unit,
  ...lines: (readonly [string, string])[],
])[];

export function curves(live: Live, theme: string, all: Curves): VNode {
  const cards = all.map(([title, unit, ...pairs]) => {
    const lines = pairs.map(([name, label]): Line => ({ name, label }));
    return curve({ title, unit, lines, history: live.history, theme });
  });
  return div({ class: 'curves' }, ...cards);
}

const PROCESSES = ['apiserver', 'store', 'scheduler', 'controllers', 'nodes', 'page'];

export const clusterView: ViewOf = (live, theme) => {
  const value = (name: string): number | undefined => live.history.column(name).at(-1) ?? undefined;
  const processes = PROCESSES.filter((name) => live.history.names.includes(`cpu.${name}`));
  const lines = (figure: string): (readonly [string, string])[] =>
    processes.map((name) => [`${figure}.${name}`, name] as const);
  return div(
    { class: 'view' },
    div({ class: 'counters' }, ...counters(value)),
    field({
      isRich: live.hello?.field === 'simulator',
      isLive: live.link.kind === 'live',
      onNode: (name) => live.go('browse', { path: '/api/v1/nodes', name }),
    }),
    curves(live, theme, [
      ['Nodes ready', 'count', ['nodesReady', '']],
      ['Leases', 'rate', ['renewalsPerS', 'renewed']],
      [
        'Pods',
        'rate',
        ['podsCreatedPerS', 'created'],
        ['podsBoundPerS', 'bound'],
        ['podsRunningPerS', 'running'],
      ],
      ['Latency of requests, p99', 'seconds', ['writeP99', 'writes'], ['readP99', 'reads']],
      ['Processor', 'percent', ...lines('cpu')],
      ['Memory', 'bytes', ...lines('rss')],
    ]),
    div({ class: 'two' }, gridCard(live.view?.grids[0], 'Processes'), eventsCard(live)),
  );
};

type ValueOf = (name: string) => number | undefined;

function counters(value: ValueOf): VNode[] {
  const rate = (name: string): string => shown(value(name), 'rate');
  const nodes = value('nodes');
  const ready = value('nodesReady');
  const isWhole = nodes !== undefined && ready === nodes;
  const late = value('latenessP99');
  return [
    counter({
      label: 'Nodes ready',
      value: ready,
      unit: 'count',
      note: nodes === undefined ? '' : `of ${shown(nodes, 'count')}`,
      tone: nodes === undefined ? 'plain' : isWhole ? 'good' : 'bad',
    }),
    counter({
      label: 'Leases renewed',
      value: value('renewalsPerS'),
      unit: 'rate',
      note: late === undefined ? '' : `p99 ${shown(late, 'seconds')} late`,
    }),
    counter({
      label: 'Pods bound',
      value: value('podsBound'),
      unit: 'count',
      note: rate('podsBoundPerS'),
    }),
    counter({
      label: 'Pods running',
      value: value('podsRunning'),
      unit: 'count',
      note: rate('podsRunningPerS'),
    }),
    counter({
      label: 'Pending',
      value: value('pending'),
      unit: 'count',
      note: `${rate('podsCreatedPerS')} created`,
    }),
    counter({
      label: 'Requests',
      value: (value('readsPerS') ?? 0) + (value('writesPerS') ?? 0),
      unit: 'rate',
      note: `writes p99 ${shown(value('writeP99'), 'seconds')}`,
    }),
  ];
}

function eventsCard(live: Live): VNode {
  const { lines, isSampled } = live.events;
  const nowMs = live.sample?.timeMs ?? Date.now();
  const aside = isSampled ? span({ class: 'faint' }, 'there are more than are shown') : null;
  if (lines.length === 0) return card('Events', {}, div({ class: 'none' }, 'No event yet.'));
  const rows = lines
    .slice(0, 14)
    .map((line) =>
      tag(
        'li',
        { key: line.uid, class: line.type === 'Warning' ? 'warning' : '' },
        span({ class: 'when' }, ago(line.timeMs, nowMs)),
        span({ class: 'reason' }, line.reason),
        span({ class: 'object' }, line.object),
        span({ class: 'note' }, line.note),
      ),
    );
  return card('Events', { aside }, tag('ul', { class: 'events' }, ...rows));
}

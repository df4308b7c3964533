/** The views of the programs: store, API server, scheduler. */
import { counter } from '../parts/counter.ts';
import { div } from '../parts/element.ts';
import { gridCard } from '../parts/grid-table.ts';
import { shown } from '../parts/numbers.ts';
import type { Live } from '../live/live.ts';
import { curves } from './cluster.ts';
import type { ViewOf } from './cluster.ts';

function last(live: Live): (name: string) => number | undefined {
  return (name) => live.history.column(name).at(-1) ?? undefined;
}

export const storeView: ViewOf = (live, theme) => {
  const value = last(live);
  return div(
    { class: 'view' },
    div(
      { class: 'counters' },
      counter({
        label: 'Revision',
        value: value('revision'),
        unit: 'count',
        note: `${shown(value('revisionsPerS'), 'rate')}`,
      }),
      counter({ label: 'Puts', value: value('putsPerS'), unit: 'rate' }),
      counter({ label: 'Objects', value: value('objects'), unit: 'count' }),
      counter({
        label: 'Size',
        value: value('storeBytes'),
        unit: 'bytes',
        note: 'of what is stored',
      }),
      counter({
        label: 'Watches',
        value: value('watches'),
        unit: 'count',
        note: `${shown(value('watchEventsPerS'), 'rate')} events`,
      }),
    ),
    curves(live, theme, [
      ['Revisions', 'rate', ['revisionsPerS', ''], ['putsPerS', 'puts']],
      ['Objects', 'count', ['objects', '']],
      ['Events to watchers', 'rate', ['watchEventsPerS', '']],
      ['Size', 'bytes', ['storeBytes', '']],
      ['Log written', 'bytes', ['logBytesPerS', 'a second']],
      ['Flush of the log, p99', 'seconds', ['fsyncP99', '']],
    ]),
    gridCard(live.view?.grids[0], 'By resource'),
  );
};

export const apiserverView: ViewOf = (live, theme) => {
  const value = last(live);
  const [requests, fairness, watches] = live.view?.grids ?? [];
  return div(
    { class: 'view' },
    div(
      { class: 'counters' },
      counter({
        label: 'Reads',
        value: value('readsPerS'),
        unit: 'rate',
        note: `p99 ${shown(value('readP99'), 'seconds')}`,
      }),
      counter({
        label: 'Writes',
        value: value('writesPerS'),
        unit: 'rate',
        note: `p99 ${shown(value('writeP99'), 'seconds')}`,
      }),
      counter({
        label: 'Failed',
        value: value('errorsPerS'),
        unit: 'rate',
        note: 'answers of 4xx and 5xx',
      }),
      counter({
        label: 'In flight',
        value: value('inflight'),
        unit: 'count',
        note: `${shown(value('inqueue') ?? 0, 'count')} queued`,
      }),
      counter({
        label: 'Watches',
        value: value('watches'),
        unit: 'count',
        note: `${shown(value('watchEventsPerS'), 'rate')} events`,
      }),
      counter({
        label: 'Processor',
        value: value('cpu.apiserver'),
        unit: 'percent',
        note: shown(value('rss.apiserver'), 'bytes'),
      }),
    ),
    curves(live, theme, [
      [
        'Requests',
        'rate',
        ['writesPerS', 'writes'],
        ['readsPerS', 'reads'],
        ['leaseWritesPerS', 'leases'],
      ],
      ['Latency of writes', 'seconds', ['writeP50', 'p50'], ['writeP99', 'p99']],
      ['Latency of reads', 'seconds', ['readP50', 'p50'], ['readP99', 'p99']],
      ['Watch events', 'rate', ['watchEventsPerS', '']],
      ['Bytes to watchers', 'bytes', ['watchBytesPerS', 'a second']],
      [
        'Memory',
        'bytes',
        ['rss.apiserver', 'resident'],
        ['heapBytes', 'heap'],
        ['externalBytes', 'outside of it'],
      ],
    ]),
    gridCard(requests, 'Requests'),
    div({ class: 'two' }, gridCard(fairness, 'Fairness'), gridCard(watches, 'Watches')),
  );
};

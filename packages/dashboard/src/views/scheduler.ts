/** What the scheduler does, and why a pod waits. */
import { unawaited } from '@megaplane/base/deferred';
import { Component } from 'preact';
import type { VNode } from 'preact';
import type { Live } from '../live/live.ts';
import { askJson } from '../live/requests.ts';
import type { TableRow, TableRows } from '../model/protocol.ts';
import { counter } from '../parts/counter.ts';
import { button, card, div, part, tag } from '../parts/element.ts';
import { gridCard } from '../parts/grid-table.ts';
import { shown } from '../parts/numbers.ts';
import { curves } from './cluster.ts';
import type { ViewOf } from './cluster.ts';

export const schedulerView: ViewOf = (live, theme) => {
  const value = (name: string): number | undefined => live.history.column(name).at(-1) ?? undefined;
  const grids = live.view?.grids ?? [];
  const latency = `p99 ${shown(value('attemptP99'), 'seconds')}`;
  return div(
    { class: 'view' },
    div(
      { class: 'counters' },
      counter({ label: 'Scheduled', value: value('scheduledPerS'), unit: 'rate' }),
      counter({ label: 'Pending', value: value('pending'), unit: 'count' }),
      counter({ label: 'Attempt', value: value('attemptP50'), unit: 'seconds', note: latency }),
      counter({
        label: 'From queue to node',
        value: value('podE2eP50'),
        unit: 'seconds',
        note: `p99 ${shown(value('podE2eP99'), 'seconds')}`,
      }),
    ),
    curves(live, theme, [
      ['Scheduled', 'rate', ['scheduledPerS', ''], ['attemptsPerS', 'attempts']],
      ['Pending', 'count', ['pending', '']],
      ['Latency of an attempt', 'seconds', ['attemptP50', 'p50'], ['attemptP99', 'p99']],
    ]),
    part(Waiting, { live }),
    div(
      { class: 'two' },
      ...[0, 1, 2, 3].map((index) => gridCard(grids[index], 'Waiting for figures')),
    ),
  );
};

const WAITING_SHOWN = 20;
const PENDING = {
  path: '/api/v1/pods',
  fieldSelector: 'status.phase=Pending,spec.nodeName=',
  limit: WAITING_SHOWN,
};

interface State {
  readonly rows: readonly TableRow[] | null;
  readonly trouble: string;
  readonly explained: string;
  readonly text: string;
}

/** Pods that have no node, asked for when somebody wants to know. */
class Waiting extends Component<{ readonly live: Live }, State> {
  override state: State = { rows: null, trouble: '', explained: '', text: '' };

  override componentDidMount(): void {
    unawaited(this.#read());
  }

  render(): VNode {
    const { rows, trouble, explained, text } = this.state;
    const again = button({ class: 'quiet', onClick: () => unawaited(this.#read()) }, 'Read again');
    const title = 'Pods without a node';
    if (trouble !== '') return card(title, { aside: again }, div({ class: 'trouble' }, trouble));
    if (rows === null) return card(title, { aside: again }, div({ class: 'none' }, 'Reading…'));
    if (rows.length === 0) {
      return card(title, { aside: again }, div({ class: 'none' }, 'Every pod has a node.'));
    }
    const items = rows.map((row) =>
      tag(
        'li',
        { key: row.uid },
        button(
          {
            class: explained === row.uid ? 'link on' : 'link',
            onClick: () => unawaited(this.#explain(row)),
          },
          `${row.namespace}/${row.name}`,
        ),
      ),
    );
    const report = explained === '' ? 'Choose a pod to read why it has no node.' : text;
    return card(
      title,
      { aside: again },
      div(
        { class: 'explain' },
        tag('ul', null, ...items),
        tag('pre', { 'aria-live': 'polite', tabIndex: 0 }, report),
      ),
    );
  }

  async #read(): Promise<void> {
    const { hello } = this.props.live;
    if (hello === null) return;
    try {
      const path = `api/table?session=${hello.session}`;
      const { rows } = await askJson<TableRows>(path, 'POST', PENDING);
      this.setState({ rows, trouble: '' });
    } catch (error) {
      this.setState({ trouble: (error as Error).message });
    }
  }

  async #explain({ uid, namespace, name }: TableRow): Promise<void> {
    this.setState({ explained: uid, text: 'Deciding again, node by node…' });
    const query = new URLSearchParams({ namespace, name }).toString();
    let text: string;
    try {
      ({ text } = await askJson<{ readonly text: string }>(`api/explain?${query}`));
    } catch (error) {
      text = (error as Error).message;
    }
    if (this.state.explained === uid) this.setState({ text });
  }
}

// shell: the clock, and a question of the browser
/** Nodes, how late their leases are, and what may happen to them. */
import { unawaited } from '@megaplane/base/deferred';
import { Component } from 'preact';
import type { VNode } from 'preact';
import type { Live } from '../live/live.ts';
import { askJson } from '../live/requests.ts';
import { barCard } from '../parts/bar-chart.ts';
import { counter } from '../parts/counter.ts';
import { button, card, div, part, span, tag } from '../parts/element.ts';
import { gridCard } from '../parts/grid-table.ts';
import { shown } from '../parts/numbers.ts';
import { curves } from './cluster.ts';
import type { ViewOf } from './cluster.ts';

export const nodesView: ViewOf = (live, theme) => {
  const value = (name: string): number | undefined => live.history.column(name).at(-1) ?? undefined;
  const [zones, queues] = live.view?.grids ?? [];
  const [lateness] = live.view?.bars ?? [];
  return div(
    { class: 'view' },
    div(
      { class: 'counters' },
      counter({
        label: 'Nodes',
        value: value('nodes'),
        unit: 'count',
        note: `${shown(value('nodesReady'), 'count')} ready`,
      }),
      counter({ label: 'Leases renewed', value: value('renewalsPerS'), unit: 'rate' }),
      counter({
        label: 'Lateness',
        value: value('latenessP50'),
        unit: 'seconds',
        note: `p99 ${shown(value('latenessP99'), 'seconds')}`,
      }),
      counter({
        label: 'Pods running',
        value: value('podsRunning'),
        unit: 'count',
        note: `of ${shown(value('podsBound'), 'count')} bound`,
      }),
    ),
    div({ class: 'two' }, barCard(lateness, 'Lateness of leases'), part(Chaos, { live })),
    curves(live, theme, [
      ['Nodes', 'count', ['nodesReady', 'ready'], ['nodes', 'all']],
      ['Lateness of leases', 'seconds', ['latenessP50', 'p50'], ['latenessP99', 'p99']],
      ['Leases', 'rate', ['renewalsPerS', 'renewed']],
    ]),
    div({ class: 'two' }, gridCard(zones, 'Zones'), gridCard(queues, "Controllers' queues")),
  );
};

interface Fault {
  readonly id: string;
  readonly kind: string;
  readonly selector: string;
  readonly percent: number;
  readonly untilMs: number;
}

interface State {
  readonly faults: readonly Fault[];
  readonly kind: 'down' | 'flap';
  readonly zone: string;
  readonly percent: string;
  readonly seconds: string;
  readonly told: string;
}

/** Scenarios: begun after a question, ended at a click. */
class Chaos extends Component<{ readonly live: Live }, State> {
  override state: State = {
    faults: [],
    kind: 'down',
    zone: '',
    percent: '10',
    seconds: '60',
    told: '',
  };

  override componentDidMount(): void {
    if (this.props.live.hello?.hasChaos === true) unawaited(this.#read());
  }

  render(): VNode {
    const { hello } = this.props.live;
    if (hello?.hasChaos !== true) {
      const why = 'Scenarios can be started where nodes are simulated, and not with --read-only.';
      return card('Chaos', {}, div({ class: 'none' }, why));
    }
    const { faults, told } = this.state;
    const rows = faults.map((fault) =>
      tag(
        'li',
        { key: fault.id },
        span(null, sentence(fault)),
        button({ class: 'quiet', onClick: () => unawaited(this.#end(fault.id)) }, 'Heal'),
      ),
    );
    return card(
      'Chaos',
      {},
      div({ class: 'fields' }, ...this.#inputs()),
      button({ class: 'danger', onClick: () => unawaited(this.#begin()) }, 'Begin…'),
      told === '' ? null : div({ class: 'trouble', role: 'status' }, told),
      rows.length === 0
        ? div({ class: 'none' }, 'No fault now.')
        : tag('ul', { class: 'faults' }, ...rows),
    );
  }

  #inputs(): VNode[] {
    const { kind, zone, percent, seconds } = this.state;
    const input = (label: string, name: 'zone' | 'percent' | 'seconds', value: string): VNode =>
      tag(
        'label',
        null,
        label,
        tag('input', {
          value,
          inputMode: name === 'zone' ? 'text' : 'numeric',
          placeholder: name === 'zone' ? 'all' : '',
          onInput: (event: InputEvent) =>
            this.setState({ [name]: (event.target as HTMLInputElement).value }),
        }),
      );
    const choose = (event: Event): void =>
      this.setState({
        kind: (event.target as HTMLSelectElement).value === 'flap' ? 'flap' : 'down',
      });
    const kinds = [
      tag('option', { value: 'down' }, 'say no more'),
      tag('option', { value: 'flap' }, 'come and go'),
    ];
    return [
      tag('label', null, 'Nodes', tag('select', { value: kind, onChange: choose }, ...kinds)),
      input('Zone', 'zone', zone),
      input('Percent', 'percent', percent),
      input('Seconds', 'seconds', seconds),
    ];
  }

  async #read(): Promise<void> {
    this.setState({ faults: await askJson<readonly Fault[]>('api/chaos') });
  }

  async #begin(): Promise<void> {
    const { kind, zone, percent, seconds } = this.state;
    const where = zone === '' ? 'all nodes' : `the nodes of ${zone}`;
    const what = kind === 'down' ? 'say no more' : 'come and go';
    if (!confirm(`${percent} % of ${where} ${what} for ${seconds} s. Begin?`)) return;
    await this.#try(async () => {
      const asked = { kind, zone, percent: Number(percent), seconds: Number(seconds) };
      await askJson('api/chaos', 'POST', asked);
    });
  }

  async #end(id: string): Promise<void> {
    await this.#try(async () => {
      await askJson(`api/chaos?id=${encodeURIComponent(id)}`, 'DELETE');
    });
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.setState({ told: '' });
      await this.#read();
    } catch (error) {
      this.setState({ told: (error as Error).message });
    }
  }
}

function sentence({ id, kind, selector, percent, untilMs }: Fault): string {
  const where = selector === '' ? 'all nodes' : selector;
  const what = kind === 'down' ? 'down' : 'flapping';
  const left = Math.max(0, Math.round((untilMs - Date.now()) / 1000));
  return `${id}: ${percent} % of ${where} ${what}${untilMs === 0 ? '' : `, ${left} s more`}`;
}

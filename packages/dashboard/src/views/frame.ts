// shell: the browser's window
/** What stands around each view: the menu, how the stream is, and the choice of colours. */
import { guarded } from '@megaplane/base/deferred';
import { Component } from 'preact';
import type { VNode } from 'preact';
import { VIEWS } from '../model/protocol.ts';
import type { View } from '../model/protocol.ts';
import type { Live } from '../live/live.ts';
import { TOKEN_GONE } from '../live/requests.ts';
import { button, div, part, span, tag } from '../parts/element.ts';
import { browse } from './browse.ts';
import { clusterView } from './cluster.ts';
import type { ViewOf } from './cluster.ts';
import { nodesView } from './nodes.ts';
import { apiserverView, storeView } from './parts-of-cluster.ts';
import { schedulerView } from './scheduler.ts';

const TITLES: Readonly<Record<View, string>> = {
  cluster: 'Cluster',
  store: 'Store',
  apiserver: 'API server',
  scheduler: 'Scheduler',
  nodes: 'Nodes',
  fleet: 'Fleet',
  browse: 'Browse',
};
const VIEW_OF: Readonly<Record<View, ViewOf>> = {
  cluster: clusterView,
  store: storeView,
  apiserver: apiserverView,
  scheduler: schedulerView,
  nodes: nodesView,
  fleet: (live) => browse({ live, group: 'bigfleet.lucy.sh' }),
  browse: (live) => browse({ live, group: '' }),
};
const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const KEPT_UNDER = 'megaplane-theme';

interface State {
  readonly theme: Theme;
}

class Frame extends Component<{ readonly live: Live; readonly turn: number }, State> {
  override state: State = { theme: keptTheme() };
  readonly #end = new AbortController();
  readonly #dark = matchMedia('(prefers-color-scheme: dark)');

  override componentDidMount(): void {
    const { signal } = this.#end;
    document.addEventListener(
      'keydown',
      guarded((event) => this.#press(event)),
      { signal },
    );
    this.#dark.addEventListener(
      'change',
      guarded(() => this.setState({})),
      { signal },
    );
    this.#dress();
  }

  override componentWillUnmount(): void {
    this.#end.abort();
  }

  render(): VNode {
    const { live } = this.props;
    const { view } = live.place;
    const { theme } = this.state;
    if (live.link.kind === 'refused') return div({ class: 'waiting' }, TOKEN_GONE);
    const colours = theme === 'system' ? `system ${this.#dark.matches}` : theme;
    document.title = `${TITLES[view]} · Megaplane`;
    return div(
      { class: 'frame' },
      tag('header', { class: 'top' }, this.#brand(), this.#menu(), this.#side()),
      this.#troubles(),
      tag(
        'main',
        { id: 'main', tabIndex: -1 },
        live.hello === null
          ? div({ class: 'waiting' }, 'Connecting…')
          : VIEW_OF[view](live, colours),
      ),
    );
  }

  #brand(): VNode {
    const { hello } = this.props.live;
    const where =
      hello === null ? '' : `${hello.server.replace(/^https?:\/\//, '')} · ${hello.version}`;
    return div(
      { class: 'brand' },
      tag('img', { src: 'icon.svg', alt: '', width: 26, height: 26 }),
      div(null, tag('strong', null, 'Megaplane'), div({ class: 'faint' }, where)),
    );
  }

  #menu(): VNode {
    const { live } = this.props;
    const views = VIEWS.filter((one) => one !== 'fleet' || live.hello?.hasFleet === true);
    const items = views.map((one) =>
      tag(
        'a',
        {
          key: one,
          href: `#/${one}`,
          class: one === live.place.view ? 'on' : '',
          'aria-current': one === live.place.view ? 'page' : undefined,
        },
        TITLES[one],
      ),
    );
    return tag('nav', { 'aria-label': 'Views' }, ...items);
  }

  #side(): VNode {
    const { live } = this.props;
    const { link, sample } = live;
    const every = sample === null ? '' : `every ${Math.round(sample.everyMs / 100) / 10} s`;
    const text =
      link.kind === 'live' ? 'live' : link.kind === 'lost' ? 'reconnecting' : 'connecting';
    return div(
      { class: 'side' },
      span({ class: `pill ${link.kind}`, role: 'status', title: every }, text),
      button(
        {
          class: 'quiet',
          title: 'Colours',
          'aria-label': `Colours: ${this.state.theme}`,
          onClick: () => this.#turnTheme(),
        },
        this.state.theme === 'system' ? 'auto' : this.state.theme,
      ),
    );
  }

  #troubles(): VNode | null {
    const { link, sample } = this.props.live;
    const lost = link.kind === 'lost' ? [`No word from the page's server: ${link.why}`] : [];
    const all = [...lost, ...(link.kind === 'live' ? (sample?.troubles ?? []) : [])];
    return all.length === 0 ? null : div({ class: 'troubles', role: 'alert' }, all.join(' · '));
  }

  #turnTheme(): void {
    const at = THEMES.indexOf(this.state.theme);
    const theme = THEMES[(at + 1) % THEMES.length] ?? 'system';
    localStorage.setItem(KEPT_UNDER, theme);
    this.setState({ theme }, () => this.#dress());
  }

  #dress(): void {
    document.documentElement.dataset['theme'] = this.state.theme;
    this.setState({});
  }

  /** Digits choose a view, where nobody writes. */
  #press(event: KeyboardEvent): void {
    const isWriting = /^(?:INPUT|TEXTAREA|SELECT)$/.test((event.target as Element).tagName);
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
    const view = VIEWS[Number(event.key) - 1];
    if (view !== undefined) this.props.live.go(view);
  }
}

function keptTheme(): Theme {
  const kept = localStorage.getItem(KEPT_UNDER);
  return THEMES.find((one) => one === kept) ?? 'system';
}

/** The whole page; `turn` counts how often it was drawn. */
export function frame(live: Live, turn: number): VNode {
  return part(Frame, { live, turn });
}

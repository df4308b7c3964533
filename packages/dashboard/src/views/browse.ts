// shell: the browser's timers
/** Any objects of the cluster as tables of the server, read page by page and watched. */
import { afterMs, unawaited } from '@megaplane/base/deferred';
import { Component } from 'preact';
import type { VNode } from 'preact';
import type { Live } from '../live/live.ts';
import { askJson } from '../live/requests.ts';
import type { ResourceKind, TableChange, TableRow, TableRows } from '../model/protocol.ts';
import { button, card, div, part, span, tag } from '../parts/element.ts';
import { objectPanel } from './object-panel.ts';

const PAGE_ROWS = 100;
/** Rows that came while the page is open, above those that it has. */
const ROWS_MAX = 300;
/** A page that is stale is read anew after so long: many changes come together. */
const STALE_MS = 1500;

export interface BrowseProps {
  readonly live: Live;
  /** Only kinds of this group; '' for all. */
  readonly group: string;
}

interface State {
  readonly kinds: readonly ResourceKind[];
  readonly table: TableRows | null;
  readonly trouble: string;
  readonly isBusy: boolean;
  /** What the inputs hold, and what was asked for with them. */
  readonly namespace: string;
  readonly labels: string;
  readonly fields: string;
  readonly kindFilter: string;
  /** Where earlier pages begin, to go back. */
  readonly pages: readonly string[];
}

const START: State = {
  kinds: [],
  table: null,
  trouble: '',
  isBusy: false,
  namespace: '',
  labels: '',
  fields: '',
  kindFilter: '',
  pages: [],
};

class Browse extends Component<BrowseProps, State> {
  override state: State = START;
  #shown = '';
  #staleTimer: ReturnType<typeof afterMs> | null = null;

  override componentDidMount(): void {
    this.props.live.onTable = (change) => this.#onTable(change);
    unawaited(this.#readKinds());
    this.#follow();
  }

  override componentDidUpdate(): void {
    this.#follow();
  }

  override componentWillUnmount(): void {
    this.props.live.onTable = () => {};
    if (this.#staleTimer !== null) clearTimeout(this.#staleTimer);
  }

  /** The address says which collection is shown. */
  get #path(): string {
    const asked = this.props.live.place.query.get('path');
    if (asked !== null) return asked;
    const [first] = this.#kinds();
    if (this.props.group === '') return '/api/v1/pods';
    return first === undefined ? '' : pathOf(first);
  }

  #kinds(): readonly ResourceKind[] {
    const { kinds, kindFilter } = this.state;
    const wanted = kindFilter.toLowerCase();
    return kinds.filter(
      ({ group, resource, kind }) =>
        (this.props.group === '' || group === this.props.group) &&
        `${resource}.${group} ${kind.toLowerCase()}`.includes(wanted),
    );
  }

  #follow(): void {
    const { query } = this.props.live.place;
    const asked = [this.#path, query.get('namespace'), query.get('labels'), query.get('fields')];
    const key = JSON.stringify(asked);
    if (key === this.#shown || this.#path === '' || this.props.live.hello === null) return;
    this.#shown = key;
    this.setState({
      namespace: query.get('namespace') ?? '',
      labels: query.get('labels') ?? '',
      fields: query.get('fields') ?? '',
      pages: [],
      table: null,
    });
    unawaited(this.#read(''));
  }

  async #readKinds(): Promise<void> {
    try {
      this.setState({ kinds: await askJson<readonly ResourceKind[]>('api/kinds') });
    } catch (error) {
      this.setState({ trouble: (error as Error).message });
    }
  }

  async #read(next: string): Promise<void> {
    const { hello, place } = this.props.live;
    if (hello === null) return;
    const { query } = place;
    const path = collectionOf(this.#path, query.get('namespace') ?? '');
    this.setState({ isBusy: true });
    try {
      const body = {
        path,
        next,
        limit: PAGE_ROWS,
        labelSelector: query.get('labels') ?? '',
        fieldSelector: query.get('fields') ?? '',
      };
      const table = await askJson<TableRows>(`api/table?session=${hello.session}`, 'POST', body);
      this.setState({ table, trouble: '', isBusy: false });
    } catch (error) {
      this.setState({ trouble: (error as Error).message, isBusy: false });
    }
  }

  #onTable(change: TableChange | null): void {
    if (change === null) {
      this.#staleTimer ??= afterMs(STALE_MS, () => {
        this.#staleTimer = null;
        unawaited(this.#read(this.state.pages.at(-1) ?? ''));
      });
      return;
    }
    const { table, pages } = this.state;
    if (table === null || table.path !== change.path) return;
    const changed = new Map(change.changed.map((row) => [row.uid, row]));
    const removed = new Set(change.removed);
    const kept = table.rows.filter(({ uid }) => !removed.has(uid));
    const rows = kept.map((row) => changed.get(row.uid) ?? row);
    for (const { uid } of rows) changed.delete(uid);
    // a new object has its place somewhere in the list: on a page that is the whole list, on top
    const isWhole = table.next === '' && pages.length === 0;
    const all = isWhole ? [...changed.values(), ...rows] : rows;
    this.setState({ table: { ...table, rows: all.slice(0, ROWS_MAX) } });
  }

  render(): VNode {
    const { live } = this.props;
    const name = live.place.query.get('name');
    const namespace = live.place.query.get('of') ?? '';
    const object = name === null ? null : objectPath(this.#path, namespace, name);
    return div(
      { class: object === null ? 'view browse' : 'view browse open' },
      this.#kindList(),
      card(this.#title(), { class: 'list', aside: this.#pager() }, this.#filters(), this.#table()),
      object === null
        ? null
        : objectPanel({
            path: object,
            onClose: () => this.#go({ name: null, of: null }),
            onNode: (node) => live.go('browse', { path: '/api/v1/nodes', name: node }),
          }),
    );
  }

  #title(): string {
    const words = this.#path.split('/');
    const resource = words.at(-1) ?? '';
    const group = words[1] === 'apis' ? `.${words[2]}` : '';
    return `${resource}${group}`;
  }

  /** Goes where the address with these changes leads. */
  #go(changes: Readonly<Record<string, string | null>>): void {
    const { live } = this.props;
    const query = new URLSearchParams(live.place.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') query.delete(name);
      else query.set(name, value);
    }
    if (!query.has('path')) query.set('path', this.#path);
    live.go(live.place.view, Object.fromEntries(query));
  }

  #kindList(): VNode {
    const items = this.#kinds().map((kind) => {
      const path = pathOf(kind);
      return tag(
        'li',
        { key: path },
        button(
          {
            class: path === this.#path ? 'link on' : 'link',
            'aria-current': path === this.#path,
            onClick: () => this.props.live.go(this.props.live.place.view, { path }),
          },
          kind.resource,
          span({ class: 'faint' }, kind.group === '' ? '' : ` ${kind.group}`),
        ),
      );
    });
    return card(
      'Kinds',
      { class: 'kinds' },
      tag('input', {
        type: 'search',
        class: 'search',
        placeholder: 'Find a kind',
        'aria-label': 'Find a kind',
        value: this.state.kindFilter,
        onInput: (event: InputEvent) => this.setState({ kindFilter: valueOf(event) }),
      }),
      tag('ul', null, ...items),
    );
  }

  #filters(): VNode {
    const { namespace, labels, fields } = this.state;
    const submit = (event: Event): void => {
      event.preventDefault();
      this.#go({ namespace, labels, fields, name: null, of: null });
    };
    const input = (label: string, value: string, set: (value: string) => void): VNode =>
      tag(
        'label',
        null,
        label,
        tag('input', { value, onInput: (event: InputEvent) => set(valueOf(event)) }),
      );
    const kind = this.state.kinds.find((one) => pathOf(one) === this.#path);
    return tag(
      'form',
      { class: 'fields', onSubmit: submit },
      kind?.isNamespaced === false
        ? null
        : input('Namespace', namespace, (value) => this.setState({ namespace: value })),
      input('Labels', labels, (value) => this.setState({ labels: value })),
      input('Fields', fields, (value) => this.setState({ fields: value })),
      tag('button', { type: 'submit' }, 'Show'),
    );
  }

  #pager(): VNode {
    const { table, pages, isBusy } = this.state;
    const next = table?.next ?? '';
    const more = table?.more ?? 0;
    const turn = (to: readonly string[]): void => {
      this.setState({ pages: to });
      unawaited(this.#read(to.at(-1) ?? ''));
    };
    return div(
      { class: 'pager' },
      span({ class: 'faint' }, more > 0 ? `${more.toLocaleString('en-US')} more` : ''),
      button(
        {
          class: 'quiet',
          disabled: pages.length === 0 || isBusy,
          onClick: () => turn(pages.slice(0, -1)),
        },
        'Back',
      ),
      button(
        { class: 'quiet', disabled: next === '' || isBusy, onClick: () => turn([...pages, next]) },
        'Next',
      ),
    );
  }

  #table(): VNode {
    const { table, trouble, isBusy } = this.state;
    if (trouble !== '') return div({ class: 'trouble', role: 'alert' }, trouble);
    if (table === null) return div({ class: 'none' }, isBusy ? 'Reading…' : 'Choose a kind.');
    if (table.rows.length === 0) return div({ class: 'none' }, 'There is none.');
    const isNamespaced = table.rows.some(({ namespace }) => namespace !== '');
    const columns = table.columns.map((column, index) => ({ ...column, index }));
    const wanted = columns.filter(({ isWide }) => !isWide);
    const heads = wanted.map(({ name, index }) => tag('th', { scope: 'col', key: index }, name));
    const rows = table.rows.map((row) => this.#row(row, isNamespaced, wanted));
    return div(
      { class: 'scroll' },
      tag(
        'table',
        { class: 'objects' },
        tag(
          'thead',
          null,
          tag('tr', null, isNamespaced ? tag('th', { scope: 'col' }, 'Namespace') : null, ...heads),
        ),
        tag('tbody', null, ...rows),
      ),
    );
  }

  #row(
    row: TableRow,
    isNamespaced: boolean,
    columns: readonly { readonly index: number }[],
  ): VNode {
    const open = (): void => this.#go({ name: row.name, of: row.namespace });
    const isOpen = this.props.live.place.query.get('name') === row.name;
    const cells = columns.map(({ index }, at) => {
      const text = String(row.cells[index] ?? '');
      return tag('td', null, at === 0 ? button({ class: 'link', onClick: open }, text) : text);
    });
    return tag(
      'tr',
      { key: row.uid, class: isOpen ? 'on' : '' },
      isNamespaced ? tag('td', { class: 'faint' }, row.namespace) : null,
      ...cells,
    );
  }
}

function valueOf(event: Event): string {
  return (event.target as HTMLInputElement).value;
}

function pathOf({ group, version, resource }: ResourceKind): string {
  return group === '' ? `/api/${version}/${resource}` : `/apis/${group}/${version}/${resource}`;
}

/** A collection within a namespace, or in all. */
function collectionOf(path: string, namespace: string): string {
  if (namespace === '') return path;
  const cut = path.lastIndexOf('/');
  return `${path.slice(0, cut)}/namespaces/${encodeURIComponent(namespace)}${path.slice(cut)}`;
}

function objectPath(path: string, namespace: string, name: string): string {
  return `${collectionOf(path, namespace)}/${encodeURIComponent(name)}`;
}

export function browse(props: BrowseProps): VNode {
  return part(Browse, props, `browse ${props.group}`);
}

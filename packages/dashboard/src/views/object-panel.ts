// shell: a question of the browser
/** One object as YAML: read, changed by server-side apply, deleted. */
import { unawaited } from '@megaplane/base/deferred';
import { Component } from 'preact';
import type { VNode } from 'preact';
import { askJson } from '../live/requests.ts';
import type { ObjectText } from '../model/protocol.ts';
import { button, card, div, part, span, tag } from '../parts/element.ts';

export interface PanelProps {
  readonly path: string;
  readonly onClose: () => void;
  readonly onNode: (name: string) => void;
}

interface State {
  readonly path: string;
  readonly object: ObjectText | null;
  /** The text that is being edited; null while it is only read. */
  readonly draft: string | null;
  readonly isForced: boolean;
  readonly told: string;
  readonly isBad: boolean;
}

const START: State = {
  path: '',
  object: null,
  draft: null,
  isForced: false,
  told: '',
  isBad: false,
};

class ObjectPanel extends Component<PanelProps, State> {
  override state: State = START;

  override componentDidMount(): void {
    unawaited(this.#read());
  }

  override componentDidUpdate(): void {
    if (this.state.path !== this.props.path) unawaited(this.#read());
  }

  get #asked(): string {
    return `api/object?path=${encodeURIComponent(this.props.path)}`;
  }

  render(): VNode {
    const { object, draft, told, isBad } = this.state;
    const name = decodeURIComponent(this.props.path.split('/').at(-1) ?? '');
    const close = button(
      { class: 'quiet', onClick: this.props.onClose, 'aria-label': 'Close' },
      'Close',
    );
    const status =
      told === '' ? null : div({ class: isBad ? 'trouble' : 'done', role: 'status' }, told);
    if (object === null) return card(name, { class: 'object', aside: close }, status);
    const text =
      draft === null
        ? tag('pre', { class: 'yaml', tabIndex: 0 }, object.text)
        : tag('textarea', {
            class: 'yaml',
            spellcheck: false,
            'aria-label': 'YAML of the object',
            value: draft,
            onInput: (event: InputEvent) =>
              this.setState({ draft: (event.target as HTMLTextAreaElement).value }),
          });
    return card(
      name,
      { class: 'object', aside: close },
      div({ class: 'fields' }, ...this.#actions(object, draft)),
      status,
      text,
      object.managedFields === ''
        ? null
        : tag(
            'details',
            null,
            tag('summary', null, 'Managed fields'),
            tag('pre', { class: 'yaml' }, object.managedFields),
          ),
    );
  }

  #actions(object: ObjectText, draft: string | null): (VNode | null)[] {
    const node = /^ {2}nodeName: (\S+)$/m.exec(object.text)?.[1];
    if (draft !== null) {
      const force = (event: Event): void =>
        this.setState({ isForced: (event.target as HTMLInputElement).checked });
      return [
        button({ onClick: () => unawaited(this.#apply(draft)) }, 'Apply'),
        button(
          { class: 'quiet', onClick: () => this.setState({ draft: null, told: '' }) },
          'Cancel',
        ),
        tag(
          'label',
          { class: 'check' },
          tag('input', { type: 'checkbox', checked: this.state.isForced, onChange: force }),
          'take fields from others',
        ),
      ];
    }
    return [
      object.mayChange
        ? button({ onClick: () => this.setState({ draft: object.text, told: '' }) }, 'Edit')
        : null,
      object.mayDelete
        ? button({ class: 'danger', onClick: () => unawaited(this.#remove()) }, 'Delete…')
        : null,
      node === undefined
        ? null
        : button({ class: 'quiet', onClick: () => this.props.onNode(node) }, `Node ${node}`),
      object.mayChange || object.mayDelete
        ? null
        : span({ class: 'faint' }, 'You may read it, and not change it.'),
    ];
  }

  async #read(): Promise<void> {
    const { path } = this.props;
    this.setState({ ...START, path });
    try {
      const object = await askJson<ObjectText>(this.#asked);
      if (this.props.path === path) this.setState({ object });
    } catch (error) {
      this.#tell((error as Error).message, true);
    }
  }

  async #apply(text: string): Promise<void> {
    try {
      await askJson(this.#asked, 'POST', { text, isForced: this.state.isForced });
      await this.#read();
      this.#tell('Applied.', false);
    } catch (error) {
      this.#tell((error as Error).message, true);
    }
  }

  async #remove(): Promise<void> {
    if (!confirm(`Delete ${this.props.path}?`)) return;
    try {
      await askJson(this.#asked, 'DELETE');
      this.props.onClose();
    } catch (error) {
      this.#tell((error as Error).message, true);
    }
  }

  #tell(told: string, isBad: boolean): void {
    this.setState({ told, isBad });
  }
}

export function objectPanel(props: PanelProps): VNode {
  return part(ObjectPanel, props);
}

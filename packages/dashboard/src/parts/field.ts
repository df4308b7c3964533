// shell: a canvas, the pointer and the keyboard
/** The nodes as a field of pixels, however many they are. */
import { afterMs, guarded, unawaited } from '@megaplane/base/deferred';
import { Component, createRef } from 'preact';
import type { VNode } from 'preact';
import { FIELD_WAYS } from '../model/protocol.ts';
import type { FieldWay } from '../model/protocol.ts';
import { ask, askJson } from '../live/requests.ts';
import { button, card, div, part, span, tag } from './element.ts';
import { countValues, cssColour, paint, paletteOf, placeAt, shapeOf } from './pixels.ts';
import type { GridShape } from './pixels.ts';

export interface FieldProps {
  /** Whether a simulator tells more than readiness. */
  readonly isRich: boolean;
  readonly isLive: boolean;
  readonly onNode: (name: string) => void;
}

const EVERY_MS = 2000;
/** Who is asked for a name when the pointer rests on a node. */
const REST_MS = 120;
/** Cells of so many device pixels have a line between them. */
const GAP_FROM = 5;
const TITLES: Readonly<Record<FieldWay, string>> = {
  ready: 'Readiness',
  lease: 'Lateness of leases',
  pods: 'Pods',
  zone: 'Zone',
};

interface State {
  readonly way: FieldWay;
  readonly hint: string;
  readonly count: number;
  readonly counts: Uint32Array;
}

class Field extends Component<FieldProps, State> {
  override state: State = { way: 'ready', hint: '', count: 0, counts: new Uint32Array(256) };
  readonly #canvas = createRef<HTMLCanvasElement>();
  #values: Uint8Array = new Uint8Array(0);
  #shape: GridShape = { columns: 1, rows: 1 };
  #timer: ReturnType<typeof afterMs> | null = null;
  #rest: ReturnType<typeof afterMs> | null = null;
  #observer: ResizeObserver | null = null;
  #place = -1;
  #isGone = false;

  override componentDidMount(): void {
    const canvas = this.#canvas.current;
    if (canvas === null) return;
    this.#observer = new ResizeObserver(guarded(() => this.#paint()));
    this.#observer.observe(canvas);
    unawaited(this.#load());
  }

  override componentWillUnmount(): void {
    this.#isGone = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#rest !== null) clearTimeout(this.#rest);
    this.#observer?.disconnect();
  }

  render(): VNode {
    const { way, hint, count } = this.state;
    const ways = this.props.isRich ? FIELD_WAYS : (['ready', 'zone'] as const);
    const choices = ways.map((one) =>
      button(
        {
          key: one,
          class: one === way ? 'choice on' : 'choice',
          'aria-pressed': one === way,
          onClick: () => this.#choose(one),
        },
        TITLES[one],
      ),
    );
    const label = `${count.toLocaleString('en-US')} nodes by ${TITLES[way].toLowerCase()}`;
    return card(
      'Nodes',
      { class: 'field', aside: div({ class: 'choices', role: 'group' }, ...choices) },
      tag('canvas', {
        ref: this.#canvas,
        tabIndex: 0,
        role: 'img',
        'aria-label': `${label}. Arrow keys move, Enter opens the node.`,
        onPointerMove: (event: PointerEvent) => this.#point(event),
        onPointerLeave: () => this.#leave(),
        onClick: () => unawaited(this.#open()),
        onKeyDown: (event: KeyboardEvent) => this.#press(event),
      }),
      div(
        { class: 'under' },
        div({ class: 'legend' }, ...this.#legend()),
        div({ class: 'hint', 'aria-live': 'polite' }, hint || label),
      ),
    );
  }

  #legend(): VNode[] {
    const { way, counts } = this.state;
    const palette = paletteOf(way);
    const key = (value: number, text: string): VNode =>
      span(
        { class: 'key', key: text },
        tag('i', { style: { background: cssColour(palette[value] ?? 0) } }),
        text,
      );
    const number = (value: number): string => (counts[value] ?? 0).toLocaleString('en-US');
    if (way === 'ready') return [key(1, `ready ${number(1)}`), key(2, `not ready ${number(2)}`)];
    if (way === 'lease') {
      const late = counts.reduce(
        (sum, one, value) => sum + (value > 100 && value < 255 ? one : 0),
        0,
      );
      return [
        key(1, 'in time'),
        key(11, '1 s late'),
        key(51, '5 s'),
        key(101, `10 s and more: ${late.toLocaleString('en-US')}`),
      ];
    }
    if (way === 'pods') return [key(1, 'none'), key(2, 'few'), key(56, '55'), key(111, '110')];
    const zones = [1, 2, 3, 4, 5, 6, 7, 8].filter((value) => (counts[value] ?? 0) > 0);
    return zones.map((value) => key(value, `zone ${value}: ${number(value)}`));
  }

  #choose(way: FieldWay): void {
    this.setState({ way });
    if (this.#timer !== null) clearTimeout(this.#timer);
    unawaited(this.#load());
  }

  async #load(): Promise<void> {
    const { way } = this.state;
    try {
      if (!document.hidden && this.props.isLive) {
        const answer = await ask(`api/field?by=${way}`);
        this.#values = new Uint8Array(await answer.arrayBuffer());
        if (this.#isGone) return;
        this.setState({ count: this.#values.length, counts: countValues(this.#values) });
        this.#paint();
      }
    } catch (error) {
      this.setState({ hint: (error as Error).message });
    } finally {
      if (this.#timer !== null) clearTimeout(this.#timer);
      if (!this.#isGone) this.#timer = afterMs(EVERY_MS, () => unawaited(this.#load()));
    }
  }

  #paint(): void {
    const canvas = this.#canvas.current;
    const context = canvas?.getContext('2d');
    if (canvas === null || context === null || context === undefined) return;
    const count = this.#values.length;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height)
      Object.assign(canvas, { width, height });
    const shape = (this.#shape = shapeOf(count, width, height));
    const image = new ImageData(shape.columns, shape.rows);
    paint(this.#values, paletteOf(this.state.way), new Uint32Array(image.data.buffer));
    const whole = new OffscreenCanvas(shape.columns, shape.rows);
    whole.getContext('2d')?.putImageData(image, 0, 0);
    context.clearRect(0, 0, width, height);
    const cell = Math.min(width / shape.columns, height / shape.rows);
    context.imageSmoothingEnabled = cell < 1;
    context.drawImage(whole, 0, 0, width, height);
    if (cell >= GAP_FROM) this.#drawGaps(context, shape, width, height);
  }

  #drawGaps(
    context: CanvasRenderingContext2D,
    { columns, rows }: GridShape,
    width: number,
    height: number,
  ): void {
    const line = Math.max(1, Math.round(Math.min(width / columns, height / rows) / 10));
    for (let column = 1; column < columns; column++) {
      context.clearRect(Math.round((column * width) / columns) - line / 2, 0, line, height);
    }
    for (let row = 1; row < rows; row++) {
      context.clearRect(0, Math.round((row * height) / rows) - line / 2, width, line);
    }
  }

  #point(event: PointerEvent): void {
    const canvas = this.#canvas.current;
    if (canvas === null) return;
    const { clientWidth, clientHeight } = canvas;
    const count = this.#values.length;
    const { offsetX, offsetY } = event;
    this.#restOn(placeAt(this.#shape, count, offsetX, offsetY, clientWidth, clientHeight));
  }

  #restOn(place: number): void {
    if (place === this.#place) return;
    this.#place = place;
    if (this.#rest !== null) clearTimeout(this.#rest);
    if (place < 0) return this.setState({ hint: '' });
    this.#rest = afterMs(REST_MS, () => unawaited(this.#tellName(place)));
  }

  #leave(): void {
    this.#restOn(-1);
  }

  async #nameOf(place: number): Promise<string> {
    const { name } = await askJson<{ readonly name: string }>(`api/node?place=${place}`);
    return name;
  }

  async #tellName(place: number): Promise<void> {
    const name = await this.#nameOf(place);
    if (place !== this.#place || name === '') return;
    this.setState({ hint: `${name}: ${wordOf(this.state.way, this.#values[place] ?? 0)}` });
  }

  async #open(): Promise<void> {
    if (this.#place < 0) return;
    const name = await this.#nameOf(this.#place);
    if (name !== '') this.props.onNode(name);
  }

  #press(event: KeyboardEvent): void {
    const steps = new Map([
      ['ArrowLeft', -1],
      ['ArrowRight', 1],
      ['ArrowUp', -this.#shape.columns],
      ['ArrowDown', this.#shape.columns],
    ]);
    const step = steps.get(event.key);
    if (event.key === 'Enter') unawaited(this.#open());
    if (step === undefined) return;
    event.preventDefault();
    const next = this.#place < 0 ? 0 : this.#place + step;
    if (next >= 0 && next < this.#values.length) this.#restOn(next);
  }
}

function wordOf(way: FieldWay, value: number): string {
  if (way === 'ready') return value === 1 ? 'ready' : 'not ready';
  if (way === 'pods') return `${value - 1} pods`;
  if (way === 'zone') return `zone ${value}`;
  return value === 255 ? 'no lease is planned' : `${((value - 1) / 10).toFixed(1)} s late`;
}

export function field(props: FieldProps): VNode {
  return part(Field, props);
}

// shell: sizes and colours of the document
/** Curves over time since the start. */
import { guarded } from '@megaplane/base/deferred';
import { Component, createRef } from 'preact';
import type { VNode } from 'preact';
import uPlot from 'uplot';
import type { History } from '../model/history.ts';
import type { Unit } from '../model/protocol.ts';
import { card, div, part, span } from './element.ts';
import { short, shown } from './numbers.ts';

export interface Line {
  /** Of the history. */
  readonly name: string;
  readonly label: string;
}

export interface CurveProps {
  readonly title: string;
  readonly unit: Unit;
  readonly lines: readonly Line[];
  readonly history: History;
  /** Changes with the colours of the page. */
  readonly theme: string;
}

const HEIGHT = 150;
/** All curves of the page show the same moment under the pointer. */
const SYNC = 'time';

/** Whether a line has holes, so that its values are to be shown as points, too. */
function hasGaps(
  _plot: uPlot,
  _line: number,
  _from: number,
  _to: number,
  gaps?: readonly (readonly number[])[] | null,
): boolean {
  return (gaps ?? []).length > 0;
}

/** Steps between lines of a scale of bytes. */
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** The time of day, to the second where the lines are that close. */
function clockTime(seconds: number, stepSeconds: number): string {
  const two = (part: number): string => String(part).padStart(2, '0');
  const time = new Date(seconds * 1000);
  const minutes = `${two(time.getHours())}:${two(time.getMinutes())}`;
  return stepSeconds < 60 ? `${minutes}:${two(time.getSeconds())}` : minutes;
}

class Curve extends Component<CurveProps> {
  readonly #place = createRef<HTMLDivElement>();
  #plot: uPlot | null = null;
  #observer: ResizeObserver | null = null;
  #drawn = '';

  override componentDidMount(): void {
    const place = this.#place.current;
    if (place === null) return;
    this.#observer = new ResizeObserver(
      guarded(() => this.#plot?.setSize({ width: place.clientWidth, height: HEIGHT })),
    );
    this.#observer.observe(place);
    this.#draw();
  }

  override componentDidUpdate(): void {
    this.#draw();
  }

  override componentWillUnmount(): void {
    this.#observer?.disconnect();
    this.#plot?.destroy();
  }

  render(): VNode {
    const { title, unit, lines, history } = this.props;
    const legend = lines.map(({ name, label }, index) => {
      const last = history.column(name).at(-1);
      return span(
        { class: `key line-${index}`, key: name },
        label === '' ? '' : `${label} `,
        span({ class: 'now' }, shown(last, unit)),
      );
    });
    const aside = span({ class: 'keys' }, ...legend);
    return card(title, { class: 'curve', aside }, div({ ref: this.#place, class: 'plot' }));
  }

  #draw(): void {
    const { history, lines, theme } = this.props;
    const place = this.#place.current;
    if (place === null) return;
    const data = [history.timesSeconds(), ...lines.map(({ name }) => history.column(name))];
    const key = `${theme} ${lines.map(({ name }) => name).join(' ')}`;
    if (this.#plot === null || key !== this.#drawn) {
      this.#plot?.destroy();
      const width = Math.max(place.clientWidth, 100);
      this.#plot = new uPlot(this.#options(place, width), data as uPlot.AlignedData, place);
      this.#drawn = key;
    } else this.#plot.setData(data as uPlot.AlignedData);
  }

  #options(place: HTMLElement, width: number): uPlot.Options {
    const { lines, unit } = this.props;
    const colour = (name: string): string => colourOf(place, name);
    const axis = {
      stroke: colour('--faint'),
      grid: { stroke: colour('--grid'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    };
    return {
      width,
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: SYNC }, y: false, points: { size: 6 } },
      scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        {
          ...axis,
          size: 26,
          space: 78,
          values: (_plot, moments, _axis, _space, step) =>
            moments.map((moment) => clockTime(moment, step)),
        },
        {
          ...axis,
          size: 62,
          space: 34,
          ...(unit === 'bytes' ? { incrs: POWERS_OF_TWO } : {}),
          values: (_plot, values) => values.map((value) => short(value, unit)),
        },
      ],
      series: [
        {},
        ...lines.map(({ label }, index) => ({
          label,
          stroke: colour(`--line-${index}`),
          width: 1.75,
          // a value between two moments of which nothing is known has no line to stand on
          points: { size: 4, show: hasGaps },
          ...(index === 0 ? { fill: colour('--line-fill') } : {}),
        })),
      ],
    };
  }
}

/** A card with curves; `lines` may name figures that are not known yet. */
export function curve(props: CurveProps): VNode {
  return part(Curve, props, props.title);
}

/** A colour of the style sheet as a canvas takes it: of the theme that is on, in numbers. */
function colourOf(place: HTMLElement, name: string): string {
  place.style.color = `var(${name})`;
  const { color } = getComputedStyle(place);
  place.style.color = '';
  return color;
}

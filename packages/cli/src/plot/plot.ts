/**
 * Pictures of figures: curves over time and values by size, as SVG by vega-lite, as PNG by resvg.
 * Both are loaded when the first picture is made: nothing else of the program needs them.
 */
import { writeFileSync } from 'node:fs';
import type { TopLevelSpec } from 'vega-lite';

/** One line: a name and its points, in the order of x. */
export interface PlotLine {
  readonly label: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** A moment or size that a line across the picture marks. */
export interface PlotMark {
  readonly x: number;
  readonly label: string;
}

export interface LinePlot {
  readonly title: string;
  readonly xTitle: string;
  readonly yTitle: string;
  /** How numbers of the vertical scale are written, as d3-format has it: `~s`, `.2~f`. */
  readonly yFormat: string;
  readonly lines: readonly PlotLine[];
  readonly marks?: readonly PlotMark[];
  /** From where to where, where several pictures show the same; else what there is. */
  readonly xDomain?: readonly [number, number];
  /** Sizes that grow by factors. */
  readonly isLogarithmic?: boolean;
}

/** Bars in groups: each has a unit and a scale of its own. */
export interface BarPlot {
  readonly title: string;
  readonly groups: readonly {
    readonly label: string;
    readonly bars: readonly { readonly label: string; readonly value: number }[];
  }[];
}

const SCHEMA = 'https://vega.github.io/schema/vega-lite/v6.json';
const WIDTH = 560;
const HEIGHT = 220;
const COLOURS = ['#0d9488', '#d97706', '#6366f1', '#db2777', '#4d7c0f', '#64748b'];
const CONFIG = {
  background: '#ffffff',
  font: 'system-ui, DejaVu Sans, sans-serif',
  view: { stroke: null },
  axis: {
    labelColor: '#445764',
    titleColor: '#445764',
    gridColor: '#edf1f3',
    domainColor: '#dfe5e8',
    tickColor: '#dfe5e8',
    titleFontWeight: 'normal',
  },
  title: { anchor: 'start', color: '#14212b', fontSize: 13, limit: WIDTH },
  legend: {
    orient: 'top',
    title: null,
    labelColor: '#445764',
    labelLimit: 240,
    symbolType: 'stroke',
  },
  range: { category: COLOURS },
} as const;

/** Lines over time or size as SVG. */
export async function lineSvg(plot: LinePlot): Promise<string> {
  const values = plot.lines.flatMap(({ label, points }) =>
    points.map(([x, y]) => ({ x, y, label })),
  );
  const marks = plot.marks ?? [];
  const domain = plot.xDomain === undefined ? {} : { domain: [...plot.xDomain] };
  const type = plot.isLogarithmic === true ? ('log' as const) : ('linear' as const);
  const spec: TopLevelSpec = {
    $schema: SCHEMA,
    width: WIDTH,
    height: HEIGHT,
    title: plot.title,
    config: CONFIG,
    layer: [
      {
        data: { values },
        mark: { type: 'line', strokeWidth: 1.6, point: plot.isLogarithmic === true },
        encoding: {
          x: {
            field: 'x',
            type: 'quantitative',
            title: plot.xTitle,
            scale: { type, nice: false, ...domain },
            axis: { format: '~s' },
          },
          y: {
            field: 'y',
            type: 'quantitative',
            title: plot.yTitle,
            scale: { zero: true },
            axis: { format: plot.yFormat, tickCount: 5 },
          },
          color: {
            field: 'label',
            type: 'nominal',
            sort: plot.lines.map(({ label }) => label),
            ...(plot.lines.length > 1 ? {} : { legend: null }),
          },
        },
      },
      {
        data: { values: marks.map(({ x, label }) => ({ x, label })) },
        mark: { type: 'rule', color: '#14212b', strokeDash: [3, 3] },
        encoding: { x: { field: 'x', type: 'quantitative' } },
      },
      {
        data: { values: marks.map(({ x, label }) => ({ x, label })) },
        mark: { type: 'text', align: 'left', dx: 4, y: 8, fontSize: 10, color: '#14212b' },
        encoding: { x: { field: 'x', type: 'quantitative' }, text: { field: 'label' } },
      },
    ],
  };
  return svgOf(spec);
}

/** Bars in groups as SVG. */
export async function barSvg(plot: BarPlot): Promise<string> {
  const groups = plot.groups.map(({ label, bars }) => ({
    title: { text: label, fontSize: 11, fontWeight: 'normal' as const },
    data: { values: [...bars] },
    width: WIDTH,
    height: { step: 18 },
    mark: { type: 'bar' as const, color: COLOURS[0] ?? '' },
    encoding: {
      y: { field: 'label', type: 'nominal' as const, sort: null, title: null },
      x: {
        field: 'value',
        type: 'quantitative' as const,
        title: null,
        axis: { format: '~s', tickCount: 6 },
      },
    },
  }));
  return svgOf({ $schema: SCHEMA, title: plot.title, config: CONFIG, vconcat: groups });
}

async function svgOf(spec: TopLevelSpec): Promise<string> {
  const [{ compile }, vega] = await Promise.all([import('vega-lite'), import('vega')]);
  const view = new vega.View(vega.parse(compile(spec).spec), { renderer: 'none' });
  return view.toSVG();
}

/** Writes a picture: SVG as it is, PNG drawn from it at twice its size, by the file's ending. */
export async function writePicture(file: string, svg: string): Promise<void> {
  if (!file.endsWith('.png')) return writeFileSync(file, svg);
  const { Resvg } = await import('@resvg/resvg-js');
  const drawn = new Resvg(svg, {
    fitTo: { mode: 'zoom', value: 2 },
    font: { loadSystemFonts: true, defaultFontFamily: 'DejaVu Sans' },
  });
  writeFileSync(file, drawn.render().asPng());
}

// data plane: one pixel for each node
/**
 * Where a node is in the field, and its colour. The field is a grid with as many cells as nodes,
 * shaped like the room that it has; rows from the left to the right, the first on top.
 */
import { NODE_VALUE_MAX } from '../model/protocol.ts';
import type { FieldWay } from '../model/protocol.ts';

export interface GridShape {
  readonly columns: number;
  readonly rows: number;
}

/** A grid for so many cells in a room of this size, its cells as square as can be. */
export function shapeOf(count: number, width: number, height: number): GridShape {
  if (count === 0) return { columns: 1, rows: 1 };
  const ratio = width / Math.max(1, height);
  const columns = Math.max(1, Math.min(count, Math.ceil(Math.sqrt(count * ratio))));
  return { columns, rows: Math.ceil(count / columns) };
}

/** The cell under a point of the room; -1 where there is none. */
export function placeAt(
  shape: GridShape,
  count: number,
  x: number,
  y: number,
  width: number,
  height: number,
): number {
  if (x < 0 || y < 0 || x >= width || y >= height) return -1;
  const column = Math.floor((x / width) * shape.columns);
  const row = Math.floor((y / height) * shape.rows);
  const place = row * shape.columns + column;
  return place < count ? place : -1;
}

/** Colours as little-endian RGBA, by value. */
export type Palette = Uint32Array;

/** Colours pixels by the values of nodes; cells beyond the last node stay empty. */
export function paint(values: Uint8Array, palette: Palette, pixels: Uint32Array): void {
  const count = Math.min(values.length, pixels.length);
  for (let place = 0; place < count; place++) pixels[place] = palette[values[place]!]!;
  pixels.fill(0, count);
}

/** How many nodes have each value. */
export function countValues(values: Uint8Array): Uint32Array {
  const counts = new Uint32Array(NODE_VALUE_MAX + 1);
  for (let place = 0; place < values.length; place++) counts[values[place]!]!++;
  return counts;
}

function rgb(red: number, green: number, blue: number): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** From calm to hot, even to the eye and to who sees no red or green (after viridis, turned). */
const RAMP: readonly (readonly [number, number, number])[] = [
  [45, 160, 140],
  [60, 185, 115],
  [150, 205, 60],
  [245, 200, 40],
  [250, 140, 30],
  [225, 60, 60],
  [160, 20, 90],
];
const ZONES: readonly (readonly [number, number, number])[] = [
  [20, 150, 140],
  [235, 165, 40],
  [110, 110, 220],
  [215, 90, 130],
  [90, 170, 70],
  [60, 150, 215],
  [175, 120, 80],
  [150, 150, 160],
];

function ramp(part: number): number {
  const at = Math.max(0, Math.min(1, part)) * (RAMP.length - 1);
  const low = Math.floor(at);
  const from = RAMP[low] ?? RAMP[0]!;
  const to = RAMP[Math.min(low + 1, RAMP.length - 1)] ?? from;
  const mix = (index: 0 | 1 | 2): number =>
    Math.round(from[index] + (to[index] - from[index]) * (at - low));
  return rgb(mix(0), mix(1), mix(2));
}

/** Lateness is told up to this, in tenths of a second. */
const LATE_MAX = 100;
/** Pods of a node at which the colour is the hottest. */
const PODS_HOT = 110;

/** The colours of a way to see the field; what is no node is clear. */
export function paletteOf(way: FieldWay): Palette {
  const palette = new Uint32Array(NODE_VALUE_MAX + 1);
  for (let value = 1; value <= NODE_VALUE_MAX; value++) {
    if (way === 'ready') palette[value] = value === 1 ? rgb(45, 160, 140) : rgb(225, 60, 60);
    else if (way === 'lease') palette[value] = ramp(Math.sqrt((value - 1) / LATE_MAX));
    else if (way === 'pods')
      palette[value] = value === 1 ? rgb(95, 110, 125) : ramp(value / PODS_HOT);
    else {
      const [red, green, blue] = ZONES[(value - 1) % ZONES.length]!;
      palette[value] = rgb(red, green, blue);
    }
  }
  return palette;
}

/** A colour as CSS has it. */
export function cssColour(colour: number): string {
  return `rgb(${colour & 255} ${(colour >>> 8) & 255} ${(colour >>> 16) & 255})`;
}

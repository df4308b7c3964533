// data plane: one byte for each node
/**
 * What somebody who looks at all nodes at once sees of each: a byte. Zones get numbers in the order
 * in which they come; pods are counted as they come and go.
 */
import { Uint16Column, Uint8Column } from '@megaplane/base/column';

/** Ways to see the nodes. */
export const NODE_WAYS = ['ready', 'lease', 'pods', 'zone'] as const;
export type NodeWay = (typeof NODE_WAYS)[number];

const NONE = 0;
const IS_READY = 1;
const IS_NOT_READY = 2;
const VALUE_MAX = 255;
/** More zones share the last number. */
const ZONES_MAX = 250;
const LATE_STEP_MS = 100;
const PODS_MAX = 65_535;

const ZONE = Buffer.from('"topology.kubernetes.io/zone":"');
const QUOTE = 0x22;

/** What the values are made from, by row. */
export interface NodeRows {
  readonly idLimit: number;
  has(id: number): boolean;
  isReady(id: number): boolean;
  /** When the lease is renewed next, by the clock of `nowMs`; 0: it is not planned. */
  dueMs(id: number): number;
}

export class NodeValues {
  readonly #zone: Uint8Column = new Uint8Column();
  readonly #pods: Uint16Column = new Uint16Column();
  readonly #zones: Map<string, number> = new Map();

  /** A node has come, with the bytes of its object. */
  onNode(id: number, bytes: Uint8Array, start: number, end: number): void {
    this.#pods.set(id, 0);
    this.#zone.set(id, this.#zoneOf(bytes, start, end));
  }

  /** A pod has come to a node, or gone from it. */
  onPod(id: number, change: 1 | -1): void {
    const pods = this.#pods.get(id) + change;
    if (pods >= 0 && pods <= PODS_MAX) this.#pods.set(id, pods);
  }

  /** The bytes of all rows: 0 where no node is, else as `NodeWay` has it. */
  values(way: NodeWay, rows: NodeRows, nowMs: number): Uint8Array {
    const { idLimit } = rows;
    const values = new Uint8Array(idLimit);
    for (let id = 0; id < idLimit; id++) {
      values[id] = rows.has(id) ? this.#valueOf(way, id, rows, nowMs) : NONE;
    }
    return values;
  }

  #valueOf(way: NodeWay, id: number, rows: NodeRows, nowMs: number): number {
    if (way === 'ready') return rows.isReady(id) ? IS_READY : IS_NOT_READY;
    if (way === 'zone') return this.#zone.get(id);
    if (way === 'pods') return Math.min(VALUE_MAX, this.#pods.get(id) + 1);
    const dueMs = rows.dueMs(id);
    if (dueMs === 0) return VALUE_MAX;
    const late = Math.max(0, Math.floor((nowMs - dueMs) / LATE_STEP_MS));
    return Math.min(VALUE_MAX, late + 1);
  }

  #zoneOf(bytes: Uint8Array, start: number, end: number): number {
    const object = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const found = object.indexOf(ZONE);
    const from = found < 0 ? 0 : found + ZONE.length;
    const to = found < 0 ? 0 : object.indexOf(QUOTE, from);
    const zone = to < from ? '' : object.toString('utf8', from, to);
    const known = this.#zones.get(zone);
    if (known !== undefined) return known;
    const number = Math.min(ZONES_MAX, this.#zones.size) + 1;
    if (this.#zones.size < ZONES_MAX) this.#zones.set(zone, number);
    return number;
  }
}

/** What the page's server and the page say to each other. */
import type { HistoryDump } from './history.ts';

/** The views of the page, in the order of its menu. */
export const VIEWS = [
  'cluster',
  'store',
  'apiserver',
  'scheduler',
  'nodes',
  'fleet',
  'browse',
] as const;
export type View = (typeof VIEWS)[number];

/** The first words of a stream. */
export interface Hello {
  /** Names the stream in requests about it. */
  readonly session: string;
  /** URL of the API server. */
  readonly server: string;
  /** Of the Kubernetes that it serves; '' where it did not say. */
  readonly version: string;
  readonly isReadOnly: boolean;
  /** Whether each node has a pixel: the simulator tells them, or a list of Nodes does. */
  readonly field: 'simulator' | 'nodes';
  /** Whether scenarios of chaos can be started from here. */
  readonly hasChaos: boolean;
  readonly hasFleet: boolean;
  readonly history: HistoryDump;
}

/** One row of a view's table: the cells in the order of the head. */
export type Cells = readonly (string | number | null)[];

/** How the numbers of a column are written. */
export type Unit = 'text' | 'count' | 'rate' | 'seconds' | 'bytes' | 'percent';

export interface Grid {
  readonly title: string;
  /** What stands there when there is no row. */
  readonly none: string;
  readonly head: readonly { readonly name: string; readonly unit: Unit }[];
  readonly rows: readonly Cells[];
}

/** Counts of values up to each bound, of the time since the last sample. */
export interface Bars {
  readonly title: string;
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

/** What a view shows beside curves. */
export interface ViewData {
  readonly view: View;
  readonly grids: readonly Grid[];
  readonly bars: readonly Bars[];
}

/** One look at the cluster. */
export interface Sample {
  readonly timeMs: number;
  readonly values: Readonly<Record<string, number>>;
  /** Which sources did not answer, and why. */
  readonly troubles: readonly string[];
  /** Milliseconds between two looks: longer where looking costs much. */
  readonly everyMs: number;
}

/** An event of the cluster (events.k8s.io), as it is listed. */
export interface EventLine {
  readonly uid: string;
  readonly timeMs: number;
  readonly type: string;
  readonly reason: string;
  readonly object: string;
  readonly note: string;
}

/** Newest first; `isSampled`: there were more than are told. */
export interface EventLines {
  readonly lines: readonly EventLine[];
  readonly isSampled: boolean;
}

/** A table of the server (meta.k8s.io/v1 Table) as it is shown. */
export interface TableRows {
  readonly path: string;
  readonly columns: readonly { readonly name: string; readonly isWide: boolean }[];
  readonly rows: readonly TableRow[];
  /** Continues the list; '' at its end. */
  readonly next: string;
  /** Objects that follow, where the server says so. */
  readonly more: number;
}

export interface TableRow {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly cells: Cells;
}

/** What has changed in the rows that are shown. */
export interface TableChange {
  readonly path: string;
  readonly changed: readonly TableRow[];
  readonly removed: readonly string[];
}

/** A kind of object that the server has. */
export interface ResourceKind {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  readonly verbs: readonly string[];
}

/** An object as it is shown and edited. */
export interface ObjectText {
  /** YAML without managed fields. */
  readonly text: string;
  /** YAML of the managed fields alone. */
  readonly managedFields: string;
  readonly mayChange: boolean;
  readonly mayDelete: boolean;
}

/** The head of a field of nodes, before its bytes: three numbers of 32 bits, little-endian. */
export const FIELD_HEAD_BYTES = 12;

/** Ways to colour the field. */
export const FIELD_WAYS = ['ready', 'lease', 'pods', 'zone'] as const;
export type FieldWay = (typeof FIELD_WAYS)[number];

/**
 * Values of a node in the field. 0: no node is there. `ready`: 1 ready, 2 not ready. `lease`: one
 * more than the tenths of a second since its renewal was due, up to 255. `pods`: one more than its
 * pods, up to 255. `zone`: one more than the number of its zone.
 */
export const NODE_NONE = 0;
export const NODE_READY = 1;
export const NODE_NOT_READY = 2;
export const NODE_VALUE_MAX = 255;

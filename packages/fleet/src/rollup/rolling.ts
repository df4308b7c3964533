/**
 * The roll-up kept up to date from watch events, at a cost by what changed.
 *
 * Pods of one workload ask alike, down to the bytes of their specs: so specs are interned, and a
 * request is a number.
 *
 *     specs    text of a spec -> entry: what it adds to which cell, how many requests have it, how
 *              many of them the cell has counted. A gang that has a namespace: one for each
 *     specOf   row of the informer -> number of its entry + 1
 *     cells    key of a row of the roll-up -> sums, and the row's bytes as they were last sent
 *
 * An event changes a count. `build` carries counts that differ into their cells, writes the bytes
 * of cells that changed, and joins all. The rows equal those of `rollUp` in `full.ts`, in the order
 * of their keys.
 *
 * A spec that is known is found by its text alone: the first `"spec":{` behind metadata is that of
 * the object, as no string of JSON can hold it and metadata has no such field; and the text that
 * follows up to `,"status":` or to the end is a whole spec if it equals one that was parsed.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { toBinary } from '@bufbuild/protobuf';
import { assert } from '@megaplane/base/assert';
import { Uint32Column } from '@megaplane/base/column';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { CapacityNeedSchema } from '../contract/tables/capacity.ts';
import { needOf, rowKey } from './cell.ts';
import type { Row } from './cell.ts';
import { isPendingPhase } from './full.ts';
import type { RollUpOptions } from './full.ts';
import { isRefusal, readShape } from './request.ts';
import type { Refusal, Shape } from './request.ts';
import { needsMessage } from './needs-message.ts';
import { RollingCell } from './rolling-cell.ts';

/** Distinct specs that are not freed yet; requests beyond are refused, and say so. */
export const SPECS_MAX: number = 2 ** 20;

interface Meaning {
  readonly shape: Shape | null;
  readonly refusal: Refusal | null;
  readonly cell: RollingCell | null;
  /** A gang of namespaces: what counts is the entry of each namespace. */
  readonly byNamespace: Map<string, Entry> | null;
}

/** What requests of one spec mean, and how many they are. */
class Entry {
  readonly id: number;
  readonly shape: Shape | null;
  readonly refusal: Refusal | null;
  readonly cell: RollingCell | null;
  readonly byNamespace: Map<string, Entry> | null;
  /** Where it is found, and under which text. */
  readonly home: Map<string, Entry>;
  readonly text: string;
  count = 0;
  counted = 0;
  isDirty = false;

  constructor(id: number, home: Map<string, Entry>, text: string, meaning: Meaning) {
    this.id = id;
    this.shape = meaning.shape;
    this.refusal = meaning.refusal;
    this.cell = meaning.cell;
    this.byNamespace = meaning.byNamespace;
    this.home = home;
    this.text = text;
  }
}

const NOTHING: Meaning = { shape: null, refusal: null, cell: null, byNamespace: null };
const TOO_MANY: Refusal = {
  reason: 'TooManySpecs',
  message: `there are ${SPECS_MAX} different requests already`,
};

export interface RollingOptions extends RollUpOptions {
  readonly clusterId: string;
  /** Namespace of the request of a row: called for gangs, during `upsert`. */
  readonly namespaceOf: (row: number) => string;
}

export class RollingRollUp {
  readonly #options: RollingOptions;
  readonly #specs = new Map<string, Entry>();
  readonly #entries: (Entry | undefined)[] = [];
  readonly #freeIds: number[] = [];
  readonly #specOf = new Uint32Column();
  readonly #cells = new Map<string, RollingCell>();
  readonly #dirty: Entry[] = [];
  readonly #scan = new ObjectScan();
  /** Cells that have requests, by their keys; and those that came or went since. */
  #order: RollingCell[] = [];
  #arrived: RollingCell[] = [];
  #isOrdered = true;
  /** Requests of all rows. */
  size = 0;
  /** Rows whose requests are in the roll-up and were not acknowledged. */
  readonly pending: Set<number> = new Set();
  /** Rows whose requests no roll-up can carry. */
  readonly refused: Map<number, Refusal> = new Map();

  constructor(options: RollingOptions) {
    this.#options = options;
  }

  /** The CapacityRequest of `row` is new or changed; `bytes` is its JSON. */
  upsert(row: number, bytes: Buffer, start: number, end: number): void {
    const text = bytes.latin1Slice(start, end);
    const specStart = text.indexOf(SPEC);
    let isPending = true;
    let entry: Entry | undefined;
    if (specStart > 0) {
      const from = specStart + SPEC.length - 1;
      const status = text.indexOf(STATUS, from);
      const isOdd = status < 0 && text.lastIndexOf(ANY_STATUS, specStart) >= 0;
      const spec = text.slice(from, status < 0 ? text.length - 1 : status);
      entry = isOdd ? undefined : this.#specs.get(spec);
      isPending = status < 0 || isPendingStatus(text, status);
    }
    if (entry === undefined) {
      const { phaseStart, phaseEnd } = this.#scanned(bytes, start, end);
      entry = this.#parsed(bytes);
      isPending = isPendingPhase(bytes.latin1Slice(Math.max(0, phaseStart), Math.max(0, phaseEnd)));
    }
    if (entry.byNamespace !== null)
      entry = this.#ofNamespace(entry, this.#options.namespaceOf(row));
    this.#set(row, entry, isPending);
  }

  #set(row: number, entry: Entry, isPending: boolean): void {
    const before = this.#specOf.get(row);
    if (before !== entry.id + 1) {
      if (before === 0) this.size++;
      else this.#count(this.#entryAt(before - 1), -1);
      this.#specOf.set(row, entry.id + 1);
      this.#count(entry, 1);
    }
    if (entry.refusal !== null) {
      this.refused.set(row, entry.refusal);
      this.pending.delete(row);
      return;
    }
    if (this.refused.size > 0) this.refused.delete(row);
    if (isPending) this.pending.add(row);
    else if (this.pending.size > 0) this.pending.delete(row);
  }

  /** The CapacityRequest of `row` is gone. */
  remove(row: number): void {
    const before = this.#specOf.get(row);
    if (before === 0) return;
    this.size--;
    this.#specOf.set(row, 0);
    this.#count(this.#entryAt(before - 1), -1);
    this.pending.delete(row);
    this.refused.delete(row);
  }

  /** The message `ClusterCapacityNeeds` as it is now. */
  build(timestampUnixNanos: bigint): Buffer {
    const needs: Uint8Array[] = [];
    for (const cell of this.#settle()) {
      cell.bytes ??= toBinary(CapacityNeedSchema, needOf(cell.row()));
      needs.push(cell.bytes);
    }
    return needsMessage(this.#options.clusterId, timestampUnixNanos, needs);
  }

  /** The rows as they are now, by their keys. */
  rows(): Row[] {
    return this.#settle().map((cell) => cell.row());
  }

  /** Carries counts into cells, and frees specs that nobody has any more. */
  #settle(): readonly RollingCell[] {
    for (const entry of this.#dirty) {
      entry.isDirty = false;
      const { cell, shape, count, counted } = entry;
      if (cell !== null && shape !== null && count !== counted) {
        if (cell.isEmpty) this.#arrived.push(cell);
        cell.change(shape, counted, count);
        entry.counted = count;
      }
      if (cell !== null) this.#place(cell);
      if (count === 0) this.#free(entry);
    }
    this.#dirty.length = 0;
    if (!this.#isOrdered || this.#arrived.length > 0) {
      // most stand in order already, which this sort notices
      const cells = [...new Set([...this.#order, ...this.#arrived])];
      this.#order = cells.filter((cell) => !cell.isEmpty);
      this.#order.sort((a, b) => (a.key < b.key ? -1 : 1));
      this.#arrived = [];
      this.#isOrdered = true;
    }
    return this.#order;
  }

  /** A cell is found by its key as long as it has requests. */
  #place(cell: RollingCell): void {
    if (!cell.isEmpty) {
      this.#cells.set(cell.key, cell);
    } else if (this.#cells.get(cell.key) === cell) {
      this.#cells.delete(cell.key);
      this.#isOrdered = false;
    }
  }

  #free(entry: Entry): void {
    if (entry.byNamespace !== null && entry.byNamespace.size > 0) return;
    entry.home.delete(entry.text);
    this.#entries[entry.id] = undefined;
    this.#freeIds.push(entry.id);
  }

  #count(entry: Entry, change: number): void {
    entry.count += change;
    if (entry.isDirty) return;
    entry.isDirty = true;
    this.#dirty.push(entry);
  }

  #entryAt(id: number): Entry {
    const entry = this.#entries[id];
    if (entry === undefined) throw new Error('a row has a spec that was freed');
    return entry;
  }

  #scanned(bytes: Buffer, start: number, end: number): ObjectScan {
    this.#scan.scan(bytes, start, end);
    return this.#scan;
  }

  /** The entry of the object that was just scanned. */
  #parsed(bytes: Buffer): Entry {
    const { specStart, specEnd } = this.#scan;
    const isThere = specStart >= 0 && specEnd >= 0;
    const text = isThere ? bytes.latin1Slice(specStart, specEnd) : '';
    const found = this.#specs.get(text);
    if (found !== undefined) return found;
    const spec = isThere ? specAt(bytes, specStart, specEnd) : undefined;
    return this.#make(this.#specs, text, this.#meaning(spec, ''));
  }

  #ofNamespace(gang: Entry, namespace: string): Entry {
    const home = gang.byNamespace;
    assert(home !== null, 'a gang has namespaces');
    const found = home.get(namespace);
    if (found !== undefined) return found;
    this.#count(gang, 0);
    const spec = parseNested(Buffer.from(gang.text, 'latin1').toString()) as JsonValue;
    return this.#make(home, namespace, this.#meaning(spec, namespace));
  }

  #make(home: Map<string, Entry>, text: string, meaning: Meaning): Entry {
    const id = this.#freeIds.pop() ?? this.#entries.length;
    const entry = new Entry(id, home, text, meaning);
    this.#entries[id] = entry;
    home.set(text, entry);
    return entry;
  }

  #meaning(spec: JsonValue | undefined, namespace: string): Meaning {
    const isFull = this.#entries.length - this.#freeIds.length >= SPECS_MAX;
    if (isFull) return { ...NOTHING, refusal: TOO_MANY };
    const shape = readShape(spec, { groupNamespace: namespace });
    if (isRefusal(shape)) return { ...NOTHING, refusal: shape };
    if (this.#options.groupsByNamespace && shape.group !== '' && namespace === '') {
      return { ...NOTHING, byNamespace: new Map() };
    }
    const key = rowKey(shape);
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = new RollingCell(key, shape);
      this.#cells.set(key, cell);
    }
    return { ...NOTHING, shape, cell };
  }
}

const SPEC = ',"spec":{';
const STATUS = ',"status":{';
/** Before the spec: some order that our servers do not write. */
const ANY_STATUS = '"status":{';
const PHASE = '"phase":"';
const PENDING = 'Pending"';

function isPendingStatus(text: string, status: number): boolean {
  const at = text.indexOf(PHASE, status);
  if (at < 0) return true;
  const from = at + PHASE.length;
  return text.startsWith(PENDING, from) || text.startsWith('"', from);
}

/** The spec as JSON; what the server sent and is none counts as absent. */
function specAt(bytes: Buffer, start: number, end: number): JsonValue | undefined {
  try {
    return parseNested(bytes.toString('utf8', start, end)) as JsonValue;
  } catch {
    return undefined;
  }
}

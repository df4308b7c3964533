// data plane
/**
 * Selectors compiled for stored bytes: whether an object is in a list or a watch is decided by
 * scanning, and only fields that no scanner knows cost a parse.
 */
import {
  fieldValue,
  pinnedField,
  type FieldRequirement,
  type FieldSelector,
} from '@megaplane/machinery/fieldselectors';
import { decodeStoredValue } from '@megaplane/machinery/stored-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { matchesLabels, type LabelSelector } from '@megaplane/machinery/selectors';
import {
  LabelProgram,
  LabelsRange,
  matchesLabelBytes,
  type TextRange,
} from '@megaplane/machinery/selectors-bytes';
import type { ShardHash } from '@megaplane/machinery/sharding/hash';
import { ObjectHash } from '@megaplane/machinery/sharding/object-hash';
import {
  selectsHash,
  type ShardField,
  type ShardSelector,
} from '@megaplane/machinery/sharding/selector';
import type { Row } from '../storage/storage.ts';

const SLASH = 0x2f;
const BRACE_OPEN = 0x7b;

const NAME = 0;
const NAMESPACE = 1;
const NODE_NAME = 2;
const PHASE = 3;
const SCHEDULER_NAME = 4;
const PARSED = 5;

/** How each selectable field is found; all others are read from the parsed object. */
const FIELD_WAYS: ReadonlyMap<string, number> = new Map([
  ['metadata.name', NAME],
  ['metadata.namespace', NAMESPACE],
  ['spec.nodeName', NODE_NAME],
  ['status.phase', PHASE],
  ['spec.schedulerName', SCHEDULER_NAME],
]);

/**
 * The two objects that were scanned last. One event is looked at by many watches, each of which
 * asks about its new state and then about the one before.
 */
const scans = [new ObjectScan(), new ObjectScan()] as const;
const scannedBytes: (Buffer | null)[] = [null, null];
const scannedStart = new Float64Array(2);
/** Values that were packed lie at places that are used again, their keys do not. */
const scannedKeyStart = new Float64Array(2);
const scannedRevision = new Float64Array(2);
let nextScan = 0;

/** The scan of the object in `row`; good until two other objects were scanned. */
function scanOf(row: Row): ObjectScan {
  for (let index = 0; index < 2; index++) {
    if (
      scannedRevision[index] === row.modRevision &&
      scannedStart[index] === row.start &&
      scannedKeyStart[index] === row.keyStart &&
      scannedBytes[index] === row.bytes
    ) {
      return scans[index]!;
    }
  }
  const index = nextScan;
  nextScan = 1 - nextScan;
  scannedBytes[index] = row.bytes;
  scannedStart[index] = row.start;
  scannedKeyStart[index] = row.keyStart;
  scannedRevision[index] = row.modRevision;
  const scan = scans[index]!;
  scan.scan(row.bytes, row.start, row.end);
  return scan;
}
const labels = new LabelsRange();

/** The row that each hash was computed of last, like the scans above. */
const hashes = { uid: new ObjectHash('uid'), namespace: new ObjectHash('namespace') } as const;
const hashed: Record<ShardField, { bytes: Buffer | null; start: number; revision: number }> = {
  uid: { bytes: null, start: 0, revision: 0 },
  namespace: { bytes: null, start: 0, revision: 0 },
};

/** The hash that shards are cut by, of the object in `row`; good until another is asked for. */
export function shardHashOf(row: Row, field: ShardField): ShardHash {
  const hash = hashes[field];
  const last = hashed[field];
  const { bytes, start, end, modRevision } = row;
  if (last.revision === modRevision && last.start === start && last.bytes === bytes) return hash;
  last.bytes = bytes;
  last.start = start;
  last.revision = modRevision;
  if (bytes[start] === BRACE_OPEN) {
    hash.read(bytes, start, end);
  } else {
    const text = Buffer.from(stringAt(foreignObject(row), 'metadata', field));
    hash.of(text, 0, text.length);
  }
  return hash;
}

/** Which rows a list shows. */
export interface RowTest {
  /** Objects are looked at, not only their keys and revisions. */
  readonly needsValues: boolean;
  matches(row: Row): boolean;
}

/** What has not changed since a revision, and what was not there then. */
export class UnchangedSince implements RowTest {
  readonly needsValues: boolean = false;
  readonly #revision: number;

  constructor(revision: number) {
    this.#revision = revision;
  }

  matches({ modRevision, createRevision }: Row): boolean {
    return modRevision <= this.#revision || createRevision > this.#revision;
  }
}

/** One list's or watch's selectors, for objects of one resource. */
export class Filter implements RowTest {
  /** Nothing is filtered out. */
  readonly isEverything: boolean;
  /** Neither labels nor fields select: what upstream counts remaining items by. */
  readonly isUnselected: boolean;
  /** The part of all hashes that passes, or null. */
  readonly shard: ShardSelector | null;
  /** As they were written, for indexes. */
  readonly labels: LabelSelector;
  /** The only name, namespace or node that can match, or ''. */
  readonly name: string;
  readonly namespace: string;
  /** null where the selector does not pin it; '' pins "no node". */
  readonly nodeName: string | null;
  readonly #labels: LabelProgram | null;
  readonly #fields: readonly FieldRequirement[];
  readonly #values: readonly Buffer[];
  readonly #ways: readonly number[];
  readonly #prefixLength: number;
  readonly #isNamespaced: boolean;

  constructor(
    selector: LabelSelector,
    fields: FieldSelector,
    prefixLength: number,
    isNamespaced: boolean,
    shard: ShardSelector | null = null,
  ) {
    const hasLabels = selector.requirements.length > 0 || selector.nothing === true;
    this.#labels = hasLabels ? new LabelProgram(selector) : null;
    this.#fields = fields.requirements;
    this.#values = fields.requirements.map(({ value }) => Buffer.from(value));
    this.#ways = fields.requirements.map(({ field }) => FIELD_WAYS.get(field) ?? PARSED);
    this.isUnselected = !hasLabels && fields.requirements.length === 0;
    this.isEverything = this.isUnselected && shard === null;
    this.shard = shard;
    this.labels = selector;
    this.name = pinnedField(fields, 'metadata.name') ?? '';
    this.namespace = pinnedField(fields, 'metadata.namespace') ?? '';
    this.nodeName = pinnedField(fields, 'spec.nodeName') ?? null;
    this.#prefixLength = prefixLength;
    this.#isNamespaced = isNamespaced;
  }

  get needsValues(): boolean {
    return !this.isEverything;
  }

  /** True where the object in `row` passes; its key must be set. */
  matches(row: Row): boolean {
    if (this.isEverything) return true;
    const { bytes } = row;
    if (this.shard !== null) {
      if (!this.selectsShard(row)) return false;
      if (this.isUnselected) return true;
    }
    if (bytes[row.start] !== BRACE_OPEN) return this.#matchesForeign(row);
    if (this.#labels !== null) {
      labels.find(bytes, row.start, row.end);
      if (!matchesLabelBytes(this.#labels, bytes, labels.start, labels.end)) return false;
      if (this.#ways.length === 0) return true;
    }
    const scan = scanOf(row);
    for (let index = 0; index < this.#ways.length; index++) {
      const wanted = this.#fields[index]!.isEqual;
      if (this.#equals(row, scan, index) !== wanted) return false;
    }
    return true;
  }

  /** True where the object's hash lies in the shard, if there is one. */
  selectsShard(row: Row): boolean {
    if (this.shard === null) return true;
    const { high, low } = shardHashOf(row, this.shard.field);
    return selectsHash(this.shard, high, low);
  }

  /** Values that another program wrote (protobuf, most likely) are parsed. */
  #matchesForeign(row: Row): boolean {
    if (this.isUnselected) return true;
    const object = foreignObject(row);
    if (!matchesLabels(this.labels, objectAt(object, 'metadata', 'labels'))) return false;
    return this.#fields.every(
      ({ field, isEqual, value }) => (fieldValue(object, field) === value) === isEqual,
    );
  }

  #equals(row: Row, scan: ObjectScan, index: number): boolean {
    const value = this.#values[index]!;
    switch (this.#ways[index] ?? PARSED) {
      case NAME:
        return same(row.key, this.#nameStart(row), row.keyEnd, value);
      case NAMESPACE:
        return this.#isNamespaced
          ? same(row.key, row.keyStart + this.#prefixLength, this.#nameStart(row) - 1, value)
          : value.length === 0;
      case NODE_NAME:
        return same(row.bytes, scan.nodeNameStart, scan.nodeNameEnd, value);
      case PHASE:
        return same(row.bytes, scan.phaseStart, scan.phaseEnd, value);
      case SCHEDULER_NAME:
        return same(row.bytes, scan.schedulerNameStart, scan.schedulerNameEnd, value);
      default:
        return this.#parsedEquals(row, index);
    }
  }

  #parsedEquals(row: Row, index: number): boolean {
    const object = parseJson(row.bytes.toString('utf8', row.start, row.end)) as JsonObject;
    const { field, value } = this.#fields[index]!;
    return fieldValue(object, field) === value;
  }

  #nameStart(row: Row): number {
    const start = row.keyStart + this.#prefixLength;
    if (!this.#isNamespaced) return start;
    let at = start;
    while (at < row.keyEnd && row.key[at] !== SLASH) at++;
    return at + 1;
  }
}

/** An absent field (start below 0) equals the empty value. */
function same(bytes: Buffer, start: number, end: number, value: Buffer): boolean {
  if (start < 0) return value.length === 0;
  if (end - start !== value.length) return false;
  for (let at = 0; at < value.length; at++) {
    if (bytes[start + at] !== value[at]) return false;
  }
  return true;
}

/** A value that another program wrote, parsed; an empty object where it cannot be read. */
export function foreignObject({ bytes, start, end }: Row): JsonObject {
  const read = decodeStoredValue(bytes, start, end);
  return read.ok ? read.object : {};
}

const found: TextRange = { bytes: Buffer.alloc(0), start: 0, end: 0 };

/** spec.nodeName of the object in `row`; '' where there is none. */
export function nodeNameOf(row: Row): string {
  findNodeName(row, found);
  return found.bytes.utf8Slice(found.start, found.end);
}

/** Where it stands; an empty range where there is none. */
export function findNodeName(row: Row, place: TextRange): void {
  const { bytes, start, end } = row;
  place.bytes = bytes;
  place.start = place.end = start;
  if (end === start) return;
  if (bytes[start] !== BRACE_OPEN) {
    fillText(place, stringAt(foreignObject(row), 'spec', 'nodeName'));
    return;
  }
  const { nodeNameStart, nodeNameEnd } = scanOf(row);
  if (nodeNameStart < 0) return;
  place.start = nodeNameStart;
  place.end = nodeNameEnd;
}

/** A text in bytes of its own. */
export function fillText(place: TextRange, text: string): void {
  place.bytes = Buffer.from(text);
  place.start = 0;
  place.end = place.bytes.length;
}

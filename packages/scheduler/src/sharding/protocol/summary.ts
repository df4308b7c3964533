/**
 * What shards say of a pod together: sums, extremes and the best node, never a word about each
 * node. Relays add summaries up, in any order and grouping, and the outcome is the same.
 */
import type { ProtobufReader } from '@megaplane/wire/protobuf';
import type { Verdict } from '../../framework/plugin.ts';
import { chunkOf, readRecord, type RecordWriter } from './record.ts';
import { readVerdict, writeVerdict } from './verdict-codec.ts';

/** How far a shard has come with a try; each step needs what the one before gave. */
export const STAGE = { counted: 0, surveyed: 1, ranked: 2, scored: 3 } as const;

/** The best nodes of some: one of them, drawn by the try's seed, stands for all. */
export interface Best {
  readonly total: number;
  /** Nodes that are as good. */
  readonly nodes: number;
  readonly name: string;
  /** By which it was drawn: the least of all as good ones. */
  readonly mark: number;
}

/** A verdict, and on how many nodes it is. */
export interface Objection {
  readonly verdict: Verdict;
  readonly nodes: number;
}

export interface Summary {
  /** Shards that it is of. */
  readonly shards: number;
  /** Of STAGE: how far the last of them has come. */
  readonly stage: number;
  /** Nodes that were looked at, and those that passed. */
  readonly nodes: number;
  readonly passed: number;
  /** Least name of those that passed; empty: none did. */
  readonly first: string;
  /** Only where nothing passed. */
  readonly objections: readonly Objection[];
  /** The ranges of raw scores are the same for all whose nodes passed. */
  readonly isAgreed: boolean;
  readonly best: Best | null;
}

/** Verdicts that one summary tells apart; the rest is told as the last. */
export const OBJECTIONS_MAX = 4096;

/** `areRangesSame`: those of the raw scores of both. */
export function mergedSummaries(
  one: Summary | null,
  other: Summary | null,
  areRangesSame: boolean,
): Summary | null {
  if (one === null || other === null) return one ?? other;
  const passed = one.passed + other.passed;
  return {
    shards: one.shards + other.shards,
    stage: Math.min(one.stage, other.stage),
    nodes: one.nodes + other.nodes,
    passed,
    first: lesserName(one.first, other.first),
    objections: passed > 0 ? [] : mergedObjections(one.objections, other.objections),
    isAgreed: areRangesSame && one.isAgreed && other.isAgreed,
    best: betterOf(one.best, other.best),
  };
}

function lesserName(one: string, other: string): string {
  if (one === '' || other === '') return one || other;
  return one < other ? one : other;
}

export function betterOf(one: Best | null, other: Best | null): Best | null {
  if (one === null || other === null) return one ?? other;
  if (one.total !== other.total) return one.total > other.total ? one : other;
  const isFirst = one.mark < other.mark || (one.mark === other.mark && one.name < other.name);
  return { ...(isFirst ? one : other), nodes: one.nodes + other.nodes };
}

function mergedObjections(
  one: readonly Objection[],
  other: readonly Objection[],
): readonly Objection[] {
  if (one.length === 0 || other.length === 0) return one.length === 0 ? other : one;
  const all = new Map<string, Objection>();
  for (const objection of [...one, ...other]) {
    const key = verdictKey(objection.verdict);
    const nodes = objection.nodes + (all.get(key)?.nodes ?? 0);
    all.set(key, { verdict: objection.verdict, nodes });
  }
  return [...all.values()].slice(0, OBJECTIONS_MAX);
}

/** Equal for verdicts that say the same. */
export function verdictKey({ plugin, code, reasons }: Verdict): string {
  return JSON.stringify([plugin, code, reasons]);
}

export function writeSummary(record: RecordWriter, summary: Summary): void {
  const { shards, stage, nodes, passed, first, objections, isAgreed, best } = summary;
  record.number(1, shards).number(2, stage).number(3, nodes).number(4, passed);
  if (first !== '') record.text(5, first);
  for (const { verdict, nodes: count } of objections) {
    record.message(6, (inner) => {
      inner.number(1, count).message(2, (deeper) => writeVerdict(deeper, verdict));
    });
  }
  if (isAgreed) record.number(7, 1);
  if (best === null) return;
  record.message(8, (inner) => {
    inner.double(1, best.total).number(2, best.nodes).text(3, best.name).number(4, best.mark);
  });
}

export function readSummary(bytes: Uint8Array): Summary {
  const numbers = [0, 0, 0, 0];
  let first = '';
  let isAgreed = false;
  let best: Best | null = null;
  const objections: Objection[] = [];
  readRecord(bytes, (reader) => {
    const { field } = reader;
    if (field >= 1 && field <= numbers.length) numbers[field - 1] = reader.uint64();
    else if (field === 5) first = reader.text();
    else if (field === 6) objections.push(readObjection(chunkOf(reader)));
    else if (field === 7) isAgreed = reader.uint64() > 0;
    else if (field === 8) best = readBest(chunkOf(reader));
    else return false;
    if (objections.length > OBJECTIONS_MAX) {
      throw new Error(`malformed message: more than ${OBJECTIONS_MAX} objections`);
    }
    return true;
  });
  const [shards = 0, stage = 0, nodes = 0, passed = 0] = numbers;
  return { shards, stage, nodes, passed, first, objections, isAgreed, best };
}

function readObjection(bytes: Uint8Array): Objection {
  let nodes = 0;
  let verdict: Verdict = { plugin: '', code: 'error', reasons: [] };
  readRecord(bytes, (reader: ProtobufReader) => {
    if (reader.field === 1) nodes = reader.uint64();
    else if (reader.field === 2) verdict = readVerdict(chunkOf(reader));
    else return false;
    return true;
  });
  return { verdict, nodes };
}

function readBest(bytes: Uint8Array): Best {
  let total = 0;
  let nodes = 0;
  let name = '';
  let mark = 0;
  readRecord(bytes, (reader) => {
    if (reader.field === 1) total = reader.double();
    else if (reader.field === 2) nodes = reader.uint64();
    else if (reader.field === 3) name = reader.text();
    else if (reader.field === 4) mark = reader.uint64();
    else return false;
    return true;
  });
  return { total, nodes, name, mark };
}

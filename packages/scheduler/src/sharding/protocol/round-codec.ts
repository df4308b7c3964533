/** Rounds and replies as protobuf messages (`sharding.proto`). */
import type { ProtobufReader } from '@megaplane/wire/protobuf';
import type { Range, Tally, Verdict } from '../../framework/plugin.ts';
import { chunkOf, packedOf, readRecord, RecordWriter } from './record.ts';
import { EMPTY_REPLY } from './rounds.ts';
import { readSummary, writeSummary, type Summary } from './summary.ts';
import { readVerdict, writeVerdict } from './verdict-codec.ts';
import type {
  DryRunOutcome,
  NodeTotals,
  PluginFinding,
  PluginTallies,
  Reply,
  Round,
  ShareVerdicts,
} from './rounds.ts';

const KINDS = [
  ...(['prepare', 'filter', 'prescore', 'range', 'totals', 'dryRun'] as const),
  ...(['begin', 'survey', 'rank', 'best', 'sync'] as const),
] as const;

export function encodeRound(round: Round): Buffer {
  const record = new RecordWriter().number(1, KINDS.indexOf(round.kind) + 1);
  switch (round.kind) {
    case 'prepare':
      record.bytes(2, round.pod).text(3, round.profile).number(4, round.nowMs);
      for (const pod of round.nominated) record.bytes(5, pod);
      break;
    case 'begin':
      record.bytes(2, round.pod).text(3, round.profile).number(4, round.nowMs);
      for (const pod of round.nominated) record.bytes(5, pod);
      record.number(14, round.epoch).number(15, round.seed).number(16, round.nodes);
      break;
    case 'survey':
    case 'rank':
      writeTallies(record, round.tallies);
      break;
    case 'best':
      writeRanges(record, 10, round.ranges);
      break;
    case 'sync':
      break;
    case 'filter':
      writeTallies(record, round.tallies);
      if (round.only !== null) record.text(7, round.only);
      break;
    case 'prescore':
      for (const node of round.among ?? []) record.text(8, node);
      record.number(9, round.among === null ? 0 : 1);
      break;
    case 'range':
      writeTallies(record, round.tallies);
      break;
    case 'totals':
      writeRanges(record, 10, round.ranges);
      break;
    case 'dryRun':
      writeTallies(record, round.tallies);
      record.number(12, round.isForAll ? 1 : 0).number(13, round.wanted);
      break;
  }
  return record.done();
}

/** Throws where the message is malformed or of no known kind. */
export function decodeRound(bytes: Uint8Array): Round {
  let kind = 0;
  let pod: Uint8Array = new Uint8Array(0);
  let profile = '';
  let nowMs = 0;
  let only: string | null = null;
  let isAmong = false;
  let isForAll = false;
  let wanted = 0;
  let epoch = 0;
  let seed = 0;
  let nodes = 0;
  const nominated: Uint8Array[] = [];
  const among: string[] = [];
  const tallies = new Map<string, Tally>();
  const ranges = new Map<string, Range>();
  const takers: Readonly<Record<number, (reader: ProtobufReader) => void>> = {
    1: (reader) => void (kind = reader.uint64()),
    2: (reader) => void (pod = chunkOf(reader)),
    3: (reader) => void (profile = reader.text()),
    4: (reader) => void (nowMs = reader.int64()),
    5: (reader) => void nominated.push(chunkOf(reader)),
    6: (reader) => readTally(chunkOf(reader), tallies),
    7: (reader) => void (only = reader.text()),
    8: (reader) => void among.push(reader.text()),
    9: (reader) => void (isAmong = reader.uint64() > 0),
    10: (reader) => readRange(chunkOf(reader), ranges),
    12: (reader) => void (isForAll = reader.uint64() > 0),
    13: (reader) => void (wanted = reader.uint64()),
    14: (reader) => void (epoch = reader.uint64()),
    15: (reader) => void (seed = reader.uint64()),
    16: (reader) => void (nodes = reader.uint64()),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  const known = KINDS[kind - 1];
  switch (known) {
    case 'prepare':
      return { kind: 'prepare', pod, profile, nowMs, nominated };
    case 'begin':
      return { kind: 'begin', pod, profile, nowMs, nominated, epoch, seed, nodes };
    case 'survey':
    case 'rank':
      return { kind: known, tallies };
    case 'best':
      return { kind: 'best', ranges };
    case 'sync':
      return { kind: 'sync' };
    case 'filter':
      return { kind: 'filter', tallies, only };
    case 'prescore':
      return { kind: 'prescore', among: isAmong ? among : null };
    case 'range':
      return { kind: 'range', tallies };
    case 'totals':
      return { kind: 'totals', ranges };
    case 'dryRun':
      return { kind: 'dryRun', tallies, isForAll, wanted };
    case undefined:
    default:
      throw new Error(`malformed message: a round of kind ${kind}`);
  }
}

export function encodeReply(reply: Reply): Buffer {
  const record = new RecordWriter();
  if (reply.trouble !== '') record.text(1, reply.trouble);
  writeTallies(record, reply.tallies);
  for (const verdicts of reply.verdicts) record.message(2, (inner) => writeShare(inner, verdicts));
  writeRanges(record, 10, reply.ranges);
  const { fault } = reply;
  if (fault !== null) record.message(3, (inner) => writeVerdict(inner, fault));
  for (const totals of reply.totals) record.message(7, (inner) => writeTotals(inner, totals));
  for (const outcome of reply.dryRuns) record.message(8, (inner) => writeDryRun(inner, outcome));
  const { summary } = reply;
  if (summary !== null) record.message(9, (inner) => writeSummary(inner, summary));
  writeTallies(record, reply.scoreTallies, 11);
  return record.done();
}

/** Throws where the message is malformed. */
export function decodeReply(bytes: Uint8Array): Reply {
  let { trouble, fault }: Pick<Reply, 'trouble' | 'fault'> = EMPTY_REPLY;
  const tallies = new Map<string, Tally>();
  const ranges = new Map<string, Range>();
  const verdicts: ShareVerdicts[] = [];
  const totals: NodeTotals[] = [];
  const dryRuns: DryRunOutcome[] = [];
  const scoreTallies = new Map<string, Tally>();
  let summary: Summary | null = null;
  const takers: Readonly<Record<number, (reader: ProtobufReader) => void>> = {
    1: (reader) => void (trouble = reader.text()),
    2: (reader) => void verdicts.push(readShare(chunkOf(reader))),
    3: (reader) => void (fault = readVerdict(chunkOf(reader))),
    6: (reader) => readTally(chunkOf(reader), tallies),
    7: (reader) => void totals.push(readTotals(chunkOf(reader))),
    8: (reader) => void dryRuns.push(readDryRun(chunkOf(reader))),
    9: (reader) => void (summary = readSummary(chunkOf(reader))),
    10: (reader) => readRange(chunkOf(reader), ranges),
    11: (reader) => readTally(chunkOf(reader), scoreTallies),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  const sums = { tallies, ranges, summary, scoreTallies };
  return { trouble, fault, verdicts, totals, dryRuns, ...sums };
}

type Takers = Readonly<Record<number, (reader: ProtobufReader) => void>>;

function taken(takers: Takers, reader: ProtobufReader): boolean {
  const take = takers[reader.field];
  take?.(reader);
  return take !== undefined;
}

function writeTallies(record: RecordWriter, tallies: PluginTallies, field = 6): void {
  for (const [plugin, tally] of tallies) {
    record.message(field, (inner) => {
      inner.text(1, plugin);
      for (const [text, amount] of tally) inner.text(2, text).number(3, amount);
    });
  }
}

function readTally(bytes: Uint8Array, tallies: Map<string, Tally>): void {
  let plugin = '';
  let text = '';
  const tally = new Map<string, number>();
  const takers: Takers = {
    1: (reader) => void (plugin = reader.text()),
    2: (reader) => void (text = reader.text()),
    3: (reader) => void tally.set(text, reader.int64()),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  tallies.set(plugin, tally);
}

function writeRanges(
  record: RecordWriter,
  field: number,
  ranges: ReadonlyMap<string, Range>,
): void {
  for (const [plugin, { min, max }] of ranges) {
    record.message(field, (inner) => inner.text(1, plugin).double(2, min).double(3, max));
  }
}

function readRange(bytes: Uint8Array, ranges: Map<string, Range>): void {
  let plugin = '';
  let min = Infinity;
  let max = -Infinity;
  const takers: Takers = {
    1: (reader) => void (plugin = reader.text()),
    2: (reader) => void (min = reader.double()),
    3: (reader) => void (max = reader.double()),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  ranges.set(plugin, { min, max });
}

function writeShare(record: RecordWriter, { member, table, codes, findings }: ShareVerdicts): void {
  record.text(1, member);
  for (const verdict of table) record.message(2, (inner) => writeVerdict(inner, verdict));
  record.packed(3, codes);
  for (const { plugin, node, text } of findings) {
    record.message(4, (inner) => inner.text(1, plugin).text(2, node).text(3, text));
  }
}

function readShare(bytes: Uint8Array): ShareVerdicts {
  let member = '';
  let codes: number[] = [];
  const table: Verdict[] = [];
  const findings: PluginFinding[] = [];
  const takers: Takers = {
    1: (reader) => void (member = reader.text()),
    2: (reader) => void table.push(readVerdict(chunkOf(reader))),
    3: (reader) => void (codes = packedOf(reader)),
    4: (reader) => void findings.push(readFinding(chunkOf(reader))),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  return { member, table, codes, findings };
}

function readFinding(bytes: Uint8Array): PluginFinding {
  const texts = ['', '', ''];
  readRecord(bytes, (reader) => {
    if (reader.field > texts.length) return false;
    texts[reader.field - 1] = reader.text();
    return true;
  });
  const [plugin = '', node = '', text = ''] = texts;
  return { plugin, node, text };
}

function writeTotals(record: RecordWriter, { node, total, plugins }: NodeTotals): void {
  record.text(1, node).double(2, total);
  for (const [plugin, score] of plugins) record.text(3, plugin).double(4, score);
}

function readTotals(bytes: Uint8Array): NodeTotals {
  let node = '';
  let total = 0;
  let plugin = '';
  const plugins = new Map<string, number>();
  const takers: Takers = {
    1: (reader) => void (node = reader.text()),
    2: (reader) => void (total = reader.double()),
    3: (reader) => void (plugin = reader.text()),
    4: (reader) => void plugins.set(plugin, reader.double()),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  return { node, total, plugins };
}

function writeDryRun(record: RecordWriter, outcome: DryRunOutcome): void {
  const { node, victims, violations, refusal } = outcome;
  record.text(1, node);
  for (const victim of victims ?? []) record.text(2, victim);
  record.number(3, violations).number(4, victims === null ? 0 : 1);
  if (refusal !== null) record.message(5, (inner) => writeVerdict(inner, refusal));
}

function readDryRun(bytes: Uint8Array): DryRunOutcome {
  let node = '';
  let violations = 0;
  let hasVictims = false;
  let refusal: Verdict | null = null;
  const victims: string[] = [];
  const takers: Takers = {
    1: (reader) => void (node = reader.text()),
    2: (reader) => void victims.push(reader.text()),
    3: (reader) => void (violations = reader.uint64()),
    4: (reader) => void (hasVictims = reader.uint64() > 0),
    5: (reader) => void (refusal = readVerdict(chunkOf(reader))),
  };
  readRecord(bytes, (reader) => taken(takers, reader));
  return { node, victims: hasVictims ? victims : null, violations, refusal };
}

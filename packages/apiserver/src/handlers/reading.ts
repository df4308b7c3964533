/** GET of one object and LIST, from stored bytes. */
import type { Exchange } from '@megaplane/wire/exchange';
import {
  CONTINUE_EXPIRED_TEXT,
  expired,
  notFound,
  tooLargeResourceVersion,
  unclassified,
} from '@megaplane/machinery/status';
import { AnswerBody, type Pullable } from '../request/answer-body.ts';
import type { Call } from '../request/call.ts';
import { continueAfter, startOfPage } from '../request/options/continue-token.ts';
import type { Encoder, ListMeta } from '../serializer/encoder.ts';
import { UnchangedSince, type Filter, type RowTest } from '../request/filter.ts';
import { badRevision, isUncached, type ListOptions } from '../request/options/list-options.ts';
import { PageSearch, RowStream } from '../serializer/list-stream.ts';
import { JSON_TYPE } from '../request/negotiation.ts';
import { exactRevision, parseRevision } from '../request/query.ts';
import { encoderOf, selectOf } from '../serializer/representation.ts';
import { keyOf, type KeyRange, type Served } from '../storage/served.ts';
import { filterOf } from '../request/options/selection.ts';
import { Sink } from '../sink/sink.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import type { RowSource } from '../storage/row-source.ts';

const row = emptyRow();
const sink = new Sink();

/** Answers GET of one object. */
export function getObject(world: World, call: Call, served: Served): void {
  const text = call.query.text('resourceVersion');
  const revision = parseRevision(text);
  const isFromStorage = isUncached(served);
  if (revision === null) {
    call.fail(badRevision(text, !isFromStorage));
    return;
  }
  world.whenFresh(revision, (reached) => {
    if (!reached) {
      const { appliedRevision } = world.storage;
      call.fail(tooLargeResourceVersion(exactRevision(text), appliedRevision, isFromStorage));
      return;
    }
    sendCurrent(world, call, served, 200);
  });
}

/** Answers with the newest state of the object that the request names. */
export function sendCurrent(world: World, call: Call, served: Served, code: number): void {
  const { namespace, name } = call.info;
  if (!world.storage.get(keyOf(served, namespace, name), row)) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const encoder = encoderOf(call, served, false);
  if (!encoder.ok) {
    call.fail(encoder.status);
    return;
  }
  sink.length = 0;
  encoder.value.object(sink, row, row.modRevision);
  call.sendFrom(code, encoder.value.contentType, sink);
}

/** Upstream's name of the index of pods by node. */
const NODE_INDEX = 'f:spec.nodeName';

/** What is shown, of which revision, and how. */
interface StreamPlan {
  readonly call: Call;
  readonly served: Served;
  readonly range: KeyRange;
  /** Revision of the snapshot that is shown; 0: whatever is newest. */
  readonly revision: number;
  readonly filter: Filter;
  /** Which of the rows are shown: the filter, or what has not changed. */
  readonly test: RowTest;
  readonly encoder: Encoder;
  /** The rows to look at. */
  readonly source: RowSource;
}

/** One list, decided. */
interface ListPlan extends StreamPlan {
  /** See `ListOptions`; 0 too where the answer could not tell that it was followed. */
  readonly unchangedSince: number;
  readonly options: ListOptions;
}

/** Answers LIST. */
export function listObjects(world: World, call: Call, served: Served, options: ListOptions): void {
  const filter = filterOf(served, options);
  if (!filter.ok) {
    call.fail(filter.status);
    return;
  }
  // a token may be of a revision that has not happened yet, too
  const needed = Math.max(options.revision, options.token?.revision ?? 0);
  const asked = options.token?.revision ?? exactRevision(call.query.text('resourceVersion'));
  const isExact = options.token !== null || isExactRead(options);
  const { appliedRevision, isShared } = world.storage;
  // where one store is all there is, nobody knows of a revision before it does
  if (isExact && !isShared && needed > appliedRevision) {
    call.fail(tooLargeResourceVersion(asked, appliedRevision, isUncached(served)));
    return;
  }
  world.whenFresh(needed, (reached) => {
    if (!reached) {
      const current = world.storage.appliedRevision;
      call.fail(tooLargeResourceVersion(asked, current, isUncached(served)));
      return;
    }
    // upstream has the list before it looks at how it is to be shown
    const encoder = encoderOf(call, served, true, (as) => world.keptOf(served, as));
    if (!encoder.ok) {
      call.fail(encoder.status);
      return;
    }
    const range = selectOf(served, call.info, filter.value, options.token !== null);
    const revision = snapshotRevision(world, options);
    const unchangedSince = unchangedSinceOf(world, call, options, filter.value, encoder.value);
    const isWhole = unchangedSince === 0;
    const test = isWhole ? filter.value : new UnchangedSince(unchangedSince);
    const shown = { filter: filter.value, test, unchangedSince };
    const plan = { call, served, range, revision, ...shown, options };
    const send = (source: RowSource): void => {
      if (!call.exchange.closed) sendList(world, { ...plan, encoder: encoder.value, source });
    };
    if (recallRows(world, call, { plan: { ...plan, encoder: encoder.value }, send })) return;
    if (filter.value.isEverything) send(world.storage);
    else whenIndexed(world, served, { filter: filter.value, range, revision }, send);
  });
}

/**
 * True where the revision is one that only others may still have, whom it is then asked of. What
 * they bring is given back when the answer was sent.
 */
function recallRows(
  world: World,
  call: Call,
  { plan, send }: { plan: Omit<ListPlan, 'source'>; send: (source: RowSource) => void },
): boolean {
  const { storage } = world;
  const { range, revision, test, options } = plan;
  const { start, end } = { start: startOfPage(range, options.token), end: range.end };
  if (storage.recall === undefined || revision >= storage.oldestRevision(start, end)) return false;
  storage.recall({ start, end, revision, test, limit: options.limit }, (rows) => {
    if (rows === null) failCompacted({ ...plan, source: storage }, start);
    else if (typeof rows === 'string') call.fail(unclassified(rows));
    else {
      const { onDone } = call;
      call.onDone = () => {
        rows.free();
        onDone?.();
      };
      // looking for the end of a page may take turns, in which the client may go away
      call.exchange.onClose = () => call.done();
      if (call.exchange.closed) call.done();
      else send(rows);
    }
  });
  return true;
}

/**
 * Only lists of whole objects in JSON can tell that they leave something out, and only what has
 * happened can be compared with.
 */
function unchangedSinceOf(
  world: World,
  { media }: Call,
  { unchangedSince }: ListOptions,
  filter: Filter,
  { contentType }: Encoder,
): number {
  const isTelling = media.transform === 'none' && contentType === JSON_TYPE;
  const isKnown = unchangedSince <= world.storage.appliedRevision;
  return isTelling && isKnown && filter.isEverything ? unchangedSince : 0;
}

/** What has not changed is the same at any later revision: the newest needs no history. */
function readRevisionOf({ test, revision }: StreamPlan): number {
  return test instanceof UnchangedSince ? 0 : revision;
}

/** Finds what a list or the beginning of a watch has to look at; see `WatchHub.whenIndexed`. */
export function whenIndexed(
  world: World,
  served: Served,
  list: { readonly filter: Filter; readonly range: KeyRange; readonly revision: number },
  done: (source: RowSource) => void,
): void {
  const { filter, range, revision } = list;
  world.whenPublished(revision, () => {
    world.hubOf(served).whenIndexed(filter, range, revision, world.edge.nowMs(), done);
  });
}

/** The revision that the rules of resourceVersion and limit ask for (upstream's table of reads). */
function snapshotRevision(world: World, options: ListOptions): number {
  const newest = world.storage.appliedRevision;
  if (options.token !== null) return options.token.revision < 0 ? newest : options.token.revision;
  return isExactRead(options) ? options.revision : newest;
}

function isExactRead({ match, limit, revision }: ListOptions): boolean {
  return match === 'Exact' || (match === '' && limit > 0 && revision > 0);
}

function sendList(world: World, plan: ListPlan): void {
  const { options } = plan;
  const start = startOfPage(plan.range, options.token);
  // a list at "any" revision ignores its limit, as upstream's cache does; pages go on as begun
  const isAny = !options.isUnset && options.revision === 0 && options.token === null;
  const isLimitless = isAny && options.match !== 'Exact';
  const limit = isLimitless ? 0 : options.limit;
  const range = { start, end: plan.range.end };
  if (limit > 0) {
    const search = new PageSearch(plan.source, range, readRevisionOf(plan), plan.test, limit);
    searchPage(world, plan, range, search);
  } else if (
    plan.source.total === undefined &&
    plan.revision < world.storage.oldestRevision(range.start, range.end)
  ) {
    failCompacted(plan, range.start);
  } else {
    streamList(world, plan, range, metaOf(world, plan));
  }
}

/** Looks for the end of the page, over as many turns as that takes; then sends the page. */
function searchPage(world: World, plan: ListPlan, range: KeyRange, search: PageSearch): void {
  if (plan.call.exchange.closed) return;
  const page = search.step();
  if (page === null) {
    world.edge.deferPiece(() => searchPage(world, plan, range, search));
    return;
  }
  if (page.outcome === 'compacted') {
    failCompacted(plan, range.start);
    return;
  }
  if (page.lastKey === null) {
    streamList(world, plan, { start: page.start, end: range.end }, metaOf(world, plan));
    return;
  }
  const continueToken = continueAfter(plan.range, page.lastKey, plan.revision);
  const own = { start: page.start, end: page.end };
  const remaining = remainingOf(world, plan, range);
  streamList(world, plan, own, { ...metaOf(world, plan), continueToken, remaining });
}

/** What v1.36 tells: a shard selector does not count as one, and what it skips is not counted. */
function remainingOf(world: World, plan: ListPlan, range: KeyRange): number | null {
  const { filter, options, unchangedSince } = plan;
  if (!filter.isUnselected || unchangedSince > 0) return null;
  const count = plan.source.total ?? world.storage.count(range.start, range.end);
  return Math.max(0, count - options.limit);
}

/** Only lists of whole objects tell which shard they show, as upstream's types have it. */
function metaOf(world: World, plan: ListPlan): ListMeta {
  const { call, filter, range, revision, unchangedSince: since } = plan;
  const isTyped = call.media.transform === 'none' && plan.served.custom === null;
  const shard = isTyped ? (filter.shard?.text ?? '') : '';
  const of = since > 0 ? world.storage.count(range.start, range.end) : 0;
  const unchanged = since > 0 ? { since, of } : null;
  return { revision, continueToken: '', remaining: null, shard, unchanged };
}

/** A list that somebody else went through, at the revision of its metadata. */
export interface PastList {
  readonly range: KeyRange;
  readonly filter: Filter;
  readonly meta: ListMeta;
}

/** Answers with a list of the past; the caller knows that its revision is still kept. */
export function sendListAt(
  world: World,
  call: Call,
  served: Served,
  { range, filter, meta }: PastList,
): void {
  const encoder = encoderOf(call, served, true);
  if (!encoder.ok) {
    call.fail(encoder.status);
    return;
  }
  const { revision } = meta;
  const shown = { range, revision, filter, test: filter, source: world.storage };
  streamList(world, { call, served, encoder: encoder.value, ...shown }, range, meta);
}

function streamList(world: World, plan: StreamPlan, range: KeyRange, meta: ListMeta): void {
  const { call, filter, encoder } = plan;
  const { exchange } = call;
  const body = new AnswerBody(call, encoder.contentType);
  sink.length = 0;
  encoder.openList(sink, meta);
  body.write(sink.bytes, 0, sink.length);
  // a snapshot of the newest state is read at its revision, so that later turns show the same
  const { source, test } = plan;
  const revision = readRevisionOf(plan);
  const rows = (): RowStream => new RowStream(source, range, revision, test, encoder, null);
  const stream = rows();
  const isByNode = source !== world.storage && filter.nodeName !== null;
  const count = (): void => {
    world.lists.count(plan.served.prefix, isByNode ? NODE_INDEX : '', stream.seen, stream.sent);
  };
  const hold = (): void => holdRows(world, call, range, revision);
  const state = { isPlanned: false, isHolding: source.total !== undefined || revision === 0 };
  const sending: Sending = { exchange, body, encoder, rows, stream, count, hold, ...state };
  exchange.onWritable = () => planList(world, sending);
  pumpList(world, sending);
}

/** Keeps what an answer shows, however slowly its client takes it, until it was sent. */
export function holdRows(world: World, call: Call, range: KeyRange, revision: number): void {
  const release = world.storage.hold(range.start, range.end, revision);
  const { onDone } = call;
  call.onDone = () => {
    release();
    onDone?.();
  };
}

/** The list goes on in a later turn. */
function planList(world: World, sending: Sending): void {
  if (sending.isPlanned) return;
  sending.isPlanned = true;
  world.edge.deferPiece(() => {
    sending.isPlanned = false;
    pumpList(world, sending);
  });
}

/** A list on its way. */
interface Sending {
  readonly exchange: Exchange;
  readonly body: AnswerBody;
  readonly encoder: Encoder;
  /** The rows from their beginning, for lists that are read twice. */
  readonly rows: () => RowStream;
  /** Tells that all was sent. */
  readonly count: () => void;
  /** See `holdRows`. */
  readonly hold: () => void;
  stream: Pullable;
  isPlanned: boolean;
  isHolding: boolean;
}

function failCompacted({ call, options, range }: ListPlan, start: Buffer): void {
  if (options.token === null) {
    call.fail(expired());
    return;
  }
  // the next page may go on with the present state, from the key after the last one sent
  const isAfter = start.at(-1) === 0;
  const last = isAfter ? start.subarray(0, -1) : start;
  call.fail(expired(CONTINUE_EXPIRED_TEXT, continueAfter(range, last, -1)));
}

function pumpList(world: World, sending: Sending): void {
  const { exchange, body, encoder, stream } = sending;
  if (exchange.closed) return;
  const pulled = stream.pull(body);
  if (!sending.isHolding && (pulled === 'full' || pulled === 'yield')) {
    sending.isHolding = true;
    sending.hold();
  }
  switch (pulled) {
    case 'full':
      return;
    case 'yield':
      planList(world, sending);
      return;
    case 'compacted':
      // half a list must not look like a whole one
      exchange.reset();
      return;
    case 'end':
      sink.length = 0;
      if (encoder.isMeasured === true && encoder.openMeasured !== undefined) {
        encoder.openMeasured(sink);
        body.write(sink.bytes, 0, sink.length);
        sending.stream = encoder.heldItems?.() ?? sending.rows();
        pumpList(world, sending);
        return;
      }
      sending.count();
      encoder.closeList(sink);
      body.write(sink.bytes, 0, sink.length);
      body.end();
  }
}

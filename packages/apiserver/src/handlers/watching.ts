/** WATCH: from the options of a request to a watch in its hub. */
import {
  failed,
  notAcceptable,
  success,
  tooLargeResourceVersion,
  tooOldResourceVersion,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import type { Encoder } from '../serializer/encoder.ts';
import type { Filter } from '../request/filter.ts';
import type { ListOptions } from '../request/options/list-options.ts';
import { RowStream } from '../serializer/list-stream.ts';
import { contentType, JSON_TYPE, PROTOBUF_TYPE } from '../request/negotiation.ts';
import { exactRevision } from '../request/query.ts';
import { whenIndexed } from './reading.ts';
import { encoderOf, namespaceOf, selectOf } from '../serializer/representation.ts';
import { filterOf } from '../request/options/selection.ts';
import type { Served } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import { isWebSocket, openWebSocket } from '../watchcache/websocket-outlet.ts';
import type { WatchOutlet } from '../watchcache/watcher.ts';
import type { World } from '../lister/world.ts';
import type { RowSource } from '../storage/row-source.ts';

/** A watch without timeoutSeconds ends between this and its double; 0: not by itself. */
let watchSecondsMin = 1800;

/** `--min-request-timeout`, for the process. */
export function applyMinRequestTimeout(seconds: number): void {
  watchSecondsMin = seconds;
}

/** Until a watch ends by itself. */
function watchSeconds(asked: number, below: (bound: number) => number): number {
  if (asked > 0) return asked;
  return watchSecondsMin === 0 ? Infinity : watchSecondsMin + below(watchSecondsMin);
}

/** Watches may also be asked for as a list of metadata: each event is then one object's. */
function checkMedia(call: Call): Result<true> {
  if (call.media.encoding === 'yaml') {
    return failed(notAcceptable([`${JSON_TYPE};stream=watch`, `${PROTOBUF_TYPE};stream=watch`]));
  }
  if (call.media.transform === 'metadataList') {
    call.media = { ...call.media, transform: 'metadata' };
  }
  call.media = { ...call.media, pretty: false };
  return success(true);
}

/** Answers WATCH: the head at once, then what the options ask for until the time is over. */
export function watchObjects(world: World, call: Call, served: Served, options: ListOptions): void {
  const filter = filterOf(served, options);
  if (!filter.ok) {
    call.fail(filter.status);
    return;
  }
  const media = checkMedia(call);
  if (!media.ok) {
    call.fail(media.status);
    return;
  }
  const encoder = encoderOf(call, served, false, null, () => world.edge.nowMs());
  if (!encoder.ok) {
    call.fail(encoder.status);
    return;
  }
  // it is the state to begin with that costs; what comes later is everybody's
  call.isLasting = sendsState(options);
  const outlet = openOutlet(call);
  if (outlet === null) {
    call.done();
    return;
  }
  const plan = { call, served, options, filter: filter.value, encoder: encoder.value, outlet };
  const { revision } = options;
  if (!sendsState(options) || revision <= world.storage.appliedRevision) {
    startWatch(world, plan);
    return;
  }
  world.whenFresh(revision, (reached) => {
    const { appliedRevision } = world.storage;
    const asked = exactRevision(call.query.text('resourceVersion'));
    if (!reached) refuseLate(plan, tooLargeResourceVersion(asked, appliedRevision));
    // in a later turn nobody holds back what is not as durable as promised yet
    else world.whenPublished(appliedRevision, () => startWatch(world, plan));
  });
}

/** A watch whose head was sent. */
interface WatchPlan {
  readonly call: Call;
  readonly served: Served;
  readonly options: ListOptions;
  readonly filter: Filter;
  readonly encoder: Encoder;
  readonly outlet: WatchOutlet;
}

/** Ends a watch by an event that says why, since its head was sent already. */
function refuseLate({ call, outlet, encoder }: WatchPlan, status: Status): void {
  if (!outlet.closed) {
    const sink = new Sink();
    encoder.error(sink, status);
    outlet.write(sink.bytes, 0, sink.length);
    outlet.end();
  }
  call.done();
}

function startWatch(world: World, plan: WatchPlan): void {
  const { call, served, options, filter, encoder, outlet } = plan;
  const { storage, edge } = world;
  const namespace = namespaceOf(served, call.info, filter);
  const { name } = filter;
  const range = selectOf(served, call.info, filter);
  const startsWithState = sendsState(options);
  const now = storage.appliedRevision;
  const revision = startsWithState || options.revision === 0 ? now : options.revision;
  const asked = goSeconds(call.query.text('timeoutSeconds'));
  if (asked < 0) {
    outlet.end();
    call.done();
    return;
  }
  const seconds = watchSeconds(asked, (bound) => edge.below(bound));
  const begin = (source: RowSource | null): void => {
    if (outlet.closed) {
      call.done();
      return;
    }
    const readSince = readSinceOf(world, served);
    if (revision < readSince) {
      refuseLate(plan, tooOldResourceVersion(revision, readSince));
      return;
    }
    const hub = world.hubOf(served);
    const counts = hub.countsOf(call.info.version);
    const initial =
      source === null ? null : new RowStream(source, range, now, filter, encoder, counts);
    const request = {
      exchange: outlet,
      sharesBytes: outlet === call.exchange && call.exchange.connection.protocol === 'h2',
      range,
      namespace,
      name,
      filter,
      encoder: hub.frames.shared(encoder),
      revision,
      marksInitialEnd: options.sendInitialEvents && options.allowWatchBookmarks,
      bookmarks: options.allowWatchBookmarks,
      counts,
      deadlineMs: call.nowMs + seconds * 1000,
      onInitialSent: startsWithState ? (): void => call.done() : null,
    };
    hub.add(request, initial, call.nowMs);
  };
  if (!startsWithState) begin(null);
  else if (filter.isEverything) begin(storage);
  else whenIndexed(world, served, { filter, range, revision: now }, begin);
}

/** Since when the objects of a kind are read as they are now; Infinity where it is gone. */
function readSinceOf({ kinds }: World, { custom }: Served): number {
  if (custom === null) return 0;
  return kinds.byName(custom.kind.facts.name)?.readSince ?? Infinity;
}

/** Sends the head, so that clients know at once that the watch stands. */
function openOutlet(call: Call): WatchOutlet | null {
  if (isWebSocket(call)) return openWebSocket(call, call.media.encoding !== 'protobuf');
  call.code = 200;
  call.exchange.open(200, contentType(call.media, true), call.headers());
  call.exchange.hasten?.();
  return call.exchange;
}

/** What comes of seconds that are turned into Go's nanoseconds, which have 64 bits. */
function goSeconds(text: string): number {
  const nanoseconds = BigInt.asIntN(64, BigInt(text) * 1_000_000_000n);
  return Number(nanoseconds) / 1e9;
}

/** What is asked for; and any other way to write 0, whose end is not marked. */
function sendsState(options: ListOptions): boolean {
  return options.sendInitialEvents || (options.match === '' && options.revision === 0);
}

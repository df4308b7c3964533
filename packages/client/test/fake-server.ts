import type {
  Client,
  ClientMetrics,
  ClientRequest,
  ClientResponse,
  Method,
  SendDone,
  StreamHandle,
  StreamSink,
} from '../src/rest/client.ts';
import { ObjectHash } from '@megaplane/machinery/sharding/object-hash';
import { parseShardSelector, selectsHash } from '@megaplane/machinery/sharding/selector';
import { FakeTimers } from './fake-timers.ts';

interface Stored {
  readonly namespace: string;
  readonly name: string;
  readonly text: string;
  readonly version: number;
  readonly created: number;
}

const uidHash = new ObjectHash('uid');

/** Tells which objects a request's shard selector keeps. */
function shardOf(query: URLSearchParams): { text: string; holds: (object: Stored) => boolean } {
  const parsed = parseShardSelector(query.get('shardSelector') ?? '');
  if (!parsed.ok) return { text: '', holds: () => true };
  const { selector } = parsed;
  return {
    text: selector.text,
    holds: (object) => {
      const bytes = Buffer.from(encode(object));
      uidHash.read(bytes, 0, bytes.length);
      return selectsHash(selector, uidHash.high, uidHash.low);
    },
  };
}

const EVERY = { text: '', holds: (): boolean => true };

interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Stored;
}

function encode({ namespace, name, text, version }: Stored): string {
  const metadata = { name, namespace, uid: `${name}-uid`, resourceVersion: `${version}` };
  return JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec: { text } });
}

function bookmark(version: number, isEnd: boolean): string {
  const annotations = isEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  const metadata = { resourceVersion: `${version}`, ...annotations };
  return JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec: {}, status: {} });
}

function statusObject(code: number, message: string): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code };
}

/** One answer under way: bytes that the test lets through as it likes. */
export class FakeStream implements StreamHandle {
  pending: Buffer = Buffer.alloc(0);
  isWatch = false;
  holds: (object: Stored) => boolean = EVERY.holds;
  isOver = false;
  /** The answer ends cleanly when `pending` is out. */
  isComplete = false;
  readonly path: string;
  readonly #sink: StreamSink;

  constructor(path: string, sink: StreamSink) {
    this.path = path;
    this.#sink = sink;
  }

  head(status: number, retryAfterSeconds: number = 0): void {
    if (!this.isOver) this.#sink.onHead(status, retryAfterSeconds);
  }

  add(text: string): void {
    this.pending = Buffer.concat([this.pending, Buffer.from(text)]);
  }

  event(type: string, object: string): void {
    this.add(`{"type":"${type}","object":${object}}\n`);
  }

  /** Lets up to `count` bytes through; true if something moved. */
  pump(count: number): boolean {
    if (this.isOver) return false;
    const length = Math.min(count, this.pending.length);
    if (length > 0) {
      // Offsets within a larger buffer, as sockets give them; the bytes die after the call.
      const chunk = Buffer.concat([Buffer.from('##'), this.pending.subarray(0, length)]);
      this.pending = this.pending.subarray(length);
      this.#sink.onData(chunk, 2, chunk.length);
      chunk.fill(35);
    }
    if (this.pending.length === 0 && this.isComplete) this.end(null);
    return length > 0;
  }

  end(error: string | null): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#sink.onEnd(error);
  }

  cancel(): void {
    this.isOver = true;
  }
  pause(): void {}
  resume(): void {}
}

/** A server of one collection, seen as a client sees it; the test decides about time and bytes. */
export class FakeServer implements Client {
  readonly timers: FakeTimers = new FakeTimers();
  readonly objects: Map<string, Stored> = new Map();
  readonly streams: Set<FakeStream> = new Set();
  readonly requests: string[] = [];
  metrics: ClientMetrics = undefined as unknown as ClientMetrics;
  readonly retryAfterSeconds = 0;
  version = 100;
  hasWatchList = true;
  /** False: `unchangedSince` is ignored. */
  knowsRest = true;
  /** False: shard selectors are ignored, as by a server that does not know them. */
  hasShards = true;
  isDown = false;
  /** Answered to every request while set: status and Retry-After. */
  refusal: readonly [status: number, retryAfterSeconds: number] | null = null;
  #history: Change[] = [];
  #compacted = 0;
  /** Pages are lists at one revision: token -> what is left of it. */
  readonly #pages: Map<string, { readonly items: Stored[]; readonly version: number }> = new Map();
  #seed = 1;

  random(): number {
    this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) & 0x7fffffff;
    return this.#seed / 0x80000000;
  }

  put(namespace: string, name: string, text: string): void {
    const key = `${namespace}/${name}`;
    const version = ++this.version;
    const created = this.objects.get(key)?.created ?? version;
    const object = { namespace, name, text, version, created };
    this.#commit({ type: this.objects.has(key) ? 'MODIFIED' : 'ADDED', object });
    this.objects.set(key, object);
  }

  delete(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    const present = this.objects.get(key);
    if (present === undefined) return;
    this.objects.delete(key);
    this.#commit({ type: 'DELETED', object: { ...present, version: ++this.version } });
  }

  #commit(change: Change): void {
    this.#history.push(change);
    for (const stream of this.streams) {
      if (!stream.isWatch || !stream.holds(change.object)) continue;
      stream.event(change.type, encode(change.object));
    }
  }

  bookmarkAll(): void {
    for (const stream of this.streams) {
      if (stream.isWatch) stream.event('BOOKMARK', bookmark(this.version, false));
    }
  }

  /** Forgets the history and the revisions of pages. */
  compact(): void {
    this.#compacted = this.version;
    this.#history = [];
    this.#pages.clear();
  }

  cut(error: string | null): void {
    for (const stream of this.#open()) stream.end(error);
  }

  /** Ends each watch as a server does that has lost its place in the history. */
  expireWatches(): void {
    this.failWatches(410, 'too old resource version: 1 (2)');
  }

  /** Ends each watch with an event that says why. */
  failWatches(code: number, message: string): void {
    for (const stream of this.#open()) {
      if (!stream.isWatch) continue;
      stream.event('ERROR', JSON.stringify(statusObject(code, message)));
      stream.isComplete = true;
      stream.isWatch = false;
    }
  }

  #open(): FakeStream[] {
    for (const stream of this.streams) if (stream.isOver) this.streams.delete(stream);
    return [...this.streams];
  }

  pumpAll(count: number): boolean {
    let hasMoved = false;
    for (const stream of this.#open()) hasMoved = stream.pump(count) || hasMoved;
    return hasMoved;
  }

  stream(path: string, sink: StreamSink): StreamHandle {
    this.requests.push(path);
    const stream = new FakeStream(path, sink);
    this.streams.add(stream);
    if (this.isDown) {
      stream.end('cannot reach the server');
    } else if (this.refusal !== null) {
      const [status, retryAfterSeconds] = this.refusal;
      this.#refuse(stream, status, 'refused by the test', retryAfterSeconds);
    } else {
      const url = new URL(path, 'http://server');
      if (url.searchParams.get('watch') === 'true') this.#watch(stream, url.searchParams);
      else this.#list(stream, url.searchParams);
    }
    return stream;
  }

  #refuse(stream: FakeStream, status: number, message: string, retryAfterSeconds = 0): void {
    stream.head(status, retryAfterSeconds);
    stream.add(JSON.stringify(statusObject(status, message)));
    stream.isComplete = true;
  }

  #watch(stream: FakeStream, query: URLSearchParams): void {
    const from = Number(query.get('resourceVersion') ?? 0);
    stream.holds = (this.hasShards ? shardOf(query) : EVERY).holds;
    if (query.get('sendInitialEvents') === 'true') {
      if (!this.hasWatchList) return this.#refuse(stream, 422, 'sendInitialEvents is forbidden');
      stream.head(200);
      for (const object of this.objects.values()) {
        if (stream.holds(object)) stream.event('ADDED', encode(object));
      }
      stream.event('BOOKMARK', bookmark(this.version, true));
    } else {
      stream.head(200);
      if (from < this.#compacted) {
        const message = `too old resource version: ${from} (${this.#compacted})`;
        stream.event('ERROR', JSON.stringify(statusObject(410, message)));
        stream.isComplete = true;
        return;
      }
      for (const { type, object } of this.#history) {
        if (object.version > from && stream.holds(object)) stream.event(type, encode(object));
      }
    }
    stream.isWatch = true;
  }

  #list(stream: FakeStream, query: URLSearchParams): void {
    const token = query.get('continue');
    const since = this.knowsRest ? Number(query.get('unchangedSince') ?? 0) : 0;
    const shard = this.hasShards ? shardOf(query) : EVERY;
    const present = [...this.objects.values()]
      .filter((object) => shard.holds(object))
      .filter((one) => since === 0 || one.version <= since || one.created > since)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const page =
      token === null ? { items: present, version: this.version } : this.#pages.get(token);
    if (page === undefined) return this.#refuse(stream, 410, 'The provided continue is too old');
    const limit = Number(query.get('limit') ?? Infinity);
    const rest = page.items.slice(limit);
    const next = rest.length > 0 ? `token-${this.#pages.size}-${page.version}` : '';
    if (next !== '') this.#pages.set(next, { items: rest, version: page.version });
    stream.head(200);
    const items = page.items.slice(0, limit).map((item) => encode(item));
    const shardInfo = shard.text === '' ? {} : { shardInfo: { selector: shard.text } };
    const unchanged = since > 0 ? { unchanged: { since: `${since}`, of: this.objects.size } } : {};
    const told = { ...shardInfo, ...unchanged };
    const listed = { resourceVersion: `${page.version}`, continue: next, ...told };
    const metadata = JSON.stringify(listed);
    stream.add(`{"kind":"PodList","metadata":${metadata},"items":[${items.join(',')}]}\n`);
    stream.isComplete = true;
  }

  send(_m: Method, _p: string, _c: string, _b: Uint8Array | string | null, _d: SendDone): boolean {
    throw new Error('this fake answers only streams');
  }
  room(): number {
    return 0;
  }
  onRoom(): void {}
  request(_request: ClientRequest): Promise<ClientResponse> {
    throw new Error('this fake answers only streams');
  }
  close(): void {}
}

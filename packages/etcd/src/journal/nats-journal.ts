// shell: a journal in a stream of NATS JetStream
/**
 * One message per entry on one subject; the stream's sequence is the position. An append tells the
 * last sequence that it expects (`Nats-Expected-Last-Sequence`), which the leader of the stream
 * holds against the end of the stream before the message is replicated.
 *
 * The stream is made where it is missing, and refused where it was made with other rules: one that
 * discards old messages, or lets them age, loses what is acknowledged.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterMs, unawaited } from '@megaplane/base/deferred';
import { namedTls } from '@megaplane/base/tls-parts';
import type {
  AppendOutcome,
  EndOutcome,
  Journal,
  JournalEntry,
  ReadOutcome,
  TrimOutcome,
} from '@megaplane/store/journal';
import {
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
  type ConsumerMessages,
  JetStreamApiError,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import {
  type NatsConnection,
  type NodeConnectionOptions,
  connect,
  credsAuthenticator,
  errors,
  nkeyAuthenticator,
  type TlsOptions,
} from '@nats-io/transport-node';

/** What a server takes without other configuration; less what headers need. */
const ENTRY_BYTES_MAX = 1024 * 1024 - 4096;
/** Well below a lease: an attempt whose answer is lost must not cost the lead. */
const PUBLISH_MS_MAX = 1000;
const API_MS_MAX = 3000;
/** Entries that wait to be read; the server sends no more meanwhile. */
const BUFFERED_ENTRIES_MAX = 64;
const READ_ENTRIES_MAX = 64;
const WRONG_LAST_SEQUENCE = new Set([10071, 10164]);
const STREAM_NOT_FOUND = 10059;
/** "maximum bytes exceeded", "maximum messages exceeded" and the limits of an account. */
const isFullText = (text: string): boolean =>
  /maximum (?:bytes|messages)|resource limits exceeded|insufficient (?:storage )?resources/.test(
    text,
  );

export interface NatsJournalOptions {
  readonly servers: readonly string[];
  readonly stream: string;
  /** Of a stream that is made: how many servers hold it, and where. */
  readonly replicas: number;
  readonly storage: 'file' | 'memory';
  /** Of a stream that is made; Infinity for none. */
  readonly bytesMax: number;
  readonly user?: string;
  readonly password?: string;
  /** Files: of credentials (`.creds`), or of the seed of an nkey. */
  readonly credentialsFile?: string;
  readonly nkeyFile?: string;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | null;
  readonly log: (message: string) => void;
}

/** Entries as they come, from one place on. */
class Feed {
  next: number;
  readonly entries: JournalEntry[] = [];
  messages: ConsumerMessages | null = null;
  isOver = false;
  /** The first message came from behind the place asked for. */
  first = 0;
  /** Tells the one who reads that something is there, or that nothing will come. */
  wake: (() => void) | null = null;
  /** Tells the one who fetches that there is room again. */
  taken: (() => void) | null = null;

  constructor(next: number) {
    this.next = next;
  }
}

export class NatsJournal implements Journal {
  readonly name: string;
  readonly entryBytesMax: number;
  readonly #options: NatsJournalOptions;
  readonly #connection: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  readonly #subject: string;
  /** When the stream was made: another one of its name is another journal. */
  readonly #created: string;
  #feed: Feed | null = null;
  /** The last append: made again, it has the same name. */
  #attempt: { readonly entry: Buffer; readonly expected: number; readonly id: string } | null =
    null;
  #isClosed = false;

  private constructor(
    options: NatsJournalOptions,
    connection: NatsConnection,
    jsm: JetStreamManager,
    info: StreamInfo,
  ) {
    this.#options = options;
    this.#connection = connection;
    this.#jsm = jsm;
    this.#js = jetstream(connection, { timeout: API_MS_MAX });
    this.#subject = info.config.subjects[0] ?? subjectOf(options.stream);
    this.#created = info.created;
    const largest = connection.info?.max_payload ?? ENTRY_BYTES_MAX;
    const own = info.config.max_msg_size > 0 ? info.config.max_msg_size : ENTRY_BYTES_MAX;
    this.entryBytesMax = Math.min(largest, own, ENTRY_BYTES_MAX + 4096) - 4096;
    this.name = `NATS stream ${options.stream} at ${options.servers.join()}`;
  }

  /** Connects, and makes the stream or looks at it. Throws with what is wrong and what to do. */
  static async open(options: NatsJournalOptions): Promise<NatsJournal> {
    const connection = await connect(connectOptions(options));
    try {
      const jsm = await jetstreamManager(connection, { timeout: API_MS_MAX });
      const info = await streamOf(jsm, options);
      const fault = streamFault(info, options);
      if (fault !== null) throw new Error(`the NATS stream ${options.stream} ${fault}`);
      return new NatsJournal(options, connection, jsm, info);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  async append(entry: Buffer, expected: number): Promise<AppendOutcome> {
    if (this.#attempt?.entry !== entry || this.#attempt.expected !== expected) {
      this.#attempt = { entry, expected, id: randomUUID() };
    }
    // who writes knows what it has written, and need not be sent it
    this.#drop();
    try {
      const { seq, duplicate } = await this.#js.publish(this.#subject, entry, {
        msgID: this.#attempt.id,
        timeout: PUBLISH_MS_MAX,
        expect: { lastSequence: expected, streamName: this.#options.stream },
        retries: 0,
      });
      // A server may remember an attempt that was never replicated: what stands there is read.
      return seq === expected + 1 && !duplicate ? { kind: 'appended' } : { kind: 'moved' };
    } catch (error) {
      return await this.#refusal(error);
    }
  }

  async #refusal(error: unknown): Promise<AppendOutcome> {
    const why = `NATS: ${(error as Error).message}`;
    if (error instanceof JetStreamApiError) {
      if (WRONG_LAST_SEQUENCE.has(error.code)) return { kind: 'moved' };
      if (isFullText(error.message)) return { kind: 'full', why };
      return { kind: 'unknown', why };
    }
    if (!isUnreached(error)) return { kind: 'unknown', why };
    // Nobody leads the stream, or it is not there any more.
    const end = await this.end();
    return end.kind === 'gone' ? end : { kind: 'unavailable', why };
  }

  async read(from: number, waitMs: number): Promise<ReadOutcome> {
    if (this.#feed === null || this.#feed.next !== from || this.#feed.isOver) this.#begin(from);
    const feed = this.#feed;
    if (feed === null) return { kind: 'unavailable', why: 'the journal is closed' };
    if (feed.entries.length === 0 && !feed.isOver && feed.first === 0) await wait(feed, waitMs);
    if (feed.first > 0) {
      this.#drop();
      return { kind: 'trimmed', first: feed.first };
    }
    const entries = feed.entries.splice(0, READ_ENTRIES_MAX);
    feed.next += entries.length;
    feed.taken?.();
    if (entries.length > 0 || (!feed.isOver && waitMs <= 0)) return { kind: 'entries', entries };
    return await this.#lookAt(from);
  }

  /** Nothing came: is that all there is? */
  async #lookAt(from: number): Promise<ReadOutcome> {
    const end = await this.end();
    if (end.kind !== 'end') return end;
    if (from < end.first) {
      this.#drop();
      return { kind: 'trimmed', first: end.first };
    }
    return { kind: 'entries', entries: [] };
  }

  #begin(from: number): void {
    this.#drop();
    if (this.#isClosed) return;
    const feed = new Feed(from);
    this.#feed = feed;
    unawaited(this.#run(feed, from));
  }

  #drop(): void {
    const feed = this.#feed;
    this.#feed = null;
    if (feed === null) return;
    feed.isOver = true;
    feed.messages?.stop();
    feed.wake?.();
    feed.taken?.();
  }

  async #run(feed: Feed, from: number): Promise<void> {
    try {
      const consumer = await this.#js.consumers.get(this.#options.stream, {
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: from,
      });
      if (feed.isOver) return;
      const messages = await consumer.consume({ max_messages: BUFFERED_ENTRIES_MAX });
      feed.messages = messages;
      let next = from;
      for await (const message of messages) {
        if (feed.isOver) break;
        if (message.seq !== next) {
          // Behind a gap in the middle nothing is given; whoever asks there is told.
          if (next === from) feed.first = message.seq;
          break;
        }
        next++;
        const { data } = message;
        const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
        feed.entries.push({ position: message.seq, bytes });
        feed.wake?.();
        if (feed.entries.length >= BUFFERED_ENTRIES_MAX) await room(feed);
      }
    } catch (error) {
      if (!feed.isOver) this.#options.log(`NATS: ${(error as Error).message}`);
    }
    feed.isOver = true;
    feed.messages?.stop();
    feed.wake?.();
  }

  async end(): Promise<EndOutcome> {
    try {
      const { created, config, state } = await this.#jsm.streams.info(this.#options.stream);
      if (created !== this.#created) {
        return { kind: 'gone', why: `the ${this.name} was deleted and made anew by somebody` };
      }
      const bytesMax = config.max_bytes > 0 ? config.max_bytes : Infinity;
      return {
        kind: 'end',
        first: Math.max(1, state.first_seq),
        last: state.last_seq,
        bytes: state.bytes,
        bytesMax,
      };
    } catch (error) {
      const why = `NATS: ${(error as Error).message}`;
      if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) {
        return { kind: 'gone', why: `the ${this.name} was deleted by somebody` };
      }
      return { kind: 'unavailable', why };
    }
  }

  async trim(position: number): Promise<TrimOutcome> {
    const end = await this.end();
    if (end.kind !== 'end') return end;
    const to = Math.min(position, end.last - 1);
    if (to < end.first) return { kind: 'trimmed' };
    try {
      await this.#jsm.streams.purge(this.#options.stream, { seq: to + 1 });
      return { kind: 'trimmed' };
    } catch (error) {
      return { kind: 'unavailable', why: `NATS: ${(error as Error).message}` };
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#drop();
    await this.#connection.close();
  }
}

/** Until something is there, or `waitMs` is over. */
async function wait(feed: Feed, waitMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = afterMs(waitMs, resolve);
  feed.wake = resolve;
  await promise;
  clearTimeout(timer);
  feed.wake = null;
}

/** Until somebody has read, or nobody will. */
async function room(feed: Feed): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  feed.taken = resolve;
  await promise;
  feed.taken = null;
}

/** Was the message certainly not taken by anybody? */
function isUnreached(error: unknown): boolean {
  if (error instanceof errors.NoRespondersError) return true;
  if (error instanceof errors.RequestError) return error.isNoResponders();
  return error instanceof Error && error.message.includes('no responders');
}

function subjectOf(stream: string): string {
  return `megaplane.journal.${stream}`;
}

async function streamOf(jsm: JetStreamManager, options: NatsJournalOptions): Promise<StreamInfo> {
  try {
    return await jsm.streams.info(options.stream);
  } catch (error) {
    const isMissing = error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND;
    if (!isMissing) throw error;
  }
  return await jsm.streams.add({
    name: options.stream,
    subjects: [subjectOf(options.stream)],
    num_replicas: options.replicas,
    storage: options.storage === 'memory' ? StorageType.Memory : StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_bytes: Number.isFinite(options.bytesMax) ? options.bytesMax : -1,
    max_msgs: -1,
    max_age: 0,
    deny_delete: false,
    allow_direct: false,
  });
}

/** Why a stream must not be used, null when it may. */
function streamFault({ config }: StreamInfo, options: NatsJournalOptions): string | null {
  if (config.discard !== DiscardPolicy.New) {
    return 'discards old messages when it is full, which loses data; make it with --discard new';
  }
  if (config.retention !== RetentionPolicy.Limits) {
    return `has the retention ${config.retention}; make it with --retention limits`;
  }
  if (config.max_age > 0) return 'lets messages age; make it with --max-age 0';
  if (config.max_msgs > 0) return 'has a limit of messages; give it one of bytes alone';
  if ((config.max_msgs_per_subject ?? -1) > 0) return 'keeps so many messages of a subject only';
  if (config.subjects.length !== 1 || /[*>]/.test(config.subjects[0] ?? '*')) {
    return 'takes more than one subject, so that strangers may write to it; give it one';
  }
  if (config.max_msg_size > 0 && config.max_msg_size < 65_536) return 'takes no messages of 64 KiB';
  if ((config.sources?.length ?? 0) > 0 || config.mirror !== undefined) {
    return 'is a copy of other streams; give it none';
  }
  if (config.num_replicas < options.replicas) {
    return `has ${config.num_replicas} replicas, not ${options.replicas} as replicas= asks for`;
  }
  return null;
}

function connectOptions(options: NatsJournalOptions): NodeConnectionOptions {
  const { servers, user, password, credentialsFile, nkeyFile, tls } = options;
  const authenticator =
    credentialsFile !== undefined
      ? credsAuthenticator(() => readFileSync(credentialsFile))
      : nkeyFile !== undefined
        ? nkeyAuthenticator(() => Buffer.from(readFileSync(nkeyFile, 'utf8').trim()))
        : undefined;
  return {
    servers: [...servers],
    name: 'megaplane',
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    waitOnFirstConnect: false,
    pingInterval: 2000,
    maxPingOut: 2,
    timeout: 5000,
    noAsyncTraces: true,
    // credentials that have run out may be renewed: their file is read at each attempt
    ignoreAuthErrorAbort: true,
    ...(user === undefined ? {} : { user, pass: password ?? '' }),
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(tls === null ? {} : { ignoreClusterUpdates: true, tls: tlsOptions(tls, servers) }),
  };
}

/**
 * The client tells TLS no name of a server that is named by its address, and certificates are then
 * held against `localhost`. Here they are held against the addresses that were given.
 */
function tlsOptions(
  { ca, cert, key }: NonNullable<NatsJournalOptions['tls']>,
  servers: readonly string[],
): TlsOptions {
  return {
    ...namedTls(servers.map((server) => hostOf(server))),
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(cert === undefined ? {} : { certFile: cert }),
    ...(key === undefined ? {} : { keyFile: key }),
  };
}

/** `10.0.0.1:4222`, `[::1]:4222` or a name, without the port. */
function hostOf(server: string): string {
  return server.replace(/:\d+$/, '').replaceAll(/[[\]]/g, '');
}

// shell: a standby's connection to the member that leads
/**
 * Calls that only the leader may work on are passed to it as they came, and its answers back. A
 * call that certainly reached nobody is made again until PATIENCE_MS are over; one that may have
 * been worked on is not.
 */
import { afterMs, pauseMs, unawaited } from '@megaplane/base/deferred';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { CloseReason } from '@megaplane/wire/exchange';
import type { FieldList } from '@megaplane/wire/fields';
import type {
  GrpcCall,
  GrpcCallHandler,
  GrpcClient,
  GrpcClientCall,
  GrpcStatus,
} from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { Endpoints, parseEndpoints } from '../client/endpoints.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';

/** So long a call waits for somebody to lead; etcd gives up a write after about as long. */
const PATIENCE_MS = 5000;
const PAUSE_MS = 20;
/** Of what clients send beside a request. */
const PASSED = ['token', 'authorization', 'client-api-version'] as const;
/** Marks a call that was passed on: it is not passed on again. */
export const FORWARDED = 'megaplane-forwarded';
/** Shows that a call comes from somebody who can read the journal. */
export const SECRET = 'megaplane-group';
/** What etcd says when a write was under way as its leader failed. */
const LEADER_FAILED: EtcdFailure = {
  code: 14,
  text: 'etcdserver: request timed out, possibly due to previous leader failure',
};

export interface LeaderPlace {
  readonly clientUrls: readonly string[];
  readonly secret: string;
}

export interface LinkParts {
  readonly tls: () => ConnectTls | null;
  readonly log: (message: string) => void;
  /** This member leads: there is nobody to pass anything to. */
  readonly leadsHere: () => boolean;
  readonly isOver: () => boolean;
}

export class LeaderLink {
  readonly #parts: LinkParts;
  #place: LeaderPlace | null = null;
  #endpoints: Endpoints | null = null;

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  /** Where the leader is; null while nobody is known to lead. */
  turnTo(place: LeaderPlace | null): void {
    if (place?.secret === this.#place?.secret) return;
    this.#endpoints?.close();
    this.#endpoints = null;
    this.#place = place;
    if (place === null || place.clientUrls.length === 0) return;
    try {
      const endpoints = parseEndpoints('--advertise-client-urls', place.clientUrls.join());
      this.#endpoints = new Endpoints({ endpoints, tls: this.#parts.tls, log: this.#parts.log });
    } catch (error) {
      this.#parts.log(`the leader cannot be reached: ${(error as Error).message}`);
    }
  }

  /** Waits up to `waitMs` for a connection. */
  async #open(waitMs: number, metadata: FieldList): Promise<GrpcClient | null> {
    const endMs = performance.now() + waitMs;
    for (;;) {
      const endpoints = this.#endpoints;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0 || this.#parts.leadsHere() || this.#parts.isOver()) return null;
      if (endpoints === null) {
        await pauseMs(Math.min(PAUSE_MS, leftMs));
        continue;
      }
      const { promise, resolve } = Promise.withResolvers<null>();
      const timer = afterMs(Math.min(leftMs, 500), () => resolve(null));
      const client = await Promise.race([endpoints.open(), promise]);
      clearTimeout(timer);
      if (client !== null) {
        const secret = this.#place?.secret ?? '';
        const own = [FORWARDED, '1', SECRET, secret];
        return grpcClient(client.connection, { metadata: [...own, ...metadata] });
      }
    }
  }

  /**
   * A unary call as it is. Resolves with the answer, or with why there is none; 'here' when this
   * member has come to lead before anybody worked on it.
   */
  async ask(
    path: string,
    message: Buffer,
    metadata: FieldList,
    timeoutMs: number,
  ): Promise<Buffer | EtcdFailure | 'here'> {
    const endMs = performance.now() + Math.min(timeoutMs, PATIENCE_MS);
    for (;;) {
      const client = await this.#open(endMs - performance.now(), metadata);
      if (client === null) return this.#parts.leadsHere() ? 'here' : ETCD.noLeader;
      const { status, answer } = await once(client, path, message, timeoutMs);
      if (status.code === 0) return answer;
      const isUntouched =
        status.failure?.kind === 'refused' || status.message === ETCD.noLeader.text;
      if (!isUntouched) {
        if (status.failure !== null && status.code === 14) return LEADER_FAILED;
        return { code: status.code, text: status.message };
      }
      await pauseMs(PAUSE_MS);
    }
  }

  /** All messages that a call is answered with; resolves with why it failed, or null. */
  async collect(path: string, take: (message: Buffer) => string | null): Promise<string | null> {
    const client = await this.#open(PATIENCE_MS, []);
    if (client === null) return ETCD.noLeader.text;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    let wrong: string | null = null;
    client.unary(path, Buffer.alloc(0), {
      onMessage: (call, bytes, start, end) => {
        wrong ??= take(Buffer.from(bytes.subarray(start, end)));
        if (wrong !== null) call.cancel();
      },
      onStatus: (_, { code, message }) => resolve(wrong ?? (code === 0 ? null : message)),
    });
    return await promise;
  }

  /** A stream, passed on in both directions. */
  pass(call: GrpcCall): GrpcCallHandler {
    return new PassedStream(call, (waitMs) => this.#open(waitMs, passedMetadata(call)));
  }

  close(): void {
    this.#endpoints?.close();
    this.#endpoints = null;
  }
}

/** What goes along with a call that is passed on. */
export function passedMetadata(caller: { metadata(name: string): string | undefined }): FieldList {
  const fields: string[] = [];
  for (const name of PASSED) {
    const value = caller.metadata(name);
    if (value !== undefined) fields.push(name, value);
  }
  return fields;
}

function once(
  client: GrpcClient,
  path: string,
  message: Buffer,
  timeoutMs: number,
): Promise<{ readonly status: GrpcStatus; readonly answer: Buffer }> {
  const { promise, resolve } = Promise.withResolvers<{ status: GrpcStatus; answer: Buffer }>();
  let answer: Buffer = Buffer.alloc(0);
  const sink = {
    onMessage: (_: GrpcClientCall, bytes: Buffer, start: number, end: number): void => {
      answer = Buffer.from(bytes.subarray(start, end));
    },
    onStatus: (_: GrpcClientCall, status: GrpcStatus): void => resolve({ status, answer }),
  };
  const options = Number.isFinite(timeoutMs)
    ? { timeoutMs: Math.max(1, Math.ceil(timeoutMs)) }
    : {};
  client.unary(path, message, sink, options);
  return promise;
}

/** Messages that came before the connection was there. */
const EARLY_MESSAGES_MAX = 64;

class PassedStream implements GrpcCallHandler {
  readonly #call: GrpcCall;
  #passed: GrpcClientCall | null = null;
  #early: Buffer[] = [];
  #isHalfClosed = false;
  #isOver = false;

  constructor(call: GrpcCall, open: (waitMs: number) => Promise<GrpcClient | null>) {
    this.#call = call;
    unawaited(this.#begin(open));
  }

  async #begin(open: (waitMs: number) => Promise<GrpcClient | null>): Promise<void> {
    const client = await open(PATIENCE_MS);
    if (this.#isOver) return;
    if (client === null) {
      this.#finish(ETCD.noLeader);
      return;
    }
    const passed = client.open(this.#call.path, {
      onMessage: (_, bytes, start, end) => {
        this.#call.send(bytes, start, end);
        if (this.#call.writable() <= 0) passed.pause();
      },
      onStatus: (_, { code, message, failure }) => {
        const isLost = failure !== null && code === 14;
        this.#finish(isLost ? LEADER_FAILED : { code, text: message });
      },
    });
    passed.onWritable = () => this.#call.resume();
    this.#passed = passed;
    for (const message of this.#early) passed.send(message);
    this.#early = [];
    if (this.#isHalfClosed) passed.halfClose();
  }

  #finish({ code, text }: EtcdFailure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (code === 0) this.#call.finish(0);
    else this.#call.finish(code, text);
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    const passed = this.#passed;
    if (passed === null) {
      this.#early.push(Buffer.from(bytes.subarray(start, end)));
      if (this.#early.length >= EARLY_MESSAGES_MAX) this.#call.pause();
      return;
    }
    passed.send(bytes, start, end);
    if (passed.writable() <= 0) this.#call.pause();
  }

  onHalfClose(): void {
    this.#isHalfClosed = true;
    this.#passed?.halfClose();
  }

  onCancel(_reason: CloseReason): void {
    this.#isOver = true;
    this.#passed?.cancel();
  }

  onWritable(): void {
    this.#passed?.resume();
  }
}

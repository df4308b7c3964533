// shell: calls of the tools to one running server of etcd's API
import { type ConnectTls, connect } from '@megaplane/wire/connect';
import type { GrpcClient, GrpcClientCall, GrpcStatus } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import { writeInt64Field, writeTextField } from '@megaplane/wire/protobuf-write';
import type { Endpoint } from './endpoints.ts';

const EMPTY: Buffer = Buffer.alloc(0);
const CALL_MS_MAX = 30_000;
/** A hash goes over everything that the server has. */
const HASH_MS_MAX = 600_000;
const MESSAGE_BYTES_MAX: number = 512 * 1024 * 1024;

export interface RemoteHash {
  readonly hash: number;
  /** -1 when nothing was compacted. */
  readonly compactRevision: number;
  /** The server's newest revision when it answered. */
  readonly currentRevision: number;
}

/** One open stream of answers. */
export interface RemoteStream {
  readonly call: GrpcClientCall;
  /** Settles at the end; rejects with an Error that names the server. */
  readonly end: Promise<void>;
}

/** One server; calls reject with an Error that names it and says what it said. */
export class Remote {
  readonly url: string;
  #client: GrpcClient;

  constructor({ url, host, port, isTls }: Endpoint, tls: ConnectTls) {
    this.url = url;
    const connection = connect({ host, port, ...(isTls ? { tls } : {}) });
    this.#client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
  }

  #error(path: string, { code, message }: GrpcStatus): Error {
    const method = path.slice(path.lastIndexOf('/') + 1);
    return new Error(`${this.url}: ${method}: ${message} (code ${code})`);
  }

  /** Calls from here on are the user's. */
  async login(user: string, password: string): Promise<void> {
    const size = Buffer.byteLength(user) + Buffer.byteLength(password) + 32;
    const request = Buffer.alloc(size);
    const at = writeTextField(request, writeTextField(request, 0, 1, user), 2, password);
    const answer = await this.call('Auth/Authenticate', request.subarray(0, at));
    const reader = new ProtobufReader().reset(answer, 0, answer.length);
    let token = '';
    while (reader.next()) {
      if (reader.field === 2 && reader.wireType === 2) token = reader.text();
      else reader.skip();
    }
    const { connection } = this.#client;
    const metadata = ['token', token];
    this.#client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX, metadata });
  }

  /** `path` without the package: `KV/Range`. */
  call(path: string, message: Buffer, timeoutMs: number = CALL_MS_MAX): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      let answer = Buffer.alloc(0);
      const sink = {
        onMessage: (_call: GrpcClientCall, bytes: Buffer, start: number, end: number): void => {
          answer = Buffer.from(bytes.subarray(start, end));
        },
        onStatus: (_call: GrpcClientCall, status: GrpcStatus): void => {
          if (status.code === 0) resolve(answer);
          else reject(this.#error(path, status));
        },
      };
      this.#client.unary(`/etcdserverpb.${path}`, message, sink, { timeoutMs });
    });
  }

  /** Opens a stream with one request; `onMessage` gets bytes that are valid during the call. */
  stream(
    path: string,
    message: Buffer,
    onMessage: (bytes: Buffer, start: number, end: number) => void,
  ): RemoteStream {
    const { promise: end, resolve, reject } = Promise.withResolvers<void>();
    const call = this.#client.open(`/etcdserverpb.${path}`, {
      onMessage: (_call, bytes, from, to) => onMessage(bytes, from, to),
      onStatus: (_call, status) => {
        if (status.code === 0) resolve();
        else reject(this.#error(path, status));
      },
    });
    call.send(message);
    return { call, end };
  }

  /** The server's snapshot, piece by piece, its checksum the last one. */
  async snapshot(onPiece: (piece: Buffer, remaining: number) => void): Promise<void> {
    const reader = new ProtobufReader();
    const { call, end } = this.stream(
      'Maintenance/Snapshot',
      Buffer.alloc(0),
      (bytes, from, to) => {
        reader.reset(bytes, from, to);
        let remaining = 0;
        let piece: Buffer = EMPTY;
        while (reader.next()) {
          if (reader.field === 2 && reader.wireType === 0) remaining = reader.int64();
          else if (reader.field === 3 && reader.wireType === 2) {
            reader.chunk();
            piece = bytes.subarray(reader.chunkStart, reader.chunkEnd);
          } else reader.skip();
        }
        if (piece.length > 0) onPiece(piece, remaining);
      },
    );
    call.halfClose();
    await end;
  }

  /** HashKV at a revision, 0 = now. */
  async hashKv(revision: number): Promise<RemoteHash> {
    const request = Buffer.alloc(16);
    const size = writeInt64Field(request, 0, 1, revision);
    const answer = await this.call('Maintenance/HashKV', request.subarray(0, size), HASH_MS_MAX);
    const reader = new ProtobufReader().reset(answer, 0, answer.length);
    let hash = 0;
    let compactRevision = 0;
    let currentRevision = 0;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 2) currentRevision = headerRevision(reader);
      else if (reader.field === 2 && reader.wireType === 0) hash = reader.uint32();
      else if (reader.field === 3 && reader.wireType === 0) compactRevision = reader.int64();
      else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) throw new Error(`${this.url}: no answer to HashKV`);
    return { hash, compactRevision, currentRevision };
  }

  close(): void {
    this.#client.connection.destroy();
  }
}

/** The revision in the header that the reader stands at. */
export function headerRevision(outer: ProtobufReader): number {
  outer.chunk();
  const reader = new ProtobufReader().reset(outer.bytes, outer.chunkStart, outer.chunkEnd);
  let revision = 0;
  while (reader.next()) {
    if (reader.field === 3 && reader.wireType === 0) revision = reader.int64();
    else reader.skip();
  }
  return revision;
}

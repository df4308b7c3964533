// shell: the ports and connections of shards and relays
import { guarded } from '@megaplane/base/deferred';
import { connect, type ConnectTls } from '@megaplane/wire/connect';
import { GRPC_CODES, type GrpcCall, type GrpcCallHandler } from '@megaplane/wire/grpc';
import type { GrpcCode } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen, type ListenTls } from '@megaplane/wire/listener';
import { Gathering, type Child } from './gathering.ts';
import { differenceOf } from './protocol/difference.ts';
import { decodeDown, decodeUp, encodeUp, FRAME_BYTES_MAX, JOIN_PATH } from './protocol/frames.ts';
import type { Hello } from './protocol/frames.ts';
import { decodeRound, encodeReply } from './protocol/round-codec.ts';
import { EMPTY_REPLY, type Reply, type Round } from './protocol/rounds.ts';
import { decodeState, type StateChange } from './protocol/state.ts';

/** What children must agree with; `configHash` empty: whatever it is, as long as all agree. */
export type Terms = Pick<Hello, 'version' | 'configHash' | 'configText'>;

export interface ChildrenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls?: ListenTls;
  readonly terms: Terms;
  /** A child came, went, or leads to other shards. */
  readonly onChange: () => void;
  /** Why nobody may join now; empty: they may. */
  readonly refusal?: () => string;
}

/** A port at which children join. */
export interface Children {
  readonly gathering: Gathering;
  readonly address: { readonly host: string; readonly port: number };
  close(): Promise<void>;
}

/** Takes children in. Throws where the port is taken. */
export async function acceptChildren(options: ChildrenOptions): Promise<Children> {
  const gathering = new Gathering(() => performance.now());
  const routes = new GrpcRoutes({
    messageBytesMax: FRAME_BYTES_MAX,
    messageTooLargeText: (bytes, bytesMax) => `a frame of ${bytes} bytes, over ${bytesMax}`,
  });
  routes.call(JOIN_PATH, (call) => new Joined(call, gathering, options));
  const { host, port, tls } = options;
  const listener = await listen({
    ...{ host, port, grpc: routes },
    ...(tls === undefined ? {} : { tls: { ...tls, requiresClientCert: true } }),
    handler: (exchange) => exchange.respond(404, 'text/plain; charset=utf-8', 'not found\n', []),
  });
  return { gathering, address: listener.address, close: () => listener.close(0) };
}

/** The stream of one child, at its parent. */
class Joined implements GrpcCallHandler {
  readonly #call: GrpcCall;
  readonly #gathering: Gathering;
  readonly #options: ChildrenOptions;
  #child: Child | null = null;

  constructor(call: GrpcCall, gathering: Gathering, options: ChildrenOptions) {
    this.#call = call;
    this.#gathering = gathering;
    this.#options = options;
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    try {
      // what is kept of it outlives the message
      const { hello, number, reply } = decodeUp(Buffer.from(bytes.subarray(start, end)));
      if (this.#child === null) this.#join(hello);
      else if (hello !== null) this.#update(this.#child, hello);
      else if (reply !== null) this.#gathering.answered(this.#child, number, reply);
    } catch (error) {
      this.#refuse(error instanceof Error ? error.message : String(error));
    }
  }

  #join(hello: Hello | null): void {
    if (hello === null || hello.members.length === 0) {
      return this.#refuse('the first frame does not say who comes');
    }
    const notNow = this.#options.refusal?.() ?? '';
    if (notNow !== '') return this.#refuse(notNow, GRPC_CODES.unavailable);
    const difference = this.#difference(hello);
    if (difference !== '') return this.#refuse(difference);
    const child = {
      hello,
      send: (frame: Uint8Array) => this.#call.send(frame),
      drop: (why: string) => this.#refuse(why, GRPC_CODES.unavailable),
    };
    const why = this.#gathering.add(child);
    if (why !== '') return this.#refuse(why, GRPC_CODES.alreadyExists);
    this.#child = child;
    this.#options.onChange();
  }

  #update(child: Child, hello: Hello): void {
    const why = this.#gathering.update(child, hello);
    if (why !== '') return this.#refuse(why, GRPC_CODES.alreadyExists);
    this.#options.onChange();
  }

  /** In what the child is not as all must be; empty: in nothing. */
  #difference(hello: Hello): string {
    const { version, configHash } = this.#options.terms;
    if (hello.version !== version) {
      return `version ${hello.version} joins a root of version ${version}`;
    }
    // a relay has no configuration: that of its first shard counts
    const terms =
      configHash === '' && this.#options.terms.configText === undefined
        ? (this.#gathering.anyHello ?? hello)
        : this.#options.terms;
    if (hello.configHash === terms.configHash) return '';
    const hashes = `its hash is ${hello.configHash}, the root's is ${terms.configHash}`;
    const where = differenceOf(terms.configText ?? '', hello.configText ?? '');
    const isKnown = terms.configText !== undefined && hello.configText !== undefined;
    return `another configuration: ${isKnown && where !== '' ? `${where}; ` : ''}${hashes}`;
  }

  #refuse(why: string, code: GrpcCode = GRPC_CODES.failedPrecondition): void {
    this.#leave();
    if (!this.#call.closed) this.#call.finish(code, why);
  }

  onHalfClose(): void {
    this.#leave();
    if (!this.#call.closed) this.#call.finish(GRPC_CODES.ok);
  }

  onCancel(): void {
    this.#leave();
  }

  #leave(): void {
    if (this.#child === null) return;
    this.#gathering.remove(this.#child);
    this.#child = null;
    this.#options.onChange();
  }
}

export interface JoinOptions {
  readonly host: string;
  readonly port: number;
  readonly tls?: ConnectTls;
  readonly hello: Hello;
  /** The parent has said something: it has taken the child in. */
  readonly onJoined?: () => void;
  /** The stream is over, for this reason. `isFinal`: it is of no use to try again. */
  readonly onEnd: (why: string, isFinal: boolean) => void;
}

export interface Link {
  /** Other shards are behind this child now. */
  update(hello: Hello): void;
  close(): void;
}

/** What a shard is to its parent. */
export interface Answering {
  apply(change: StateChange): void;
  answer(round: Round): Reply;
  /** How long an answer took. */
  took?(seconds: number): void;
}

/** Joins a parent as a shard. */
export function joinAsShard(options: JoinOptions, share: Answering): Link {
  return join(options, (bytes, answer) => {
    const { state, round, number } = decodeDown(bytes);
    if (state !== null) share.apply(decodeState(state));
    if (round === null) return;
    let reply = EMPTY_REPLY;
    const sinceMs = performance.now();
    try {
      reply = share.answer(decodeRound(round));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      reply = { ...EMPTY_REPLY, trouble: `${options.hello.members.join(', ')}: ${why}` };
    }
    share.took?.((performance.now() - sinceMs) / 1000);
    answer(number, encodeReply(reply));
  });
}

/** Joins a parent as a relay: what comes goes on to the children, answers come back as one. */
export function joinAsRelay(options: JoinOptions, gathering: Gathering): Link {
  return join(options, (bytes, answer) => {
    const frame = decodeDown(bytes);
    if (frame.round === null) return gathering.pass(frame, bytes);
    gathering.ask(frame, (reply) => answer(frame.number, encodeReply(reply)), bytes);
  });
}

type Answer = (number: number, reply: Uint8Array) => void;

function join(options: JoinOptions, take: (bytes: Buffer, answer: Answer) => void): Link {
  const { host, port, tls, hello, onEnd } = options;
  const connection = connect({ host, port, ...(tls === undefined ? {} : { tls }) });
  const grpc = grpcClient(connection, { messageBytesMax: FRAME_BYTES_MAX });
  let isOver = false;
  let isJoined = false;
  const end = guarded((why: string, isFinal: boolean) => {
    if (isOver) return;
    isOver = true;
    connection.destroy();
    onEnd(why, isFinal);
  });
  const call = grpc.open(JOIN_PATH, {
    onMessage: (_call, bytes, start, finish) => {
      try {
        if (!isJoined) options.onJoined?.();
        isJoined = true;
        take(Buffer.from(bytes.subarray(start, finish)), (number, reply) => {
          if (!call.closed) call.send(encodeUp({ hello: null, number, reply }));
        });
      } catch (error) {
        end(error instanceof Error ? error.message : String(error), false);
      }
    },
    onStatus: (_call, { code, message, failure }) => {
      const isFinal = failure === null && code === GRPC_CODES.failedPrecondition;
      end(isFinal || message !== '' ? message : `code ${code}`, isFinal);
    },
  });
  // what is said last before the connection is open must not be followed by what was said first
  let latest = hello;
  let isOpen = false;
  const say = (): void => call.send(encodeUp({ hello: latest, number: 0, reply: null }));
  connection.onOpen = (): void => {
    isOpen = true;
    say();
  };
  return {
    update: (now) => {
      latest = now;
      if (isOpen && !call.closed) say();
    },
    close: () => {
      isOver = true;
      call.cancel();
      connection.destroy();
    },
  };
}

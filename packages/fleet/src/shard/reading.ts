// shell: who looks at a shard: `ShardRead` as it is published, and `ShardLook`, which is ours
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, DescMethod, MessageShape } from '@bufbuild/protobuf';
import { systemTimers } from '@megaplane/client/system-timers';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcCallHandler, GrpcMethods } from '@megaplane/wire/grpc';
import { CallError, pathOfMethod, refuse, serveUnary } from '../contract/calls.ts';
import { identityOf, mayRead } from '../contract/identity.ts';
import { InspectNeedsResponseSchema, ShardRead } from '../contract/tables/shardread.ts';
import type { InspectNeedsResponse } from '../contract/tables/shardread.ts';
import { ListShortfallsResponseSchema, ShardLook } from '../contract/tables/shardlook.ts';
import type { ShardCore } from './core.ts';
import { inspectionFrames } from './inspection.ts';
import { machineLooks, shortfallMessages, whatIfFrames } from './looks.ts';

/** Readers that wait for a cycle. */
export const READERS_WAITING_MAX = 64;
/** A reader that has waited so long is told that nothing was computed yet. */
const READER_MS_MAX = 5000;

/** Serves readers. Answers what to call when a cycle has worked out all rows. */
export function serveReaders(
  methods: GrpcMethods,
  core: ShardCore,
  act: (tell: (nowMs: number) => void) => void,
): () => void {
  const waiting = new Set<() => void>();
  streamed(methods, ShardRead.method.inspectNeeds, (request, begin, call) => {
    if (waiting.size >= READERS_WAITING_MAX) {
      const why = `${READERS_WAITING_MAX} readers wait already`;
      throw new CallError(GRPC_CODES.resourceExhausted, why);
    }
    const answer = (): void => {
      if (!waiting.delete(answer) || call.closed) return;
      const nothing = { cycle: 0, atMs: 0, views: [] };
      begin(framesOf(inspectionFrames(request, core.inspection ?? nothing)));
    };
    waiting.add(answer);
    systemTimers.after(READER_MS_MAX, answer);
    act((nowMs) => core.inspected(nowMs));
  });
  streamed(methods, ShardLook.method.listMachines, (request, begin) => {
    begin(machineLooks(request, core));
  });
  streamed(methods, ShardLook.method.whatIf, ({ rollup }, begin) => {
    begin(whatIfFrames(rollup, core, systemTimers.nowMs()));
  });
  serveUnary(methods, ShardLook.method.listShortfalls, (_, call) => {
    admit(call);
    const { number, shortfalls } = core.last;
    return create(ListShortfallsResponseSchema, {
      ...{ cycle: BigInt(number), shortfalls: shortfallMessages(shortfalls) },
    });
  });
  return () => {
    for (const answer of [...waiting]) answer();
  };
}

function* framesOf(frames: Iterable<InspectNeedsResponse>): Generator<Uint8Array> {
  for (const frame of frames) yield toBinary(InspectNeedsResponseSchema, frame);
}

/** Throws `PermissionDenied` for who may not look. */
function admit(call: GrpcCall): void {
  if (mayRead(identityOf(call.connection))) return;
  const why = 'the certificate is neither readonly nor admin';
  throw new CallError(GRPC_CODES.permissionDenied, why);
}

/** A method that answers one request with frames, as fast as the reader takes them. */
function streamed<Input extends DescMessage>(
  methods: GrpcMethods,
  method: DescMethod & { readonly input: Input },
  ask: (
    request: MessageShape<Input>,
    begin: (frames: Iterable<Uint8Array>) => void,
    call: GrpcCall,
  ) => void,
): void {
  const path = pathOfMethod(method);
  methods.call(path, (call) => handlerOf(call, method.input, ask), 'server_stream');
}

function handlerOf<Input extends DescMessage>(
  call: GrpcCall,
  input: Input,
  ask: (
    request: MessageShape<Input>,
    begin: (frames: Iterable<Uint8Array>) => void,
    call: GrpcCall,
  ) => void,
): GrpcCallHandler {
  let request: MessageShape<Input> | undefined;
  let frames: Iterator<Uint8Array> | undefined;
  const send = (): void => {
    while (frames !== undefined && !call.closed && call.writable() > 0) {
      const { done, value } = frames.next();
      if (done === true) return call.finish(GRPC_CODES.ok);
      call.send(value);
    }
  };
  const begin = (all: Iterable<Uint8Array>): void => {
    frames = all[Symbol.iterator]();
    send();
  };
  return {
    onMessage: (bytes, start, end) => {
      try {
        request = fromBinary(input, Buffer.from(bytes.subarray(start, end)));
      } catch (error) {
        call.finish(GRPC_CODES.invalidArgument, (error as Error).message);
      }
    },
    onHalfClose: () => {
      if (request === undefined) return;
      try {
        admit(call);
        ask(request, begin, call);
      } catch (error) {
        refuse(call, error);
      }
    },
    onCancel: () => {
      frames = undefined;
    },
    onWritable: send,
  };
}

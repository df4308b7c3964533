/** The services of the contract over our gRPC: typed calls, both ends. */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, DescMethod, MessageShape } from '@bufbuild/protobuf';
import { blame, unawaited } from '@megaplane/base/deferred';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcClient, GrpcCode, GrpcMethods } from '@megaplane/wire/grpc';

/** Largest message: roll-ups and lists of machines outgrow what gRPC takes by itself. */
export const MESSAGE_BYTES_MAX: number = 256 * 1024 * 1024;

type Unary<Input extends DescMessage, Output extends DescMessage> = DescMethod & {
  readonly methodKind: 'unary';
  readonly input: Input;
  readonly output: Output;
};

/** A call that failed: the code tells the caller what to do. */
export class CallError extends Error {
  readonly code: GrpcCode;

  constructor(code: GrpcCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** `/package.Service/Method`. */
export function pathOfMethod(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Calls a unary method. Rejects with a `CallError`. */
export function callUnary<Input extends DescMessage, Output extends DescMessage>(
  client: GrpcClient,
  method: Unary<Input, Output>,
  request: MessageShape<Input>,
  timeoutMs: number,
): Promise<MessageShape<Output>> {
  return new Promise((resolve, reject) => {
    let answer: MessageShape<Output> | undefined;
    let wrong = '';
    client.unary(
      pathOfMethod(method),
      toBinary(method.input, request),
      {
        onMessage: (_call, bytes, start, end) => {
          try {
            answer = fromBinary(method.output, bytes.subarray(start, end));
          } catch (error) {
            wrong = (error as Error).message;
          }
        },
        onStatus: (_call, { code, message }) => {
          if (code !== GRPC_CODES.ok) reject(new CallError(code, message));
          else if (answer !== undefined) resolve(answer);
          else reject(new CallError(GRPC_CODES.internal, wrong || 'there is no answer'));
        },
      },
      { timeoutMs },
    );
  });
}

/**
 * Serves a unary method. The handler throws, or rejects with, a `CallError`; anything else is
 * `internal`.
 */
export function serveUnary<Input extends DescMessage, Output extends DescMessage>(
  methods: GrpcMethods,
  method: Unary<Input, Output>,
  handle: (
    request: MessageShape<Input>,
    call: GrpcCall,
  ) => MessageShape<Output> | Promise<MessageShape<Output>>,
): void {
  const answer = (call: GrpcCall, message: MessageShape<Output>): void => {
    if (call.closed) return;
    call.send(toBinary(method.output, message));
    call.finish(GRPC_CODES.ok);
  };
  methods.call(
    pathOfMethod(method),
    (call) => {
      let request: MessageShape<Input> | undefined;
      return {
        onMessage: (bytes, start, end) => {
          try {
            // what is kept of a message must not lie in what the wire reads into next
            request = fromBinary(method.input, Buffer.from(bytes.subarray(start, end)));
          } catch (error) {
            call.finish(GRPC_CODES.invalidArgument, (error as Error).message);
          }
        },
        onHalfClose: () => {
          if (request === undefined) return;
          try {
            const made = handle(request, call);
            if (!(made instanceof Promise)) return answer(call, made);
            unawaited(
              made.then(
                (message) => answer(call, message),
                (error: unknown) => refuse(call, error),
              ),
            );
          } catch (error) {
            refuse(call, error);
          }
        },
        onCancel: () => {},
      };
    },
    'unary',
  );
}

/** Ends a call with what a `CallError` says; anything else is `internal`, and is told of. */
export function refuse(call: GrpcCall, error: unknown): void {
  const isOwn = error instanceof CallError;
  if (!isOwn) blame(error, null);
  call.finish(isOwn ? error.code : GRPC_CODES.internal, (error as Error).message);
}

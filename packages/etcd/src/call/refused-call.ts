import type { GrpcCall, GrpcCallHandler } from '@megaplane/wire/grpc';
import type { EtcdFailure } from '../codec/failures.ts';

/** A call that is answered with a failure as soon as it says anything. */
export class RefusedCall implements GrpcCallHandler {
  readonly #call: GrpcCall;
  readonly #failure: EtcdFailure;

  constructor(call: GrpcCall, failure: EtcdFailure) {
    this.#call = call;
    this.#failure = failure;
  }

  onMessage(): void {
    this.onHalfClose();
  }

  onHalfClose(): void {
    if (!this.#call.closed) this.#call.finish(this.#failure.code, this.#failure.text);
  }

  onCancel(): void {}
}

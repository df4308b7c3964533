/** What the core of a shard wants done. The shell does it, and tells the core what came of it. */
import type { GrpcCode } from '@megaplane/wire/grpc';
import type {
  ConfigureRequest,
  CreateRequest,
  DeleteRequest,
  DrainRequest,
} from '../contract/tables/provider.ts';
import type { ShardMessage } from '../contract/tables/shard.ts';

export type ShardPayload = Exclude<ShardMessage['payload'], { case: undefined }>;

export type Change =
  | { readonly method: 'create'; readonly request: CreateRequest }
  | { readonly method: 'configure'; readonly request: ConfigureRequest }
  | { readonly method: 'drain'; readonly request: DrainRequest }
  | { readonly method: 'delete'; readonly request: DeleteRequest };

export type Method = Change['method'];

export type Effect =
  | { readonly kind: 'send'; readonly session: number; readonly payload: ShardPayload }
  | {
      readonly kind: 'close';
      readonly session: number;
      readonly code: GrpcCode;
      readonly message: string;
    }
  /** Answered by `called`, always: a call that is not answered in time has failed. */
  | {
      readonly kind: 'call';
      readonly provider: number;
      readonly call: number;
      readonly change: Change;
    }
  /** Answered by `listed`, always. */
  | {
      readonly kind: 'list';
      readonly provider: number;
      readonly list: number;
      readonly sinceRevision: Uint8Array;
    }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn' | 'error'; readonly message: string };

/** A call that failed, by the code of gRPC. */
export interface CallFailure {
  readonly code: GrpcCode;
  readonly message: string;
}

/** Collects effects until the shell takes them. */
export class Effects {
  #all: Effect[] = [];

  push(effect: Effect): void {
    this.#all.push(effect);
  }

  log(level: 'info' | 'warn' | 'error', message: string): void {
    this.#all.push({ kind: 'log', level, message });
  }

  take(): Effect[] {
    const all = this.#all;
    this.#all = [];
    return all;
  }
}

/** The interface of admission plug-ins, and what they answer. */
import type { Status } from '@megaplane/machinery/status';
import type { Exchange } from '@megaplane/wire/exchange';
import type { Call } from '../request/call.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import type { Admitted, Operation } from '../registry/rest/admitted.ts';

/** A plugin may change `object` in place, and refuses by returning a Status. */
export interface AdmissionPlugin {
  readonly name: string;
  /** Whether it has anything to say about such writes, ever; absent: about all. */
  readonly handles?: (served: Served, operation: Operation, subresource: string) => boolean;
  readonly mutate?: (write: Admitted) => Verdict;
  readonly validate?: (write: Admitted) => Verdict;
  /** After a pass of all mutating plugins: whether it wants them to look at the result again. */
  readonly wantsAgain?: (write: Admitted) => boolean;
  /** It has something to say about connections (exec, proxy), too; others are not asked. */
  readonly connects?: boolean;
  /**
   * Whether its verdict on one write holds for the next one that says the same: true where it
   * follows from the write and from objects alone, false (as where absent) where it asks somebody
   * or counts.
   */
  readonly repeats?: (request: RepeatedRequest) => boolean;
  /** Such a write was taken as admitted without asking, which is for those that count. */
  readonly repeated?: (request: Request) => void;
}

export type Admit = (refusal: Status | null) => void;

/** Plugins that a kind of write concerns, in order. */
export interface Asked {
  readonly mutating: readonly AdmissionPlugin[];
  readonly validating: readonly AdmissionPlugin[];
}

/** An answer that comes later: starts what has to be done, and calls back once. */
export type Later = (then: Admit) => void;

export type Verdict = Status | Later | null;

/** A write as far as it is known before its body is read. */
export interface Request {
  readonly world: World;
  readonly call: Call;
  readonly served: Served;
}

/** The same, as far as it is known where a short way looks whether it may be gone. */
export interface RepeatedRequest extends Pick<Request, 'world' | 'served'> {
  readonly call: Pick<Call, 'identity' | 'body'> & {
    readonly exchange: Pick<Exchange, 'method'>;
    readonly info: Pick<RequestInfo, 'namespace' | 'name' | 'subresource'>;
  };
}

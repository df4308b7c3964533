/**
 * Admission: plugins that look at a write after it was decoded and before it is stored.
 *
 * Most plugins answer at once. One that has to ask somebody else returns `Later`, and the write
 * goes on when the answer is there; nothing else waits for it. Which plugins a kind of write
 * concerns is found out once, so that a write that concerns none costs a look into a table.
 */
import { stringAt } from '@megaplane/machinery/json';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Connection } from '@megaplane/wire/exchange';
import type { Call } from '../request/call.ts';
import type { Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import type { AdmissionTimings } from './admission-timings.ts';
import type { Admitted, Operation } from '../registry/rest/admitted.ts';
import type {
  AdmissionPlugin,
  Admit,
  Asked,
  Later,
  Request,
  RepeatedRequest,
} from './admission-plugin.ts';

/** What is shorter is read, judged and stored in one turn. */
export const PAUSED_BYTES_MIN: number = 128 * 1024;

/** The last step of a valid write, when nothing but storage can still say no. */
export type Charge = (write: Admitted, then: Admit) => void;

type Planned = Pick<Admitted, 'served' | 'operation' | 'subresource'>;

interface Plan extends Asked {
  readonly plugins: readonly AdmissionPlugin[];
  /** The same with a look at the clock around each. */
  readonly timed: Asked | null;
  /** Those that may want a second pass. */
  readonly asking: readonly AdmissionPlugin[];
  /** Those that hear of repeated writes. */
  readonly counting: readonly AdmissionPlugin[];
  readonly isCharged: boolean;
}

export interface Charging {
  readonly handles: (served: Served, operation: Operation, subresource: string) => boolean;
  readonly charge: Charge;
  /** What `charge` would say, without charging. */
  readonly excess: (write: Admitted) => Status | null;
  /** Whether the namespace has no quotas. */
  readonly isIdle: (world: World, namespace: string) => boolean;
}

export class Admission {
  readonly #plugins: readonly AdmissionPlugin[];
  readonly #charging: Charging | null;
  readonly #timings: AdmissionTimings | null;
  /** By kind of object, operation and subresource. */
  readonly #plans = new WeakMap<Served, Map<Operation, Map<string, Plan>>>();
  #guard: (connection: Connection) => void = () => {};
  #isCounting = true;

  constructor(
    plugins: readonly AdmissionPlugin[],
    charging: Charging | null = null,
    timings: AdmissionTimings | null = null,
  ) {
    this.#plugins = plugins;
    this.#timings = timings;
    this.#charging = charging;
  }

  /** Told after a write went on in another turn than that of its request. */
  onLate(guard: (connection: Connection) => void): void {
    this.#guard = guard;
  }

  /** Whether what was admitted once may be taken as admitted again. */
  repeats(request: RepeatedRequest): boolean {
    const { served, call } = request;
    const operation = call.exchange.method === 'POST' ? 'CREATE' : 'UPDATE';
    const plan = this.#planOf({ served, operation, subresource: call.info.subresource });
    return plan.plugins.every(({ repeats }) => repeats?.(request) === true);
  }

  /** Whether `plugin` is one of those that look at what is created by such a request. */
  asks(plugin: AdmissionPlugin, { served, call }: Request): boolean {
    const { subresource } = call.info;
    return this.#planOf({ served, operation: 'CREATE', subresource }).plugins.includes(plugin);
  }

  /** A write was taken as admitted, in no time to speak of. */
  noteRepeated(request: Request): void {
    const { served, call } = request;
    const operation = call.exchange.method === 'POST' ? 'CREATE' : 'UPDATE';
    const plan = this.#planOf({ served, operation, subresource: call.info.subresource });
    this.#timings?.repeated(plan, operation);
    for (const { repeated } of plan.counting) repeated?.(request);
  }

  /**
   * All mutating plugins in order, until one refuses; then `then`, at once unless one is late.
   * Where a plugin wants it, all of them look once more at what the others made.
   */
  mutate(write: Admitted, told: Admit): void {
    const plan = this.#planOf(write);
    const timings = this.#timingsOf(plan, write);
    const then = timings === null ? told : timings.step(write.operation, 'admit', told);
    const ending = endingFault(write);
    if (ending !== null) {
      then(ending);
      return;
    }
    const { asking } = plan;
    const { mutating } = timings === null ? plan : (plan.timed ?? plan);
    if (asking.length === 0) {
      this.#mutateRest(write, mutating, 0, then);
      return;
    }
    this.#mutateRest(write, mutating, 0, (refusal) => {
      const isAgain = refusal === null && asking.some(({ wantsAgain }) => wantsAgain?.(write));
      if (isAgain) this.#mutateRest(write, mutating, 0, then);
      else then(refusal);
    });
  }

  /** Null where this write is not measured. */
  #timingsOf(plan: Plan, { call }: Admitted): AdmissionTimings | null {
    const timings = this.#timings;
    if (plan.timed === null || timings === null || call.isRehearsal) return null;
    return timings.isDue() ? timings : null;
  }

  #mutateRest(
    write: Admitted,
    plugins: readonly AdmissionPlugin[],
    from: number,
    then: Admit,
  ): void {
    for (let index = from; index < plugins.length; index++) {
      const verdict = plugins[index]?.mutate?.(write) ?? null;
      if (verdict === null) continue;
      this.#conclude(write, verdict, then, () => this.#mutateRest(write, plugins, index + 1, then));
      return;
    }
    then(null);
  }

  /** All validating plugins in order, until one refuses. */
  validate(write: Admitted, then: Admit): void {
    const plan = this.#planOf(write);
    const timings = this.#timingsOf(plan, write);
    if (timings === null || plan.timed === null) {
      this.#validateRest(write, plan.validating, 0, then);
      return;
    }
    const timed = timings.step(write.operation, 'validate', then);
    this.#validateRest(write, plan.timed.validating, 0, timed);
  }

  #validateRest(
    write: Admitted,
    plugins: readonly AdmissionPlugin[],
    from: number,
    then: Admit,
  ): void {
    for (let index = from; index < plugins.length; index++) {
      const verdict = plugins[index]?.validate?.(write) ?? null;
      if (verdict === null) continue;
      const rest = (): void => this.#validateRest(write, plugins, index + 1, then);
      this.#conclude(write, verdict, then, rest);
      return;
    }
    then(null);
  }

  /** Both phases, for writes that nothing has to check in between. */
  admit(write: Admitted, then: Admit): void {
    this.mutate(write, (refusal) => {
      if (refusal === null) this.validate(write, then);
      else then(refusal);
    });
  }

  /** Whether what such a request makes is counted by quotas that there are. */
  isCharged({ world, served, call }: Request): boolean {
    const planned = { served, operation: 'CREATE', subresource: call.info.subresource } as const;
    if (this.#charging === null || !this.#planOf(planned).isCharged) return false;
    return !this.#charging.isIdle(world, call.info.namespace);
  }

  /** Runs `work`, which must end in this turn, without counting anything against quotas. */
  uncharged(work: () => void): void {
    this.#isCounting = false;
    try {
      work();
    } finally {
      this.#isCounting = true;
    }
  }

  /** Counts the write against quotas; comes right before it is stored. */
  charge(write: Admitted, then: Admit): void {
    const isCounting = this.#isCounting && this.#planOf(write).isCharged;
    if (this.#charging === null || !isCounting) then(null);
    else this.#charging.charge(write, then);
  }

  /** What quotas have against the write, which is not made. */
  excess(write: Admitted): Status | null {
    if (this.#charging === null || !this.#planOf(write).isCharged) return null;
    return this.#charging.excess(write);
  }

  /** Takes long work before the write goes on, perhaps in a later turn. */
  walk(write: Admitted, steps: Iterator<void>, then: () => void): void {
    const { call } = write;
    const { edge } = write.world;
    if (edge.walk === undefined) {
      then();
      return;
    }
    const work: Later = (done) => {
      const finish = (): void => {
        if (!call.exchange.closed && call.code === 0) done(null);
      };
      edge.walk?.(steps, () => call.keepBody(), finish);
    };
    this.#conclude(write, work, then, then);
  }

  /**
   * Goes on with a write of so many bytes: of large ones, whose steps take ten milliseconds each
   * for a megabyte, in a later turn. Whoever left meanwhile is not served.
   */
  pause({ call, world }: Request, bytes: number, then: () => void): void {
    if (bytes < PAUSED_BYTES_MIN) {
      then();
      return;
    }
    call.keepBody();
    world.edge.deferPiece(() => this.resume(call, then));
  }

  /** Goes on with a request in another turn than its own; whoever left meanwhile is not served. */
  resume(call: Call, then: () => void): void {
    if (call.exchange.closed || call.code !== 0) return;
    then();
    this.#guard(call.exchange.connection);
  }

  #conclude(write: Admitted, verdict: Status | Later, then: Admit, rest: () => void): void {
    if (typeof verdict !== 'function') {
      then(verdict);
      return;
    }
    let isLate = false;
    verdict((refusal) => {
      if (refusal === null) rest();
      else then(refusal);
      if (isLate) this.#guard(write.call.exchange.connection);
    });
    isLate = true;
  }

  #planOf({ served, operation, subresource }: Planned): Plan {
    let operations = this.#plans.get(served);
    if (operations === undefined) this.#plans.set(served, (operations = new Map()));
    let plans = operations.get(operation);
    if (plans === undefined) operations.set(operation, (plans = new Map()));
    let plan = plans.get(subresource);
    if (plan === undefined) {
      plan = this.#makePlan({ served, operation, subresource });
      plans.set(subresource, plan);
    }
    return plan;
  }

  #makePlan({ served, operation, subresource }: Planned): Plan {
    const own = this.#plugins.filter(
      ({ handles, connects }) =>
        (operation !== 'CONNECT' || connects === true) &&
        (handles === undefined || handles(served, operation, subresource)),
    );
    const timings = this.#timings;
    return {
      plugins: own,
      ...askedOf(own),
      timed: timings && askedOf(own.map((plugin) => timings.plugin(plugin, operation))),
      asking: own.filter(({ wantsAgain }) => wantsAgain !== undefined),
      counting: own.filter(({ repeated }) => repeated !== undefined),
      isCharged: this.#charging?.handles(served, operation, subresource) ?? false,
    };
  }
}

function askedOf(plugins: readonly AdmissionPlugin[]): Asked {
  return {
    mutating: plugins.filter(({ mutate }) => mutate !== undefined),
    validating: plugins.filter(({ validate }) => validate !== undefined),
  };
}

/** Nothing is created any more of a definition that ends. */
function endingFault({ served, operation, subresource, object }: Admitted): Status | null {
  if (served.custom?.kind.facts.state.isTerminating !== true) return null;
  if (operation !== 'CREATE' || subresource !== '') return null;
  const name = stringAt(object ?? {}, 'metadata', 'name');
  const why = 'create not allowed while custom resource definition is terminating';
  return forbidden(served.plural, name, why);
}

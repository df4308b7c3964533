/** Impersonation: acting as somebody else, if one may. */
import { failed, success, type Result, type Status } from '@megaplane/machinery/status';
import {
  whenDecided,
  type Attributes,
  type Authorizer,
  type Decision,
} from '../../authorization/authorization.ts';
import type { Call } from '../../request/call.ts';
import type { Identity } from '../../request/identity.ts';
import type { MetricsRegistry } from '../../metrics/metrics-registry.ts';
import { readWanted, type Wanted } from './impersonation-headers.ts';
import { ImpersonationMetrics } from './impersonation-metrics.ts';
import { MODES, type Finding, type Mode } from './impersonation-modes.ts';

/** Users whose last mode is remembered (upstream's `modeIndexCache`). */
const USERS_MAX = 10_000;

export class Impersonation {
  readonly #metrics = new ImpersonationMetrics();
  readonly #authorize: Authorizer;
  readonly #nowMs: () => number;
  /** The mode by which a user last came to act as another: it is tried first, and the words of
   *  its refusal are those that the user hears. */
  readonly #lastModes = new Map<string, Mode>();

  constructor(authorize: Authorizer, nowMs: () => number, metrics: MetricsRegistry) {
    this.#authorize = authorize;
    this.#nowMs = nowMs;
    metrics.addSource((lines) => this.#metrics.render(lines));
  }

  /**
   * Finds the identity that a request acts as: its own without the headers, or the one that they
   * name. `attributes` is what the request itself does. `then` is called in this turn unless
   * somebody else has to be asked.
   */
  act(call: Call, attributes: Attributes, then: (acting: Result<Identity>) => void): void {
    const wanted = readWanted(call.exchange.fields());
    if (!wanted.ok) then(wanted);
    else if (wanted.value === null) then(success(call.identity));
    else this.#try(call, wanted.value, attributes, call.timed('impersonation', then));
  }

  #try(
    call: Call,
    wanted: Wanted,
    attributes: Attributes,
    then: (acting: Result<Identity>) => void,
  ): void {
    const { identity } = call;
    const startedMs = this.#nowMs();
    const last = this.#lastModes.get(identity.user);
    const modes = last === undefined ? MODES : [last, ...MODES.filter((mode) => mode !== last)];
    let refusal: Status | null = null;
    const tryFrom = (index: number): void => {
      const mode = modes[index];
      if (mode === undefined) {
        // legacy says something of every user
        if (refusal === null) throw new Error('no mode of impersonation was refused');
        this.#metrics.attempted('', 'denied', this.#nowMs() - startedMs);
        then(failed(refusal));
        return;
      }
      this.#drive(call, mode.check(wanted, identity, attributes), mode, (finding) => {
        if (finding?.kind !== 'acting') {
          refusal ??= finding?.status ?? null;
          tryFrom(index + 1);
          return;
        }
        this.#remember(identity.user, mode);
        this.#metrics.attempted(mode.name, 'allowed', this.#nowMs() - startedMs);
        call.constraint = mode.constraint;
        then(success(finding.identity));
      });
    };
    tryFrom(0);
  }

  /** Asks the questions of a mode one after the other. */
  #drive(
    call: Call,
    asking: ReturnType<Mode['check']>,
    mode: Mode,
    then: (finding: Finding) => void,
  ): void {
    const go = (
      step: IteratorResult<{ identity: Identity; attributes: Attributes }, Finding>,
    ): void => {
      if (step.done === true) {
        then(step.value);
        return;
      }
      const { identity, attributes } = step.value;
      const askedMs = this.#nowMs();
      const hear = (decision: Decision): void => {
        const said = decision.allowed ? 'allowed' : 'denied';
        this.#metrics.asked(mode.name, said, this.#nowMs() - askedMs);
        go(asking.next(decision));
      };
      const decision = this.#authorize(identity, attributes);
      if (decision.pending === undefined) {
        hear(decision);
        return;
      }
      call.keepBody();
      whenDecided(this.#authorize, identity, attributes, hear);
    };
    // what is sent before the first question is not looked at
    go(asking.next({ allowed: false, reason: '' }));
  }

  #remember(user: string, mode: Mode): void {
    this.#lastModes.delete(user);
    this.#lastModes.set(user, mode);
    if (this.#lastModes.size <= USERS_MAX) return;
    for (const oldest of this.#lastModes.keys()) {
      this.#lastModes.delete(oldest);
      return;
    }
  }
}

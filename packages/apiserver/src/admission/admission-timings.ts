/**
 * How long plugins and their steps take, under upstream's names (apiserver/pkg/admission/metrics).
 *
 * Looking at the clock around every plugin would be felt where ten thousand pods a second are
 * made: then one write in some is measured, and stands for those that are not.
 */
import { Histogram } from '../metrics/histogram.ts';
import { printFamily } from '../metrics/metric-families.ts';
import type { Admitted, Operation } from '../registry/rest/admitted.ts';
import type { AdmissionPlugin, Admit, Asked, Later, Verdict } from './admission-plugin.ts';

const PREFIX = 'apiserver_admission';
const BOUNDS_S = [0.005, 0.025, 0.1, 0.5, 1, 2.5] as const;
/** Writes of a second that are measured each. */
const EACH_MAX = 200;
/** Of the others, one of so many. */
const SHARE = 16;

export type StepType = 'admit' | 'validate';

/** One plugin or step, by what came of it. */
class Outcomes {
  readonly passed: Histogram = new Histogram(BOUNDS_S);
  readonly refused: Histogram = new Histogram(BOUNDS_S);

  print(lines: string[], name: string, labels: (isRejected: boolean) => string): void {
    if (this.passed.count > 0) this.passed.print(lines, name, labels(false));
    if (this.refused.count > 0) this.refused.print(lines, name, labels(true));
  }
}

export class AdmissionTimings {
  readonly #clockMs: () => number;
  readonly #steps = new Map<string, Outcomes>();
  readonly #plugins = new Map<string, Outcomes>();
  readonly #repeated = new Map<Asked, { readonly operation: Operation; count: number }>();
  #secondMs = 0;
  #writes = 0;
  /** Writes that the one under measure stands for. */
  #weight = 1;

  constructor(clockMs: () => number) {
    this.#clockMs = clockMs;
  }

  /** Whether a step is to be measured. */
  isDue(): boolean {
    const nowMs = this.#clockMs();
    if (nowMs - this.#secondMs >= 1000) {
      this.#secondMs = nowMs;
      this.#writes = 0;
    }
    this.#writes++;
    const isEach = this.#writes <= EACH_MAX;
    this.#weight = isEach ? 1 : SHARE;
    return isEach || this.#writes % SHARE === 0;
  }

  /** Measures a step from now until `then` is called. */
  step(operation: Operation, type: StepType, then: Admit): Admit {
    const done = this.#measure(outcomesOf(this.#steps, `${operation} ${type}`));
    return (refusal) => {
      done(refusal !== null);
      then(refusal);
    };
  }

  /** The same plugin, measured. */
  plugin(plugin: AdmissionPlugin, operation: Operation): AdmissionPlugin {
    const { name, mutate, validate } = plugin;
    const timed = (type: StepType, ask: (write: Admitted) => Verdict) => {
      const key = `${name} ${operation} ${type}`;
      return (write: Admitted): Verdict => {
        const done = this.#measure(outcomesOf(this.#plugins, key));
        const verdict = ask(write);
        if (typeof verdict === 'function') return concluding(verdict, done);
        done(verdict !== null);
        return verdict;
      };
    };
    return {
      name,
      ...(mutate === undefined ? {} : { mutate: timed('admit', (write) => mutate(write)) }),
      ...(validate === undefined
        ? {}
        : { validate: timed('validate', (write) => validate(write)) }),
    };
  }

  /** A write that needed no plugin counts where it would have been. */
  repeated(asked: Asked, operation: Operation): void {
    let known = this.#repeated.get(asked);
    if (known === undefined) this.#repeated.set(asked, (known = { operation, count: 0 }));
    known.count++;
  }

  #takeRepeated(): void {
    for (const [{ mutating, validating }, { operation, count }] of this.#repeated) {
      for (const [type, plugins] of [
        ['admit', mutating],
        ['validate', validating],
      ] as const) {
        outcomesOf(this.#steps, `${operation} ${type}`).passed.observe(0, count);
        for (const { name } of plugins) {
          outcomesOf(this.#plugins, `${name} ${operation} ${type}`).passed.observe(0, count);
        }
      }
    }
    this.#repeated.clear();
  }

  #measure(outcomes: Outcomes): (isRefused: boolean) => void {
    const startMs = this.#clockMs();
    const weight = this.#weight;
    return (isRefused) => {
      const seconds = (this.#clockMs() - startMs) / 1000;
      outcomes[isRefused ? 'refused' : 'passed'].observe(seconds, weight);
    };
  }

  print(lines: string[]): void {
    this.#takeRepeated();
    const step = `${PREFIX}_step_admission_duration_seconds`;
    printFamily(lines, step);
    for (const [key, outcomes] of this.#steps) {
      const [operation = '', type = ''] = key.split(' ');
      outcomes.print(lines, step, (isRejected) => labelsOf(operation, isRejected, type));
    }
    const controller = `${PREFIX}_controller_admission_duration_seconds`;
    printFamily(lines, controller);
    for (const [key, outcomes] of this.#plugins) {
      const [name = '', operation = '', type = ''] = key.split(' ');
      const labels = (isRejected: boolean): string =>
        `name="${name}",${labelsOf(operation, isRejected, type)}`;
      outcomes.print(lines, controller, labels);
    }
  }
}

function labelsOf(operation: string, isRejected: boolean, type: string): string {
  return `operation="${operation}",rejected="${isRejected}",type="${type}"`;
}

function outcomesOf(all: Map<string, Outcomes>, key: string): Outcomes {
  let found = all.get(key);
  if (found === undefined) all.set(key, (found = new Outcomes()));
  return found;
}

function concluding(later: Later, done: (isRefused: boolean) => void): Later {
  return (then) => {
    later((refusal) => {
      done(refusal !== null);
      then(refusal);
    });
  };
}

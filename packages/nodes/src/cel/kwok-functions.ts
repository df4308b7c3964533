/** Functions that kwok adds to CEL, and the environment of the expressions in stages. */
import { tableOf } from '@megaplane/machinery/cel/functions';
import { celEnvironment } from '@megaplane/machinery/cel/program';
import { DYN } from '@megaplane/machinery/cel/typing';
import { CelError, Timestamp, type CelValue } from '@megaplane/machinery/cel/values';
import { stringAt } from '@megaplane/machinery/json';
import { GoStruct, quantityOf } from './go-struct.ts';
import type { Environment } from '@megaplane/machinery/environment';

/** Time and chance, as expressions ask for them. */
export interface ExpressionClock {
  nowMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
}

type Library = Parameters<typeof tableOf>[0][number];

/** Functions of all expressions. */
export function kwokLibrary(clock: ExpressionClock): Library {
  const seconds = (value: CelValue): CelValue =>
    value instanceof Timestamp
      ? // as UnixNano, which overflows where there is no time
        Number(BigInt.asIntN(64, value.nanos)) / 1e9
      : new CelError('UnixSecond: no time');
  return {
    'now: Now(): timestamp': () => new Timestamp(BigInt(Math.trunc(clock.nowMs())) * 1_000_000n),
    'rand: Rand(): double': () => clock.random(),
    'unix: UnixSecond(timestamp): double': seconds,
    'unix_of: timestamp . UnixSecond(): double': seconds,
    'quantity: Quantity(string): double': (text: string) => quantityOf(text),
    ...MIXED,
  };
}

/** Quantities are doubles here, and kwok lets them be computed with whole numbers, too. */
const MIXED: Library = {
  'mixed_add: _+_(double, int): double': (a: number, b: bigint) => a + Number(b),
  'mixed_sub: _-_(double, int): double': (a: number, b: bigint) => a - Number(b),
  'mixed_mul: _*_(double, int): double': (a: number, b: bigint) => a * Number(b),
  'mixed_mul_of: _*_(int, double): double': (a: bigint, b: number) => Number(a) * b,
  'mixed_div: _/_(double, int): double': (a: number, b: bigint) => a / Number(b),
};

/** What the expressions of stages may use: `self`, and kwok's functions. */
export function stageEnvironment(clock: ExpressionClock): Environment {
  const base = celEnvironment({ variables: { self: DYN }, isHomogeneous: false });
  const functions = new Map(base.functions);
  const since = (of: CelValue): CelValue => {
    if (!(of instanceof GoStruct)) return new CelError('SinceSecond takes a Pod or a Node');
    const created = Date.parse(stringAt(of.json, 'metadata', 'creationTimestamp'));
    return Number.isNaN(created) ? 0 : (clock.nowMs() - created) / 1000;
  };
  const own: Library = {
    ...kwokLibrary(clock),
    'since: SinceSecond(dyn): double': since,
    'since_of: dyn . SinceSecond(): double': since,
  };
  for (const [name, overloads] of tableOf([own])) {
    functions.set(name, [...(functions.get(name) ?? []), ...overloads]);
  }
  return { ...base, functions };
}

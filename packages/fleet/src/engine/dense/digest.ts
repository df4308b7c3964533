// data plane: whether two decisions are one
import type { DenseDecision, DenseEngine } from './engine.ts';

const PRIME = 16_777_619;
const BASIS = 0x811c9dc5;

/** A number that two decisions over the same tables share if they decide the same. */
export function digestOf(engine: DenseEngine, decision: DenseDecision): number {
  let hash = BASIS;
  const add = (value: number): void => {
    hash = Math.imul(hash ^ (value | 0), PRIME);
  };
  for (const demand of engine.tables.demands) {
    add(demand.normal.count);
    for (let position = 0; position < demand.normal.count; position++) {
      add(demand.domain[position]!);
      add(demand.isSatisfiable[position]!);
      const [start, end] = [demand.starts[position]!, demand.ends[position]!];
      add(end - start);
      for (let at = start; at < end; at++) add(demand.claims[at]!);
    }
    for (const slot of engine.surplusOf(demand)) add(slot);
  }
  for (const { demand, position, held } of decision.buyers) {
    add(demand.id);
    add(position);
    for (const slot of held) add(slot);
  }
  for (const { slot, graceSeconds } of decision.preempted) {
    add(slot);
    add(graceSeconds);
  }
  for (const { buyer, victims } of decision.unresolved) {
    add(buyer.demand.id);
    add(buyer.position);
    add(victims);
  }
  return hash >>> 0;
}

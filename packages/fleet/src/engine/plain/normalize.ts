/** Gangs that fit one machine become plain demand, section 4.4. */
import { type Amounts, type Millis, coversMillis, millisOf, scale } from '../amounts.ts';
import { type Machine, matches } from '../machine.ts';
import { type Profile, sameKeyOf, withoutSame } from '../profile.ts';
import type { Row } from '../row.ts';
import { byUtf8 } from '../../contract/text-order.ts';
import type { Snapshot } from './snapshot.ts';

interface Folded {
  readonly first: Row;
  readonly profile: Profile;
  /** What orders folded rows. */
  readonly key: readonly [cluster: string, fingerprint: string, aggregate: string];
  count: number;
  arrival: number;
}

/**
 * Rows as the phases take them: first those that stay as they are, in their order, then the folded
 * ones by cluster, fingerprint and size. The sum of a folded row has as a least unit one gang.
 */
export function normalize(rows: readonly Row[], snapshot: Snapshot): readonly Row[] {
  const kept: Row[] = [];
  const folded = new Map<string, Folded>();
  for (const row of rows) {
    const isGang = sameKeyOf(row.profile) !== undefined;
    const millis = millisOf(row.aggregate);
    if (!isGang || !fitsOne(row, millis, snapshot)) {
      kept.push(row);
      continue;
    }
    fold(folded, row, millis);
  }
  const sums = [...folded.values()].toSorted((left, right) => {
    const at = left.key.findIndex((text, index) => text !== right.key[index]);
    return at < 0 ? 0 : byUtf8(left.key[at] ?? '', right.key[at] ?? '');
  });
  return [...kept, ...sums.map(sumOf)];
}

function fold(folded: Map<string, Folded>, row: Row, millis: Millis): void {
  const profile = withoutSame(row.profile);
  const size = [...millis].map(([name, milli]) => `${name}=${milli};`).join('');
  const key = [row.cluster, profile.fingerprint, size] as const;
  const known = folded.get(key.join('\0'));
  if (known === undefined) {
    folded.set(key.join('\0'), { first: row, profile, key, count: 1, arrival: row.arrival });
    return;
  }
  known.count++;
  // zero stands for a roll-up that tells no time
  const isEarlier = known.arrival === 0 || row.arrival < known.arrival;
  if (row.arrival !== 0 && isEarlier) known.arrival = row.arrival;
}

function sumOf({ first, profile, count, arrival }: Folded): Row {
  const aggregate: Amounts = scale(first.aggregate, count);
  return { ...first, profile, group: '', aggregate, minUnit: first.aggregate, arrival };
}

/** True if some machine could hold the whole gang, taken or not. */
function fitsOne(row: Row, millis: Millis, snapshot: Snapshot): boolean {
  const fits = (machine: Machine): boolean =>
    matches(row.profile, machine) && coversMillis(millisOf(machine.allocatable), millis);
  return (
    snapshot.boundTo(row.cluster).some(fits) ||
    snapshot.selected('Idle', row.profile).some(fits) ||
    snapshot.selected('Speculative', row.profile).some(fits)
  );
}

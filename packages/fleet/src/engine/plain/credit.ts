/** What exists is credited to rows before anything is acquired, section 4.5. */
import { type Amounts, covers, isZero, subtract } from '../amounts.ts';
import { type Machine, matches } from '../machine.ts';
import { sameKeyOf } from '../profile.ts';
import type { Row } from '../row.ts';
import { type Claims, RETRIES_MAX } from './claims.ts';
import { type Choice, type Consumed, chooseDomain, consume } from './domains.ts';
import type { Snapshot } from './snapshot.ts';

export interface Credits {
  /** What each row still wants, in the order of the rows. */
  readonly remaining: ReadonlyMap<Row, Amounts>;
  /** Of Same rows that had a domain to choose. */
  readonly choices: ReadonlyMap<Row, Choice>;
}

export function credit(
  rows: readonly Row[],
  parked: ReadonlySet<Row>,
  snapshot: Snapshot,
  claims: Claims,
): Credits {
  const consumed: Consumed = new Set();
  const world = { snapshot, claims, consumed };
  const remaining = new Map<Row, Amounts>(rows.map((row) => [row, row.aggregate]));
  const choices = new Map<Row, Choice>();
  const byPriority = rows.toSorted((left, right) => right.profile.priority - left.profile.priority);
  for (const row of byPriority) {
    const sameKey = sameKeyOf(row.profile);
    if (sameKey === undefined) {
      remaining.set(row, creditPlain(row, snapshot, claims));
      continue;
    }
    const isParked = parked.has(row);
    const choice = chooseDomain(row, sameKey, isParked, world);
    if (choice === undefined) continue;
    choices.set(row, choice);
    const rest = claimInTurn(row, choice.creditable, claims);
    remaining.set(row, rest);
    if (!isParked && !isZero(rest)) consume(row, sameKey, choice.domain, rest, world);
  }
  return { remaining, choices };
}

function creditPlain(row: Row, snapshot: Snapshot, claims: Claims): Amounts {
  const creating = snapshot.inState('Creating').filter(({ stamp }) => {
    return stamp.fingerprint === row.profile.fingerprint;
  });
  const useful = [...snapshot.boundTo(row.cluster), ...creating].filter((machine) => {
    if (claims.isClaimed(machine) || !matches(row.profile, machine)) return false;
    return covers(machine.allocatable, row.minUnit);
  });
  return claimInTurn(row, useful, claims);
}

/** Claims whole machines until the row is covered; answers what is left to cover. */
function claimInTurn(row: Row, machines: readonly Machine[], claims: Claims): Amounts {
  let remaining = row.aggregate;
  for (const machine of machines) {
    if (isZero(remaining)) break;
    claims.take(machine, row, RETRIES_MAX);
    remaining = subtract(remaining, machine.allocatable);
  }
  return remaining;
}

/** What is missing is taken from Idle and Speculative machines, section 4.8. */
import { type Amounts, NO_AMOUNTS, add, covers, isZero, subtract } from '../amounts.ts';
import { bucketDollars, effectiveCost } from '../cost.ts';
import { type Machine, attributeOf } from '../machine.ts';
import { type Spread, sameKeyOf, strictSpreadOf } from '../profile.ts';
import type { Row } from '../row.ts';
import { byUtf8 } from '../../contract/text-order.ts';
import { type Claims, RETRIES_MAX } from './claims.ts';
import type { Choice } from './domains.ts';
import type { Snapshot } from './snapshot.ts';

interface Queued {
  readonly row: Row;
  readonly retries: number;
}

interface World {
  readonly snapshot: Snapshot;
  readonly claims: Claims;
  readonly choices: ReadonlyMap<Row, Choice>;
}

/** Serves rows in their order; one that is driven out of machines comes again at the end. */
export function acquire(rows: readonly Row[], world: World): void {
  const queue: Queued[] = rows.map((row) => ({ row, retries: RETRIES_MAX }));
  // bounded: each time round costs the one that was driven out a retry
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const state of ['Idle', 'Speculative'] as const) queue.push(...serve(next, state, world));
  }
}

function serve({ row, retries }: Queued, state: 'Idle' | 'Speculative', world: World): Queued[] {
  const { claims } = world;
  const driven: Queued[] = [];
  const isTopological =
    sameKeyOf(row.profile) !== undefined || strictSpreadOf(row.profile) !== undefined;
  const pool = poolOf(row, state, world.snapshot);
  for (;;) {
    const deficit = claims.deficitOf(row);
    if (isZero(deficit)) break;
    const found = candidates(row, pool, deficit, world);
    if (found.length === 0) break;
    driven.push(...takeAll(found, { row, retries }, claims));
    // the second time it might choose another domain
    if (isTopological) break;
  }
  return driven;
}

/** Claims machines for a row; answers those that it drove out and that may try again. */
function takeAll(machines: readonly Machine[], { row, retries }: Queued, claims: Claims): Queued[] {
  const driven = new Map<Row, number>();
  for (const machine of new Set(machines)) {
    const loser = claims.take(machine, row, retries);
    if (loser === undefined) continue;
    driven.set(loser.row, Math.min(loser.retries, driven.get(loser.row) ?? Infinity));
  }
  return [...driven]
    .map(([loser, left]) => ({ row: loser, retries: left }))
    .filter((loser) => loser.retries > 0);
}

/** What a row could use of a state, the cheapest first; claims are not looked at. */
function poolOf(row: Row, state: 'Idle' | 'Speculative', snapshot: Snapshot): readonly Machine[] {
  const penalty = bucketDollars(row.profile.interruptionBucket);
  const cost = ({ price, interruptionProbability }: Machine): number =>
    state === 'Idle' ? price : effectiveCost(price, interruptionProbability, penalty);
  return snapshot
    .matching(state, row.profile)
    .filter(({ allocatable }) => covers(allocatable, row.minUnit))
    .toSorted((left, right) => compareNumbers(cost(left), cost(right)) || byId(left, right));
}

const byId = (left: Machine, right: Machine): number => byUtf8(left.id, right.id);

// not by subtraction: two that are pinned cost infinitely much
function compareNumbers(left: number, right: number): number {
  return left === right ? 0 : left < right ? -1 : 1;
}

function candidates(
  row: Row,
  pool: readonly Machine[],
  deficit: Amounts,
  { claims, choices }: World,
): readonly Machine[] {
  const isOpen = (machine: Machine): boolean => claims.isOpenTo(machine, row);
  const sameKey = sameKeyOf(row.profile);
  if (sameKey !== undefined) {
    const domain = choices.get(row)?.domain ?? '';
    const open = pool.filter(isOpen);
    const isHere = (machine: Machine): boolean => attributeOf(machine, sameKey) === domain;
    if (domain !== '') return untilCovered(open.filter(isHere), deficit);
    return untilCovered(cheapestDomain(open, sameKey, deficit), deficit);
  }
  const spread = strictSpreadOf(row.profile);
  if (spread !== undefined) return spreadOut(pool.filter(isOpen), spread, deficit);
  const free = pool.filter((machine) => !claims.isClaimed(machine));
  const held = pool.filter((machine) => claims.isClaimed(machine) && isOpen(machine));
  return untilCovered([...free, ...held], deficit);
}

function untilCovered(machines: readonly Machine[], deficit: Amounts): readonly Machine[] {
  const found: Machine[] = [];
  let remaining = deficit;
  for (const machine of machines) {
    if (isZero(remaining)) break;
    found.push(machine);
    remaining = subtract(remaining, machine.allocatable);
  }
  return found;
}

/** Where a gang goes for which no domain was chosen. */
function cheapestDomain(
  machines: readonly Machine[],
  key: string,
  deficit: Amounts,
): readonly Machine[] {
  const groups = groupBy(machines, key);
  const ranked = [...groups].map(([value, members]) => {
    const total = members.reduce((sum, { allocatable }) => add(sum, allocatable), NO_AMOUNTS);
    return { value, members, isAtomic: covers(total, deficit) };
  });
  const headPrice = (members: readonly Machine[]): number => members[0]?.price ?? 0;
  ranked.sort((left, right) => {
    return (
      Number(right.isAtomic) - Number(left.isAtomic) ||
      (left.isAtomic ? 0 : right.members.length - left.members.length) ||
      headPrice(left.members) - headPrice(right.members) ||
      byUtf8(left.value, right.value)
    );
  });
  return ranked[0]?.members ?? [];
}

function groupBy(machines: readonly Machine[], key: string): Map<string, Machine[]> {
  const groups = new Map<string, Machine[]>();
  for (const machine of machines) {
    const value = attributeOf(machine, key);
    if (value === undefined) continue;
    const group = groups.get(value);
    if (group === undefined) groups.set(value, [machine]);
    else group.push(machine);
  }
  return groups;
}

/** The cheapest next machine, as long as its domain is not too far ahead of the others. */
function spreadOut(
  machines: readonly Machine[],
  { topologyKey, maxSkew }: Spread,
  deficit: Amounts,
): readonly Machine[] {
  const groups = [...groupBy(machines, topologyKey)].map(([value, members]) => ({
    value,
    members,
    taken: 0,
  }));
  const skew = Math.max(1, maxSkew);
  const found: Machine[] = [];
  let remaining = deficit;
  while (!isZero(remaining)) {
    const least = Math.min(...groups.map(({ taken }) => taken));
    const ready = groups
      .filter(({ taken }) => taken <= least + skew - 1)
      .flatMap((group) => {
        const head = group.members[group.taken];
        return head === undefined ? [] : [{ group, head }];
      });
    ready.sort((left, right) => {
      return left.head.price - right.head.price || byUtf8(left.group.value, right.group.value);
    });
    const [best] = ready;
    if (best === undefined) break;
    best.group.taken++;
    found.push(best.head);
    remaining = subtract(remaining, best.head.allocatable);
  }
  return found;
}

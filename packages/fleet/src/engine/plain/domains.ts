/** Which domain a gang lives in, section 4.6. */
import { type Amounts, type Millis, addMillis, coverage } from '../amounts.ts';
import { coversMillis, millisOf, worstPerMille } from '../amounts.ts';
import { type Machine, attributeOf, matches } from '../machine.ts';
import type { DomainCoverage, Row } from '../row.ts';
import { byUtf8 } from '../../contract/text-order.ts';
import type { Claims } from './claims.ts';
import type { Snapshot } from './snapshot.ts';

export const CANDIDATES_MAX = 6;
const NONE: Millis = new Map();

/** What one domain could give to one gang. */
interface Domain {
  readonly value: string;
  readonly creditable: Machine[];
  count: number;
  total: Millis;
  creditableTotal: Millis;
  ownTotal: Millis;
}

/** What was chosen for a gang, and what stood for choice. */
export interface Choice {
  readonly domain: string;
  readonly satisfiable: boolean;
  readonly candidates: readonly DomainCoverage[];
  /** The gang's own machines before others, in each what is kept first before others. */
  readonly creditable: readonly Machine[];
}

/** Idle and Speculative machines that gangs before this one are thought to take. */
export type Consumed = Set<Machine>;

/** True if a machine was bound, or is being made, for this very row. */
export function isOwn(machine: Machine, row: Row): boolean {
  const { fingerprint, group } = machine.stamp;
  return fingerprint === row.profile.fingerprint && group === row.group;
}

export function chooseDomain(
  row: Row,
  sameKey: string,
  isParked: boolean,
  world: { readonly snapshot: Snapshot; readonly claims: Claims; readonly consumed: Consumed },
): Choice | undefined {
  const { snapshot, claims, consumed } = world;
  const minUnit = millisOf(row.minUnit);
  const domains = new Map<string, Domain>();
  const fit = (machine: Machine): Domain | undefined => {
    const value = attributeOf(machine, sameKey);
    if (value === undefined || claims.isClaimed(machine)) return undefined;
    const millis = millisOf(machine.allocatable);
    if (!matches(row.profile, machine) || !coversMillis(millis, minUnit)) return undefined;
    const domain = domainOf(domains, value);
    domain.count++;
    domain.total = addMillis(domain.total, millis);
    return domain;
  };
  const creating = snapshot.inState('Creating').filter((machine) => isOwn(machine, row));
  for (const machine of [...snapshot.boundTo(row.cluster), ...creating]) {
    const domain = fit(machine);
    if (domain === undefined) continue;
    const millis = millisOf(machine.allocatable);
    domain.creditable.push(machine);
    domain.creditableTotal = addMillis(domain.creditableTotal, millis);
    if (isOwn(machine, row)) domain.ownTotal = addMillis(domain.ownTotal, millis);
  }
  if (!isParked) {
    for (const machine of acquirable(row, snapshot)) if (!consumed.has(machine)) fit(machine);
  }
  return choiceOf([...domains.values()], row);
}

function domainOf(domains: Map<string, Domain>, value: string): Domain {
  const known = domains.get(value);
  if (known !== undefined) return known;
  const totals = { total: NONE, creditableTotal: NONE, ownTotal: NONE };
  const domain: Domain = { value, creditable: [], count: 0, ...totals };
  domains.set(value, domain);
  return domain;
}

function* acquirable(row: Row, snapshot: Snapshot): Generator<Machine> {
  yield* snapshot.matching('Idle', row.profile);
  yield* snapshot.matching('Speculative', row.profile);
}

function choiceOf(domains: readonly Domain[], row: Row): Choice | undefined {
  const deficit = millisOf(row.aggregate);
  const best = domains.toSorted((left, right) => compareDomains(left, right, deficit))[0];
  if (best === undefined) return undefined;
  const candidates = domains.map(({ value, total }) => ({
    domain: value,
    coveragePerMille: worstPerMille(total, deficit),
    satisfiable: coversMillis(total, deficit),
  }));
  const ranked = candidates.toSorted((left, right) => {
    return right.coveragePerMille - left.coveragePerMille || byUtf8(left.domain, right.domain);
  });
  const own = best.creditable.filter((machine) => isOwn(machine, row));
  const others = best.creditable.filter((machine) => !isOwn(machine, row));
  return {
    domain: best.value,
    satisfiable: coversMillis(best.total, deficit),
    candidates: ranked.slice(0, CANDIDATES_MAX),
    creditable: [...own, ...others],
  };
}

/** The rank of two domains for one gang: negative if `left` is better. */
function compareDomains(left: Domain, right: Domain, deficit: Millis): number {
  const satisfies = coversMillis(left.total, deficit);
  if (satisfies !== coversMillis(right.total, deficit)) return satisfies ? -1 : 1;
  const more = (part: 'total' | 'creditableTotal' | 'ownTotal'): number =>
    coverage(right[part], deficit, true) - coverage(left[part], deficit, true);
  const slack = coverage(left.total, deficit, false) - coverage(right.total, deficit, false);
  const byRule = satisfies
    ? more('creditableTotal') || more('ownTotal') || slack
    : more('total') || more('creditableTotal');
  return byRule || right.count - left.count || byUtf8(left.value, right.value);
}

/** Marks what a gang will take of its domain beyond what it was credited. */
export function consume(
  row: Row,
  sameKey: string,
  domain: string,
  remaining: Amounts,
  world: { readonly snapshot: Snapshot; readonly claims: Claims; readonly consumed: Consumed },
): void {
  const { snapshot, claims, consumed } = world;
  const minUnit = millisOf(row.minUnit);
  const wanted = millisOf(remaining);
  let found: Millis = NONE;
  for (const machine of acquirable(row, snapshot)) {
    if (coversMillis(found, wanted)) return;
    const isOther = attributeOf(machine, sameKey) !== domain;
    if (isOther || consumed.has(machine) || claims.isClaimed(machine)) continue;
    const millis = millisOf(machine.allocatable);
    if (!coversMillis(millis, minUnit)) continue;
    consumed.add(machine);
    found = addMillis(found, millis);
  }
}

/**
 * ResourceQuota: nothing is created beyond what a namespace may have.
 *
 * Quotas are asked last. `charge` reads them, adds the use of the object and writes the sums back,
 * each at the revision at which it was read, so that any number of writers together never pass a
 * limit; whoever comes second reads again. Usage goes down by the quota controller, as upstream.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { Quantity } from '@megaplane/machinery/quantity';
import { internalError, type Status } from '@megaplane/machinery/status';
import type { World } from '../../lister/world.ts';
import type { Charging } from '../admission.ts';
import { toStored } from '../../storage/conversion.ts';
import type { Served } from '../../storage/served.ts';
import type { WriteOutcome } from '../../storage/storage.ts';
import { NamespacedObjects, type Versioned } from '../../lister/namespaced-objects.ts';
import { amountsOf, type Amounts } from '@megaplane/machinery/quota/pod-resources';
import {
  isCounted,
  isInScope,
  isTerminating,
  unsaid,
  usageOf,
} from '@megaplane/machinery/quota/quota-usage';
import { refuse } from '../../registry/rest/refusal.ts';
import { readStoredObject } from '../../lister/stored-object.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { Admit } from '../admission-plugin.ts';

/** Tries of one charge, when others charge the same quota in between. */
const CHARGE_TRIES_MAX = 16;

const quotas = new NamespacedObjects('', 'resourcequotas');

/** ResourceQuota, the last of all. */
export const resourceQuota: Charging = {
  handles: isCharged,
  charge: chargeInTurn,
  excess: (write) => {
    const charges = judge(write, quotas.of(write.world, write.call.info.namespace));
    return Array.isArray(charges) ? null : charges;
  },
  isIdle: (world, namespace) => quotas.isEmpty(world, namespace),
};

/** Kinds that upstream never counted. */
const UNCOUNTED: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io']);

/** True for writes that quotas may count. */
function isCharged(served: Served, operation: string, subresource: string): boolean {
  const { name } = served.resource.storage;
  if (!served.resource.namespaced || !served.stored || UNCOUNTED.has(name)) return false;
  if (operation === 'CREATE') return subresource === '';
  if (operation !== 'UPDATE') return false;
  if (name === 'pods') return subresource === 'resize' || subresource === '';
  return subresource === '' && (name === 'services' || name === 'persistentvolumeclaims');
}

/** A quota with its new sum. */
interface Charge {
  readonly quota: Versioned;
  readonly used: Amounts;
}

/** Charges that wait for others of their namespace; further ones are refused. */
const CHARGES_WAITING_MAX = 10_000;

/** Namespaces with a charge under way, and the charges that wait for it. */
const turns = new WeakMap<World, Map<string, (() => void)[]>>();

/**
 * One charge of a namespace at a time: where writing takes a while, those that start together would
 * only take each other's revisions away.
 */
function chargeInTurn(write: Admitted, then: Admit): void {
  const { world, call } = write;
  const { namespace } = call.info;
  if (quotas.isEmpty(world, namespace)) {
    then(null);
    return;
  }
  let own = turns.get(world);
  if (own === undefined) turns.set(world, (own = new Map()));
  const busy = own;
  const start = (): void => {
    chargeTry(
      write,
      (refusal) => {
        const next = busy.get(namespace)?.shift();
        if (next === undefined) busy.delete(namespace);
        then(refusal);
        next?.();
      },
      1,
    );
  };
  const waiting = busy.get(namespace);
  if (waiting === undefined) {
    busy.set(namespace, []);
    start();
  } else if (waiting.length < CHARGES_WAITING_MAX) {
    waiting.push(start);
  } else {
    then(refuse(write, 'Resource quota evaluation timed out: too many writes wait for it'));
  }
}

/** Charges every quota that counts the object, or says which one has no room. */
function chargeTry(write: Admitted, then: (refusal: Status | null) => void, attempt: number): void {
  const found = quotas.of(write.world, write.call.info.namespace);
  if (found.length === 0) {
    then(null);
    return;
  }
  const charges = judge(write, found);
  if (!Array.isArray(charges)) {
    then(charges);
    return;
  }
  if (write.isDryRun || charges.length === 0) {
    then(null);
    return;
  }
  writeCharges(write, charges, 0, (isDone, failure) => {
    if (isDone) then(null);
    else if (failure !== null) then(failure);
    else if (attempt < CHARGE_TRIES_MAX) chargeTry(write, then, attempt + 1);
    else then(refuse(write, 'Resource quota evaluation timed out: others were always faster'));
  });
}

/** Sums of the quotas that count the object; a Status where one has no room. */
function judge(write: Admitted, found: readonly Versioned[]): Charge[] | Status {
  const { served, object, previous } = write;
  if (object === null || isUnmoved(write)) return [];
  const extended = (className: string): string => extendedNameOf(write.world, className);
  const { resource } = served;
  // what is asked for is counted in the form that is stored
  const use = (one: JsonObject): Amounts => usageOf(resource, toStored(one, resource), extended);
  const usage = use(object);
  const isUpdate = write.operation === 'UPDATE' && previous !== null;
  const more = isUpdate ? increase(usage, use(previous)) : usage;
  const matching: { readonly quota: Versioned; readonly usage: Amounts }[] = [];
  for (const quota of found) {
    if (!isInScope(served.resource, object, quota.object)) continue;
    const hard = objectAt(quota.object, 'status', 'hard') ?? {};
    const names = Object.keys(hard).filter((name) => isCounted(served.resource, name));
    if (names.length === 0) continue;
    const why = unsaid(served.resource, object, names);
    if (why !== '') return refuse(write, `failed quota: ${nameOf(quota.object)}: ${why}`);
    const used = objectAt(quota.object, 'status', 'used') ?? {};
    if (names.some((name) => ownMember(used, name) === undefined)) {
      const quotaName = nameOf(quota.object);
      const resources = names.toSorted().join(',');
      return refuse(write, `status unknown for quota: ${quotaName}, resources: ${resources}`);
    }
    // an object that a change brings under a quota is new to it
    const isNew = isUpdate && !isInScope(served.resource, previous, quota.object);
    matching.push({ quota, usage: isNew ? usage : more });
  }
  const charges: Charge[] = [];
  for (const { quota, usage: own } of matching) {
    const used = charge(quota.object, own);
    if (typeof used === 'string') return refuse(write, used);
    if (used !== null) charges.push({ quota, used });
  }
  return charges;
}

/** The resource that devices of a class can be asked for by, or ''. */
function extendedNameOf(world: World, className: string): string {
  const found = readStoredObject(world, 'resource.k8s.io', 'deviceclasses', '', className);
  return stringAt(found ?? {}, 'spec', 'extendedResourceName');
}

/** A change of a pod matters only where it moves it from one scope to another. */
function isUnmoved({ served, operation, subresource, object, previous }: Admitted): boolean {
  const isChange = operation === 'UPDATE' && subresource === '';
  if (!isChange || served.resource.storage.name !== 'pods') return false;
  return isTerminating(object ?? {}) === isTerminating(previous ?? {});
}

/** What a change adds; what it gives back is for the quota controller to find. */
function increase(usage: Amounts, before: Amounts): Amounts {
  const more: Amounts = new Map();
  for (const [name, amount] of usage) {
    const own = before.get(name);
    const difference = own === undefined ? amount : amount.subtract(own);
    if (difference.sign > 0) more.set(name, difference);
  }
  return more;
}

function nameOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'name');
}

/** The new sums; null where nothing changes; a text where there is no room. */
function charge(quota: JsonObject, usage: Amounts): Amounts | string | null {
  const hard = amountsOf(objectAt(quota, 'status', 'hard'));
  const used = amountsOf(objectAt(quota, 'status', 'used'));
  const requested: Amounts = new Map();
  const exceeded: string[] = [];
  const sums: Amounts = new Map(used);
  for (const [name, limit] of hard) {
    const asked = usage.get(name);
    if (asked === undefined) continue;
    requested.set(name, asked);
    const own = used.get(name);
    const sum = own === undefined ? asked : own.add(asked);
    // a sum keeps to zero and above, whatever the controller does in between
    sums.set(name, sum.sign < 0 ? new Quantity(0n, 0, sum.format) : sum);
    if (asked.sign > 0 && sum.compare(limit) > 0) exceeded.push(name);
  }
  if (exceeded.length > 0) {
    exceeded.sort();
    return (
      `exceeded quota: ${nameOf(quota)}, requested: ${listed(exceeded, requested)}, ` +
      `used: ${listed(exceeded, used)}, limited: ${listed(exceeded, hard)}`
    );
  }
  return Array.from(requested.values()).some((amount) => amount.sign !== 0) ? sums : null;
}

function listed(names: readonly string[], amounts: Amounts): string {
  return names.map((name) => `${name}=${amounts.get(name)?.toString() ?? '0'}`).join(',');
}

type Written = (isDone: boolean, failure: Status | null) => void;

/** One after the other; a conflict starts the whole charge again, with what was charged undone. */
function writeCharges(
  write: Admitted,
  charges: readonly Charge[],
  index: number,
  done: Written,
): void {
  const own = charges[index];
  if (own === undefined) {
    done(true, null);
    return;
  }
  const { quota } = own;
  const bytes = encodeCanonical(withUsed(quota.object, own.used));
  write.world.storage.put(quota.key, bytes, quota.revision, (outcome) => {
    if (outcome.kind === 'done') {
      writeCharges(write, charges, index + 1, (isDone, failure) => {
        if (isDone) done(true, null);
        else undo(write, own, outcome.revision, () => done(false, failure));
      });
      return;
    }
    done(false, failureOf(outcome));
  });
}

function failureOf(outcome: WriteOutcome): Status | null {
  if (outcome.kind === 'conflict' || outcome.kind === 'done') return null;
  return internalError(outcome.message);
}

/** Takes a charge back; if somebody wrote since, the quota controller will put it right. */
function undo(write: Admitted, { quota }: Charge, revision: number, then: () => void): void {
  write.world.storage.put(quota.key, encodeCanonical(quota.object), revision, () => then());
}

function withUsed(quota: JsonObject, used: Amounts): JsonObject {
  const sums: JsonObject = {};
  const names = Array.from(used.keys()).toSorted();
  for (const name of names) putMember(sums, name, used.get(name)?.toString() ?? '0');
  return { ...quota, status: { ...objectAt(quota, 'status'), used: sums } };
}

/**
 * Services: cluster addresses and node ports.
 *
 * What is given out is claimed before it is written (`service-claims.ts`), so two Services can
 * never have the same, whatever happened before and whoever else gives out addresses on the same
 * storage; and what is claimed is all that has to be looked at to find what is free.
 */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { internalError, invalid, type Status } from '@megaplane/machinery/status';
import { defineBehaviour, type RuleContext } from '../rest/behaviour.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { givePorts, portRange, portsOfDryRun } from './service-ports.ts';
import { findServed, keyOf, rangeOf, type Served } from '../../storage/served.ts';
import { giveFamilies, isKept } from './service-families.ts';
import { keepAllocated, startAddresses } from './service-fields.ts';
import {
  claimedPorts,
  claimOwner,
  claimService,
  holdings,
  releaseService,
  repairClaims,
} from './service-claims.ts';
import {
  addressText,
  familiesOf,
  freeAddressIn,
  holds,
  networksOf,
  type Family,
} from './service-networks.ts';
import { dropTypeDependent, typeOf } from './service-types.ts';
import { emptyRow } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';

const row = emptyRow();

/** Registers the rules of Services. */
export function defineServices(): void {
  defineBehaviour('services', {
    prepareCreate: (object) => {
      object['status'] = { loadBalancer: {} };
      startAddresses(object);
    },
    prepareUpdate: (next, previous) => {
      keepAllocated(next, previous);
      dropTypeDependent(next, previous);
    },
    preflight: (object, previous, context) => {
      const { world, services } = context;
      // what was sent stays as it is: another try starts from it
      object['spec'] = { ...objectAt(object, 'spec') };
      const refusal =
        giveFamilies(object, previous, familiesOf(services.serviceRanges)) ??
        giveAddresses(object, previous, context);
      if (refusal !== null) return refusal;
      const taken = new Set(claimedPorts(world));
      if (previous !== null) for (const port of holdings(previous).ports) taken.delete(port);
      const below = (n: number): number => world.edge.below(n);
      const ports = context.isDryRun
        ? portsOfDryRun(taken)
        : portRange(taken, below, services.allocations);
      return givePorts(object, ports, previous !== null);
    },
    claim: (next, previous, { world }, done) => {
      const taken = (what: string): Status =>
        internalError(`failed to allocate: the ${what} was taken by another Service meanwhile`);
      claimService(world, next, previous, taken, done);
    },
    release: (object, world) => releaseService(world, object),
  });
}

/** Claims what stored Services hold without a claim; see `repairClaims`. */
export function repairServices(world: World): void {
  const served = findServed('', 'v1', 'services');
  if (served === undefined) return;
  const services: JsonObject[] = [];
  const { start, end } = rangeOf(served, '');
  world.storage.page(start, end, 0, (row) => {
    services.push(decodeRow(served, row, row.modRevision));
    return true;
  });
  repairClaims(world, services, !world.storage.isShared);
}

/** Gives a Service an address of each of its families, in place, as far as it lacks one. */
function giveAddresses(
  object: JsonObject,
  previous: JsonObject | null,
  context: RuleContext,
): Status | null {
  const spec = objectAt(object, 'spec') ?? {};
  const before = previous === null ? null : (objectAt(previous, 'spec') ?? {});
  if (typeOf(spec) === 'ExternalName' || isKept(spec, before)) return null;
  const isNew = before === null || typeOf(before) === 'ExternalName';
  if (listAt(isNew ? spec : before, 'clusterIPs')[0] === 'None') return null;
  const families = listAt(spec, 'ipFamilies');
  const had = isNew
    ? 0
    : Math.max(listAt(before, 'ipFamilies').length, listAt(before, 'clusterIPs').length);
  const asked = families.map((_, at) => stringAt(listAt(spec, 'clusterIPs')[at]));
  const addresses: JsonValue[] = [...asked];
  for (const [at, family] of families.entries()) {
    // what is allocated stays, whatever became of its network
    if (at < had) continue;
    const wanted = asked[at] ?? '';
    const given = wanted === '' ? freeAddress(object, family as Family, context) : wanted;
    if (typeof given !== 'string') return given;
    const fault = wanted === '' ? '' : addressFault(object, wanted, family as Family, context);
    if (!context.isDryRun) countAddress(context, given, family as Family, wanted, fault);
    if (fault !== '') {
      const text = `failed to allocate IP ${wanted}: ${fault}`;
      const error = invalidValue('spec.clusterIPs', asked, text);
      const name = stringAt(object, 'metadata', 'name');
      return invalid({ group: '', name: 'Service' }, name, [error]);
    }
    addresses[at] = given;
  }
  if (addresses.length === 0) return null;
  spec['clusterIP'] = addresses[0] ?? '';
  spec['clusterIPs'] = addresses;
  return null;
}

/** What is in none of the networks was asked of no allocator. */
function countAddress(
  context: RuleContext,
  address: string,
  family: Family,
  wanted: string,
  fault: string,
): void {
  const { allocations } = context.services;
  const network = networksOf(context, family).find((one) => holds(one, address));
  if (network === undefined) return;
  const scope = wanted === '' ? 'dynamic' : 'static';
  if (fault === '') allocations.addressGiven(network.text, scope);
  else allocations.addressRefused(network.text, scope);
}

/** Why an address that is asked for cannot be had; '' where it can. */
function addressFault(
  service: JsonObject,
  address: string,
  family: Family,
  context: RuleContext,
): string {
  const { world, call, served, isDryRun } = context;
  const networks = networksOf(context, family);
  if (!networks.some((one) => holds(one, address))) {
    const [first] = networks;
    if (!isDryRun || first === undefined) {
      return 'the provided network does not match the current range';
    }
    // a dry run looks at one of the networks
    const range = `The range of valid IPs is ${first.text}`;
    return `the provided IP (${address}) is not in the valid range. ${range}`;
  }
  const owner = isDryRun ? '' : claimOwner(world, address);
  if (owner === '') return '';
  // claimed for this very Service, which was never written then
  const [namespace, name] = [call.info.namespace, stringAt(service, 'metadata', 'name')];
  const isLeft = owner === `${namespace}/${name}` && !exists(world, served, namespace, name);
  return isLeft ? '' : 'provided IP is already allocated';
}

function exists(world: World, served: Served, namespace: string, name: string): boolean {
  return world.storage.get(keyOf(served, namespace, name), row);
}

function freeAddress(service: JsonObject, family: Family, context: RuleContext): string | Status {
  const { world, services, isDryRun } = context;
  const networks = networksOf(context, family);
  const isFree = (address: string): boolean => claimOwner(world, address) === '';
  for (const network of networks) {
    // a dry run takes nothing, and shows where the range starts
    if (isDryRun) return addressText(network.start, family);
    const address = freeAddressIn(network, isFree, (n) => world.edge.below(n));
    if (address !== '') return address;
    services.allocations.addressRefused(network.text, 'dynamic');
  }
  const name = stringAt(service, 'metadata', 'name');
  return internalError(`failed to allocate a serviceIP for Service "${name}": range is full`);
}

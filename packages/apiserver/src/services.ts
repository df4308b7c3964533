/**
 * Services: cluster addresses and node ports.
 *
 * What is taken is read from the stored Services each time one is given out: they are few. What is
 * given out is claimed before it is written (`service-claims.ts`), so two Services can never have
 * the same, whatever happened before and whoever else gives out addresses on the same storage.
 */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { internalError, invalid, type Status } from '@megaplane/machinery/status';
import { isVoid } from '@megaplane/machinery/voids';
import { defineBehaviour, type RuleContext } from './behaviour.ts';
import { decodeRow } from './encoder.ts';
import { givePorts, portRange, portsOfDryRun } from './service-ports.ts';
import { findServed, rangeOf } from './served.ts';
import { addressFaults, familyFaults } from './service-families.ts';
import { keepAllocated, startAddresses } from './service-fields.ts';
import {
  claimedPorts,
  claimOwner,
  claimService,
  releaseService,
  repairClaims,
} from './service-claims.ts';
import {
  addressText,
  freeAddressIn,
  holds,
  networkOf,
  networksOf,
  type Network,
} from './service-networks.ts';
import { dropTypeDependent } from './service-types.ts';
import type { World } from './world.ts';

/** Registers the rules of Services; `range` is IPv4 in CIDR form. */
export function defineServices(range = '10.96.0.0/16'): void {
  const own = networkOf(range) ?? { base: 0, size: 0 };
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
      const fault = addressFaults(object, previous) ?? familyFaults(object, previous);
      if (fault !== null) return fault;
      // what was sent stays as it is: another try starts from it
      object['spec'] = { ...objectAt(object, 'spec') };
      const taken = takenBy(context);
      const refusal = giveAddress(object, taken, context, own);
      const below = (n: number): number => context.world.edge.below(n);
      const ports = context.isDryRun ? portsOfDryRun(taken.ports) : portRange(taken.ports, below);
      return refusal ?? givePorts(object, ports, previous !== null);
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

interface Taken {
  readonly addresses: ReadonlySet<string>;
  readonly ports: Set<number>;
}

function takenBy({ world, served, call }: RuleContext): Taken {
  const addresses = new Set<string>();
  const ports = new Set<number>(claimedPorts(world));
  const { start, end } = rangeOf(served, '');
  world.storage.page(start, end, 0, (row) => {
    const service = decodeRow(served, row, row.modRevision);
    const isOwn =
      stringAt(service, 'metadata', 'name') === call.info.name &&
      stringAt(service, 'metadata', 'namespace') === call.info.namespace;
    const note = (port: number): void => {
      if (isOwn) ports.delete(port);
      else if (port > 0) ports.add(port);
    };
    for (const address of listAt(service, 'spec', 'clusterIPs')) {
      if (typeof address === 'string' && address !== 'None' && !isOwn) addresses.add(address);
    }
    for (const port of listAt(service, 'spec', 'ports')) {
      note(numberAt(port, 'nodePort'));
    }
    note(numberAt(service, 'spec', 'healthCheckNodePort'));
    return true;
  });
  return { addresses, ports };
}

function giveAddress(
  object: JsonObject,
  taken: Taken,
  context: RuleContext,
  own: Network,
): Status | null {
  const spec = objectAt(object, 'spec') ?? {};
  if (stringAt(spec, 'type') === 'ExternalName') return null;
  const wanted = stringAt(spec, 'clusterIP') || stringAt(listAt(spec, 'clusterIPs')[0]);
  if (wanted === 'None') {
    spec['clusterIPs'] = ['None'];
    const isOpen = isVoid(spec['selector']);
    if (isVoid(spec['ipFamilies'])) spec['ipFamilies'] = isOpen ? ['IPv4', 'IPv6'] : ['IPv4'];
    spec['ipFamilyPolicy'] ??= isOpen ? 'RequireDualStack' : 'SingleStack';
    return null;
  }
  let address = wanted;
  if (wanted === '') {
    // a dry run takes nothing, and shows where the range starts
    address = context.isDryRun ? addressText(own.base) : freeAddress(taken, context, own);
    if (address === '') return internalError('failed to allocate a serviceIP: range is full');
  } else {
    const name = stringAt(object, 'metadata', 'name');
    const holder = `${stringAt(object, 'metadata', 'namespace')}/${name}`;
    const owner = claimOwner(context.world, wanted);
    const isFree =
      context.isDryRun || (!taken.addresses.has(wanted) && (owner === '' || owner === holder));
    const isOfNetwork = networksOf(context.world, own).some((one) => holds(one, wanted));
    if (!isOfNetwork || !isFree) {
      const why = isOfNetwork ? TAKEN : NO_NETWORK;
      const fault = `failed to allocate IP ${wanted}: ${why}`;
      const error = invalidValue('spec.clusterIPs', [wanted], fault);
      return invalid({ group: '', name: 'Service' }, name, [error]);
    }
  }
  spec['clusterIP'] = address;
  spec['clusterIPs'] = [address];
  if (isVoid(spec['ipFamilies'])) spec['ipFamilies'] = ['IPv4'];
  spec['ipFamilyPolicy'] ??= 'SingleStack';
  return null;
}

const TAKEN = 'provided IP is already allocated';
const NO_NETWORK = 'the provided network does not match the current range';

function freeAddress(taken: Taken, { world }: RuleContext, own: Network): string {
  const isFree = (address: string): boolean =>
    !taken.addresses.has(address) && claimOwner(world, address) === '';
  for (const network of networksOf(world, own)) {
    const address = freeAddressIn(network, isFree, (n) => world.edge.below(n));
    if (address !== '') return address;
  }
  return '';
}

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
import { dropTypeDependent } from './service-types.ts';
import type { World } from './world.ts';

/** The first addresses of the range are left to those who ask for one by name. */
const RESERVED_ADDRESSES = 256;

/** Registers the rules of Services; `range` is IPv4 in CIDR form. */
export function defineServices(range = '10.96.0.0/16'): void {
  const [network = '', bits = ''] = range.split('/');
  const base = addressNumber(network);
  const size = 2 ** (32 - Number(bits));
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
      const refusal = giveAddress(object, taken, context, base, size);
      const below = (n: number): number => context.world.edge.below(n);
      const ports = context.isDryRun ? portsOfDryRun() : portRange(taken.ports, below);
      return refusal ?? givePorts(object, ports);
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
  base: number,
  size: number,
): Status | null {
  const spec = objectAt(object, 'spec') ?? {};
  if (stringAt(spec, 'type') === 'ExternalName') return null;
  const wanted = stringAt(spec, 'clusterIP') || stringAt(listAt(spec, 'clusterIPs')[0]);
  if (wanted === 'None') {
    spec['clusterIPs'] = ['None'];
    const isOpen = objectAt(spec, 'selector') === undefined;
    spec['ipFamilies'] ??= isOpen ? ['IPv4', 'IPv6'] : ['IPv4'];
    spec['ipFamilyPolicy'] ??= isOpen ? 'RequireDualStack' : 'SingleStack';
    return null;
  }
  let address = wanted;
  if (wanted === '') {
    // a dry run takes nothing, and shows where the range starts
    address = context.isDryRun ? addressText(base) : freeAddress(taken, context, base, size);
    if (address === '') return internalError('failed to allocate a serviceIP: range is full');
  } else {
    const name = stringAt(object, 'metadata', 'name');
    const own = `${stringAt(object, 'metadata', 'namespace')}/${name}`;
    const owner = claimOwner(context.world, wanted);
    const isFree =
      context.isDryRun || (!taken.addresses.has(wanted) && (owner === '' || owner === own));
    const fault = addressFault(wanted, isFree, base, size);
    if (fault !== '') {
      const name = stringAt(object, 'metadata', 'name');
      const error = invalidValue('spec.clusterIPs', [wanted], fault);
      return invalid({ group: '', name: 'Service' }, name, [error]);
    }
  }
  spec['clusterIP'] = address;
  spec['clusterIPs'] = [address];
  spec['ipFamilies'] ??= ['IPv4'];
  spec['ipFamilyPolicy'] ??= 'SingleStack';
  return null;
}

function freeAddress(taken: Taken, { world }: RuleContext, base: number, size: number): string {
  const reserved = Math.min(RESERVED_ADDRESSES, Math.floor(size / 16));
  const room = size - reserved - 1;
  const first = world.edge.below(Math.max(1, room));
  for (let step = 0; step < room; step++) {
    const address = addressText(base + reserved + ((first + step) % room));
    if (!taken.addresses.has(address) && claimOwner(world, address) === '') return address;
  }
  return '';
}

function addressFault(wanted: string, isFree: boolean, base: number, size: number): string {
  const number = addressNumber(wanted);
  const low = addressText(base);
  const bits = 32 - Math.log2(size);
  if (!(number > base && number < base + size - 1)) {
    return (
      `failed to allocate IP ${wanted}: the provided IP (${wanted}) is not in the valid range. ` +
      `The range of valid IPs is ${low}/${bits}`
    );
  }
  return isFree ? '' : `failed to allocate IP ${wanted}: provided IP is already allocated`;
}

function addressNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function addressText(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}

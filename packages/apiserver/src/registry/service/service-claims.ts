/**
 * Addresses and node ports of Services are claimed before the Service is written, in the records
 * that upstream keeps: an IPAddress object per address, whose creation succeeds once, and one
 * bitmap of all node ports, written on condition. So no two servers on one storage give out the
 * same, and a kube-apiserver beside them sees what is taken.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { internalError, type Status } from '@megaplane/machinery/status';
import { decodePorts, encodePorts, PORTS_KEY } from './node-port-range.ts';
import { emptyRow, EXPECT_ABSENT, EXPECT_ANY } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import type { Claim } from '../rest/behaviour.ts';
import { timestamp } from '../../timestamp.ts';

export const ADDRESSES = '/registry/ipaddresses/';
/** Writers of the bitmap are few; each loser sees what won before it tries again. */
const PORT_TRIES_MAX = 50;

const row = emptyRow();

/** Claims what `next` has and `previous` (null: nothing) had not. */
export function claimService(
  world: World,
  next: JsonObject,
  previous: JsonObject | null,
  taken: (what: string) => Status,
  done: (claim: Claim) => void,
): void {
  const had = previous === null ? NOTHING : holdings(previous);
  const has = holdings(next);
  const addresses = has.addresses.filter((one) => !had.addresses.includes(one));
  const ports = has.ports.filter((one) => !had.ports.includes(one));
  const claimed: string[] = [];
  const undo = (): void => {
    for (const address of claimed) giveAddress(world, address);
    givePorts(world, ports);
  };
  const settle = (): void => {
    const left = had.addresses.filter((one) => !has.addresses.includes(one));
    for (const address of left) giveAddress(world, address);
    givePorts(
      world,
      had.ports.filter((one) => !has.ports.includes(one)),
    );
  };
  const claimNext = (): void => {
    const address = addresses[claimed.length];
    if (address === undefined) {
      takePorts(world, ports, 1, (refusal) => {
        if (refusal === null) done({ kind: 'held', settle, undo });
        else {
          for (const one of claimed) giveAddress(world, one);
          done({ kind: 'taken', status: refusal === '' ? taken('port') : internalError(refusal) });
        }
      });
      return;
    }
    takeAddress(world, address, next, (refusal) => {
      if (refusal === null) {
        claimed.push(address);
        claimNext();
        return;
      }
      for (const one of claimed) giveAddress(world, one);
      done({ kind: 'taken', status: refusal === '' ? taken('address') : internalError(refusal) });
    });
  };
  claimNext();
}

/** Gives back all that a Service that is gone had. */
export function releaseService(world: World, service: JsonObject): void {
  const { addresses, ports } = holdings(service);
  for (const address of addresses) giveAddress(world, address);
  givePorts(world, ports);
}

/** Namespace and name of the Service that has claimed an address, `-` for others; '' is nobody. */
export function claimOwner(world: World, address: string): string {
  return ownerOf(world, addressKey(address));
}

/** Node ports that are claimed. */
export function claimedPorts(world: World): ReadonlySet<number> {
  return world.storage.get(PORTS_KEY, row) ? decodePorts(row) : new Set();
}

/**
 * Claims what a Service holds without one: Services made by an older version, or by hand. With
 * `isAlone`, ports that no Service has are given back too.
 */
export function repairClaims(
  world: World,
  services: readonly JsonObject[],
  isAlone: boolean,
): void {
  const wanted = new Set(services.flatMap((service) => holdings(service).ports));
  const found = claimedPorts(world);
  const leaked = isAlone ? [...found].filter((port) => !wanted.has(port)) : [];
  const missing = [...wanted].filter((port) => !found.has(port));
  changePorts(world, missing, leaked, () => {});
  for (const service of services) {
    for (const address of holdings(service).addresses) {
      if (claimOwner(world, address) === '') takeAddress(world, address, service, () => {});
    }
  }
}

/** Addresses and node ports, that of the balancer's check among them. */
interface Holdings {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

const NOTHING: Holdings = { addresses: [], ports: [] };

/** What a Service has. */
export function holdings(service: JsonObject): Holdings {
  const addresses = listAt(service, 'spec', 'clusterIPs').filter(
    (one): one is string => typeof one === 'string' && one !== '' && one !== 'None',
  );
  const health = numberAt(service, 'spec', 'healthCheckNodePort');
  const ports = [
    ...listAt(service, 'spec', 'ports').map((port) => numberAt(port, 'nodePort')),
    health,
  ].filter((port) => port > 0);
  return { addresses, ports: [...new Set(ports)] };
}

/** null: claimed. '': somebody else has it. Else what went wrong. */
type TakeDone = (refusal: string | null) => void;

function addressKey(address: string): Buffer {
  return Buffer.from(ADDRESSES + address);
}

function takeAddress(world: World, address: string, service: JsonObject, done: TakeDone): void {
  const name = stringAt(service, 'metadata', 'name');
  const namespace = stringAt(service, 'metadata', 'namespace');
  const family = address.includes(':') ? 'IPv6' : 'IPv4';
  const object: JsonObject = {
    kind: 'IPAddress',
    apiVersion: 'networking.k8s.io/v1',
    metadata: {
      name: address,
      uid: world.edge.uuid(),
      creationTimestamp: timestamp(world.edge.nowMs()),
      labels: {
        'ipaddress.kubernetes.io/ip-family': family,
        'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
      },
    },
    spec: { parentRef: { resource: 'services', namespace, name } },
  };
  const key = addressKey(address);
  world.storage.put(key, encodeCanonical(object), EXPECT_ABSENT, (outcome) => {
    if (outcome.kind === 'done') done(null);
    else if (outcome.kind !== 'conflict') done(outcome.message);
    // a claim that an earlier try of this very Service left behind is as good as new
    else done(ownerOf(world, key) === `${namespace}/${name}` ? null : '');
  });
}

function ownerOf(world: World, key: Buffer): string {
  if (!world.storage.get(key, row)) return '';
  const object = parseJson(row.bytes.toString('utf8', row.start, row.end)) as JsonObject;
  const owner = objectAt(object, 'spec', 'parentRef');
  return owner === undefined ? '-' : `${stringAt(owner, 'namespace')}/${stringAt(owner, 'name')}`;
}

function giveAddress(world: World, address: string): void {
  world.storage.delete(addressKey(address), EXPECT_ANY, () => {});
}

function takePorts(world: World, ports: readonly number[], attempt: number, done: TakeDone): void {
  if (ports.length === 0) {
    done(null);
    return;
  }
  const found = claimedPorts(world);
  if (ports.some((port) => found.has(port))) {
    done('');
    return;
  }
  writePorts(world, new Set([...found, ...ports]), (outcome) => {
    if (outcome !== 'conflict') done(outcome);
    else if (attempt < PORT_TRIES_MAX) takePorts(world, ports, attempt + 1, done);
    else done('too many others claim node ports');
  });
}

function givePorts(world: World, ports: readonly number[]): void {
  if (ports.length > 0) changePorts(world, [], ports, () => {});
}

function changePorts(
  world: World,
  more: readonly number[],
  less: readonly number[],
  done: () => void,
  attempt = 1,
): void {
  if (more.length === 0 && less.length === 0) {
    done();
    return;
  }
  const ports = new Set([...claimedPorts(world), ...more]);
  for (const port of less) ports.delete(port);
  writePorts(world, ports, (outcome) => {
    const isAgain = outcome === 'conflict' && attempt < PORT_TRIES_MAX;
    if (isAgain) changePorts(world, more, less, done, attempt + 1);
    else done();
  });
}

/** Writes the bitmap that was read last in this turn, changed. */
function writePorts(
  world: World,
  ports: ReadonlySet<number>,
  done: (outcome: string | null) => void,
): void {
  const expected = world.storage.get(PORTS_KEY, row) ? row.modRevision : EXPECT_ABSENT;
  world.storage.put(PORTS_KEY, encodePorts(ports), expected, (outcome) => {
    if (outcome.kind === 'done') done(null);
    else done(outcome.kind === 'conflict' ? 'conflict' : outcome.message);
  });
}

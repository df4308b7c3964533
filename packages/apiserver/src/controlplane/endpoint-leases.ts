/**
 * Where API servers share a storage, the Service `kubernetes` leads to all that live. Each keeps a
 * lease of its own and writes what the leases of all tell, as upstream's servers do.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { equals, listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { decodeRow } from '../serializer/encoder.ts';
import { masterLeaseKey, masterLeaseRange } from '../storage/master-leases.ts';
import { findServed, keyOf, type Served } from '../storage/served.ts';
import { emptyRow, EXPECT_ANY, type WriteOutcome } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import { ensure } from '../registry/rest/missing-objects.ts';
import { endpointPorts, endpointsOf, SKIP_MIRROR, sliceOf } from './server-objects.ts';

interface Stored {
  readonly object: JsonObject;
  readonly revision: number;
}

/** How this server is reached. */
export interface OwnEndpoint {
  readonly address: string;
  readonly port: number;
}

export class EndpointLeases {
  readonly #world: World;
  readonly #own: OwnEndpoint;
  readonly #log: (message: string) => void;
  readonly #row = emptyRow();
  #round: Promise<void> | null = null;
  #isFirst = true;
  #isLeaving = false;

  constructor(world: World, own: OwnEndpoint, log: (message: string) => void) {
    this.#world = world;
    this.#own = own;
    this.#log = log;
  }

  /** Says that this server lives, and writes who does. What fails is tried at the next look. */
  look(): Promise<void> {
    if (this.#isLeaving) return Promise.resolve();
    this.#round ??= this.#logged(this.#renew()).finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  /** The server is about to stop: nobody shall be led to it any more. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    await this.#round;
    await this.#logged(this.#remove());
  }

  async #logged(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#log(`addresses of the Service kubernetes: ${why}`);
    }
  }

  async #renew(): Promise<void> {
    const key = masterLeaseKey(this.#own.address);
    const before = this.#read(servedEndpoints(), key);
    const generation = numberAt(before?.object, 'metadata', 'generation') + 1;
    const lease = {
      kind: 'Endpoints',
      apiVersion: 'v1',
      metadata: { generation },
      subsets: [{ addresses: [{ ip: this.#own.address }] }],
    };
    demand(await this.#put(key, lease, EXPECT_ANY));
    // a run that was cut off may have had another port
    const judgesPorts = this.#isFirst && before !== null;
    this.#isFirst = false;
    await this.#reconcile(judgesPorts);
  }

  async #remove(): Promise<void> {
    const key = masterLeaseKey(this.#own.address);
    if (this.#read(servedEndpoints(), key) === null) return;
    demand(await this.#delete(key));
    await this.#reconcile(true);
  }

  async #reconcile(judgesPorts: boolean): Promise<void> {
    const served = servedEndpoints();
    const key = keyOf(served, 'default', 'kubernetes');
    const stored = this.#read(served, key);
    if (stored === null && this.#isLeaving) return;
    const living = this.#living();
    if (living.length === 0 && !this.#isLeaving) {
      throw new Error('no server has a lease; they stay as they are');
    }
    const ports = endpointPorts(this.#own.port);
    const before = stored?.object ?? endpointsOf([], this.#own.port);
    const next = withAddresses(before, living, ports, judgesPorts);
    if (stored === null) await this.#make(next);
    else if (!equals(next, before)) demand(await this.#put(key, next, stored.revision));
    await this.#followWithSlice(sliceOf(next));
  }

  async #followWithSlice(wanted: JsonObject): Promise<void> {
    const served = findServed('discovery.k8s.io', 'v1', 'endpointslices');
    if (served === undefined) return;
    const key = keyOf(served, 'default', 'kubernetes');
    const stored = this.#read(served, key);
    if (stored === null) {
      await this.#make(wanted);
      return;
    }
    const { object, revision } = stored;
    if (object['addressType'] !== wanted['addressType']) {
      demand(await this.#delete(key));
      await this.#make(wanted);
      return;
    }
    const labels = objectAt(wanted, 'metadata', 'labels') ?? {};
    const isSame =
      equals([...listAt(object, 'endpoints')], wanted['endpoints']) &&
      equals([...listAt(object, 'ports')], wanted['ports']) &&
      equals(objectAt(object, 'metadata', 'labels'), labels);
    if (isSame) return;
    const generation = numberAt(object, 'metadata', 'generation') + 1;
    const metadata = { ...objectAt(object, 'metadata'), generation, labels };
    demand(await this.#put(key, { ...object, ...wanted, metadata }, revision));
  }

  /** Addresses of all servers that have a lease. */
  #living(): string[] {
    const { start, end } = masterLeaseRange();
    const served = servedEndpoints();
    const addresses: string[] = [];
    this.#world.storage.page(start, end, 0, (row) => {
      const [subset] = listAt(decodeRow(served, row, row.modRevision), 'subsets');
      const address = stringAt(listAt(subset, 'addresses')[0], 'ip');
      if (address !== '') addresses.push(address);
      return true;
    });
    return addresses;
  }

  #read(served: Served, key: Buffer): Stored | null {
    if (!this.#world.storage.get(key, this.#row)) return null;
    const revision = this.#row.modRevision;
    return { object: decodeRow(served, this.#row, revision), revision };
  }

  #put(key: Buffer, object: JsonObject, expected: number): Promise<WriteOutcome> {
    return new Promise((done) => {
      this.#world.storage.put(key, encodeCanonical(object), expected, done);
    });
  }

  #delete(key: Buffer): Promise<WriteOutcome> {
    return new Promise((done) => {
      this.#world.storage.delete(key, EXPECT_ANY, done);
    });
  }

  #make(object: JsonObject): Promise<boolean> {
    return new Promise((done) => {
      ensure(this.#world, object, done);
    });
  }
}

/**
 * Endpoints that lead to these addresses. Ports that are there stay unless they are to be judged:
 * servers whose ports differ would take turns at writing theirs.
 */
export function withAddresses(
  endpoints: JsonObject,
  addresses: readonly string[],
  ports: JsonValue[],
  judgesPorts: boolean,
): JsonObject {
  const [first, ...others] = listAt(endpoints, 'subsets');
  const subset = others.length === 0 ? objectAt(first) : undefined;
  const metadata = objectAt(endpoints, 'metadata');
  const labels = { ...objectAt(metadata, 'labels'), ...SKIP_MIRROR };
  const { subsets: _, ...content } = endpoints;
  const rest = { ...content, metadata: { ...metadata, labels } };
  const next: JsonObject = { ...subset };
  if (subset === undefined || (judgesPorts && !equals(subset['ports'], ports))) {
    next['ports'] = ports;
  }
  if (!hasAll(subset, addresses)) {
    next['addresses'] = [...new Set(addresses)].toSorted(byBytes).map((ip) => ({ ip }));
  }
  const isEmpty = listAt(next, 'addresses').length + listAt(next, 'notReadyAddresses').length === 0;
  return isEmpty ? rest : { ...rest, subsets: [next] };
}

/** In whatever order. */
function hasAll(subset: JsonObject | undefined, addresses: readonly string[]): boolean {
  const there = listAt(subset, 'addresses').map((address) => stringAt(address, 'ip'));
  const wanted = new Set(addresses);
  const isWithin = there.length === addresses.length && there.every((ip) => wanted.has(ip));
  return isWithin && new Set(there).size === there.length;
}

function byBytes(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}

function servedEndpoints(): Served {
  const served = findServed('', 'v1', 'endpoints');
  if (served === undefined) throw new Error('Endpoints are not served');
  return served;
}

function demand(outcome: WriteOutcome): void {
  if (outcome.kind === 'done') return;
  throw new Error(outcome.kind === 'conflict' ? 'another server writes them' : outcome.message);
}

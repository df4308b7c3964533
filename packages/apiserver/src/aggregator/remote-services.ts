/**
 * APIServices that others serve: requests for their group and version are passed on with the name
 * of the user, and what they have is part of discovery and OpenAPI.
 *
 * Each is looked at when it comes, when it changes, and now and then; what was found stands in its
 * condition, and decides whether requests are sent there.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { readStoredObject } from '../lister/stored-object.ts';
import { locate } from '../webhook/webhook-call.ts';
import type { Call } from '../request/call.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { identityOf, MASTERS_GROUP, type Identity } from '../request/identity.ts';
import type { Fetched, Target } from '../webhook/target.ts';
import { fieldValue } from '../request/header-text.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { findServed, keyOf, rangeOf, type Served } from '../storage/served.ts';
import { emptyEvent, emptyRow, type StorageWatch } from '../storage/storage.ts';
import { trackOwnStatus } from '../fieldmanager/tracking.ts';
import type { Relay } from '../webhook/target.ts';
import type { World } from '../lister/world.ts';
import {
  aggregatedResources,
  remoteSpecOf,
  RemoteService,
  withAvailability,
  type Availability,
} from './remote-service.ts';
import { discoveredIn, DISCOVERY_TYPES, listIn } from './remote-publications.ts';
import { missingEnds } from './service-ends.ts';
import { printFamily } from '../metrics/metric-families.ts';

/** How often a service is looked at that answers, and one that does not (upstream: 30 s). */
const CHECK_MS = 30_000;
const RECHECK_MS = 3000;
/** A service that does not answer by then is not available. */
const CHECK_TIMEOUT_MS = 5000;
/** Services that are looked at in one tick. */
const CHECKS_PER_TICK_MAX = 20;

const event = emptyEvent();
const row = emptyRow();

export class RemoteServices {
  readonly #world: World;
  readonly #relay: Relay | null;
  readonly #served: Served;
  readonly #byPlace = new Map<string, RemoteService>();
  readonly #listeners: ((group: string) => void)[] = [];
  /** How often services were lost, and why. */
  readonly #lost = new Map<string, number>();
  #watch: StorageWatch | null = null;

  /** Without `relay` there is no way to other servers, and none is available. */
  constructor(world: World, relay: Relay | null) {
    this.#world = world;
    this.#relay = relay;
    const served = findServed('apiregistration.k8s.io', 'v1', 'apiservices');
    if (served === undefined) throw new Error('the tables have no APIServices');
    this.#served = served;
  }

  /** Reads what there is and follows it from then on. */
  start(): void {
    const { storage } = this.#world.at(this.#served);
    const { start, end } = rangeOf(this.#served, '');
    const known = new Set([...this.#byPlace.values()].map(({ spec }) => spec.name));
    const revision = storage.publishedRevision;
    storage.page(start, end, 0, (one) => {
      const object = decodeRow(this.#served, one, one.modRevision);
      known.delete(stringAt(object, 'metadata', 'name'));
      this.#learn(object);
      return true;
    });
    for (const name of known) this.#forget(name);
    this.#watch?.close();
    this.#watch = storage.watch(start, end, revision, () => this.#drain());
  }

  #drain(): void {
    for (;;) {
      const outcome = this.#watch?.next(event) ?? 'gone';
      if (outcome === 'idle' || outcome === 'lagging') return;
      if (outcome === 'gone') {
        this.start();
        return;
      }
      const { value } = event;
      const from = value.keyStart + this.#served.prefix.length;
      if (event.isDelete) this.#forget(value.key.toString('utf8', from, value.keyEnd));
      else this.#learn(decodeRow(this.#served, value, value.modRevision));
    }
  }

  #learn(object: JsonObject): void {
    const spec = remoteSpecOf(object);
    if (spec === null) {
      this.#forget(stringAt(object, 'metadata', 'name'));
      return;
    }
    const place = `${spec.group}/${spec.version}`;
    const before = this.#byPlace.get(place);
    if (before !== undefined && JSON.stringify(before.spec) === JSON.stringify(spec)) return;
    const remote = new RemoteService(spec);
    this.#byPlace.set(place, remote);
    this.#changed(spec.group);
    this.#world.edge.defer(() => this.#check(remote));
  }

  #forget(name: string): void {
    for (const [place, { spec }] of this.#byPlace) {
      if (spec.name !== name) continue;
      this.#byPlace.delete(place);
      this.#changed(spec.group);
    }
  }

  #changed(group: string): void {
    for (const listener of this.#listeners) listener(group);
  }

  /** Calls `listener` with the group of every service that came, changed or went. */
  onChange(listener: (group: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Which APIServices cannot be reached: those of this server always can. */
  print(lines: string[]): void {
    const name = 'aggregator_unavailable_apiservice';
    printFamily(lines, name);
    const gone = new Set<string>();
    for (const { spec, availability } of this.#byPlace.values()) {
      if (!availability.isAvailable) gone.add(spec.name);
    }
    const { storage } = this.#world.at(this.#served);
    const { start, end } = rangeOf(this.#served, '');
    storage.page(start, end, 0, ({ key, keyStart, keyEnd }) => {
      const own = key.toString('utf8', keyStart + this.#served.prefix.length, keyEnd);
      lines.push(`${name}{name="${own}"} ${gone.has(own) ? 1 : 0}`);
      return true;
    });
    printFamily(lines, `${name}_total`);
    for (const [labels, count] of this.#lost) lines.push(`${name}_total{${labels}} ${count}`);
  }

  all(): Iterable<RemoteService> {
    return this.#byPlace.values();
  }

  /** The services of a group. */
  of(group: string): RemoteService[] {
    if (this.#byPlace.size === 0) return [];
    return [...this.#byPlace.values()].filter(({ spec }) => spec.group === group);
  }

  /** Who serves what a request is for, where that is somebody else. */
  behind(info: RequestInfo): RemoteService | undefined {
    if (this.#byPlace.size === 0) return undefined;
    if (info.isResource) return this.#byPlace.get(`${info.group}/${info.version}`);
    const [, first, group, version] = info.path.split('/');
    return first === 'apis' ? this.#byPlace.get(`${group}/${version}`) : undefined;
  }

  /** Whoever publishes the OpenAPI document of that name (`apis/group/version`). */
  publisherOf(name: string): RemoteService | undefined {
    for (const remote of this.#byPlace.values()) {
      if (remote.publications.version3.has(name)) return remote;
    }
    return undefined;
  }

  /** Passes a request on, as its user. */
  pass(call: Call, remote: RemoteService): void {
    const relay = this.#relay;
    const target = this.#targetOf(remote, understood(call));
    if (!remote.availability.isAvailable || relay === null) {
      call.sendText(503, 'service unavailable\n');
    } else if ('missing' in target) call.sendText(503, 'service unavailable\n');
    else relay.pass(call, { ...target, fields: userFields(call.identity) });
  }

  #targetOf({ spec }: RemoteService, path: string): Target | { readonly missing: string } {
    const { namespace, service, port, caBundle, isInsecure } = spec;
    const at = { namespace, name: service, path: '', port };
    const found = locate(this.#world, { url: '', service: at, caBundle });
    if ('missing' in found) return found;
    return {
      peer: 'extension',
      isTls: true,
      host: found.host,
      port: found.port,
      path,
      needsUpgrade: false,
      resource: '',
      name: spec.name,
      isWrapped: true,
      wrapsFailures: false,
      isInsecure,
      serverName: found.serverName,
      ca: caBundle,
    };
  }

  /** About once a second: looks at those whose time has come. */
  tick(nowMs: number): void {
    let left = CHECKS_PER_TICK_MAX;
    for (const remote of this.#byPlace.values()) {
      const waitMs = remote.availability.isAvailable ? CHECK_MS : RECHECK_MS;
      if (remote.isChecking || nowMs - remote.checkedMs < waitMs) continue;
      this.#check(remote);
      if (--left === 0) return;
    }
  }

  /** Looks whether the service is there and what it has. */
  #check(remote: RemoteService): void {
    const { spec } = remote;
    remote.checkedMs = this.#world.edge.nowMs();
    const found = this.#lookUp(remote);
    if ('reason' in found) {
      this.#settle(remote, found);
      return;
    }
    const path = `/apis/${spec.group}/${spec.version}`;
    const relay = this.#relay;
    if (relay === null) {
      this.#settle(remote, failing('FailedDiscoveryCheck', 'this server reaches no services'));
      return;
    }
    remote.isChecking = true;
    relay.fetch({ ...found, path, fields: userFields(AGGREGATOR) }, CHECK_TIMEOUT_MS, (answer) => {
      remote.isChecking = false;
      const url = `https://${found.host}:${found.port}${path}`;
      const fault = faultOf(answer, url);
      if (fault !== null) {
        const text = `failing or missing response from ${url}: ${fault}`;
        this.#settle(remote, failing('FailedDiscoveryCheck', text));
        return;
      }
      // any good answer will do; of what is no list, discovery says that it is stale
      if (!remote.isAggregated) remote.resources = aggregatedResources(listIn(answer));
      this.#readPublications(remote, found);
      this.#settle(remote, PASSED);
    });
  }

  #lookUp(remote: RemoteService): Target | Availability {
    const { namespace, service } = remote.spec;
    const stored = readStoredObject(this.#world, '', 'services', namespace, service);
    if (stored === null) {
      const text = `service/${service} in ${JSON.stringify(namespace)} is not present`;
      return failing('ServiceNotFound', text);
    }
    const missing = missingEnds(this.#world, remote.spec, stored);
    if (missing !== null) return missing;
    const target = this.#targetOf(remote, '');
    if (!('missing' in target)) return target;
    if (target.missing.includes('service port')) {
      const { port } = remote.spec;
      const where = `service/${service} in ${JSON.stringify(namespace)}`;
      return failing('ServicePortError', `${where} is not listening on port ${port}`);
    }
    const text = `endpoints for service/${service} in ${JSON.stringify(namespace)}`;
    return failing('MissingEndpoints', `${text} have no addresses`);
  }

  /** Reads what it says of itself; whoever publishes it again is told of news. */
  #readPublications(remote: RemoteService, target: Target): void {
    const { spec, publications } = remote;
    this.#read(remote, target, '/openapi/v3', [], (answer) => {
      return publications.takeIndex(answer, spec);
    });
    const { version2Tag: tag } = publications;
    const unless = tag === '' ? [] : ['if-none-match', tag];
    this.#read(remote, target, '/openapi/v2', unless, (answer) => {
      return publications.takeVersion2(answer, spec);
    });
    this.#read(remote, target, '/apis', ['accept', DISCOVERY_TYPES], (answer) => {
      const found = discoveredIn(answer, spec);
      // it may have become one of those that know of their groups alone
      remote.isAggregated = found !== null;
      if (found === null || JSON.stringify(found) === JSON.stringify(remote.resources))
        return false;
      remote.resources = found;
      return true;
    });
  }

  /** Asks the aggregator's way; `take` tells whether the answer brought anything new. */
  #read(
    remote: RemoteService,
    target: Target,
    path: string,
    more: readonly string[],
    take: (answer: Fetched) => boolean,
  ): void {
    const relay = this.#relay;
    const fields = [...userFields(AGGREGATOR), ...more];
    relay?.fetch({ ...target, path, fields }, CHECK_TIMEOUT_MS, (answer) => {
      if (take(answer)) this.#changed(remote.spec.group);
    });
  }

  #countLost(labels: string): void {
    this.#lost.set(labels, (this.#lost.get(labels) ?? 0) + 1);
  }

  #settle(remote: RemoteService, availability: Availability): void {
    const { spec } = remote;
    if (this.#byPlace.get(`${spec.group}/${spec.version}`) !== remote) return;
    const isLost = remote.availability.isAvailable && !availability.isAvailable;
    if (isLost) this.#countLost(`name="${spec.name}",reason="${availability.reason}"`);
    remote.availability = availability;
    this.#changed(spec.group);
    const { storage, edge } = this.#world.at(this.#served);
    const key = keyOf(this.#served, '', spec.name);
    if (!storage.get(key, row)) return;
    const { modRevision } = row;
    const object = decodeRow(this.#served, row, modRevision);
    const next = withAvailability(object, availability, edge.nowMs());
    if (next === null) return;
    trackOwnStatus(this.#served, object, next, edge.nowMs());
    // who wrote in between is told of with the next look
    storage.put(key, encodeCanonical(next), modRevision, () => {});
  }
}

const PASSED: Availability = { isAvailable: true, reason: 'Passed', message: 'all checks passed' };
const AGGREGATOR = identityOf('system:kube-aggregator', [MASTERS_GROUP]);

function failing(reason: string, message: string): Availability {
  return { isAvailable: false, reason, message };
}

/** Why an answer is none, in the words of Go's client. */
function faultOf(answer: Fetched, url: string): string | null {
  if ('why' in answer) return `Get ${JSON.stringify(url)}: ${answer.why}`;
  const isGood = answer.status >= 200 && answer.status <= 299;
  return isGood ? null : `bad status from ${url}: ${answer.status}`;
}

/** Path and query as they were understood here, so that nobody reads them in another way. */
function understood({ info, query }: Call): string {
  const path = encodeURI(info.path).replaceAll('?', '%3F').replaceAll('#', '%23');
  return query.isEmpty ? path : `${path}?${query.sorted()}`;
}

/** Who asks, as the fields of a front proxy. */
function userFields(identity: Identity): string[] {
  const fields = ['x-remote-user', fieldValue(identity.user)];
  for (const group of identity.groups) fields.push('x-remote-group', fieldValue(group));
  if (identity.uid !== '') fields.push('x-remote-uid', fieldValue(identity.uid));
  for (const [key, values] of Object.entries(identity.extra)) {
    for (const value of values) fields.push(`x-remote-extra-${encodeKey(key)}`, fieldValue(value));
  }
  return fields;
}

/** Keys may have characters that names of fields have not: upstream's headerKeyEscape. */
function encodeKey(key: string): string {
  const escaped = (byte: number): string => `%${byte.toString(16).padStart(2, '0')}`;
  return [...Buffer.from(key.toLowerCase())]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return IN_NAME.test(character) ? character : escaped(byte);
    })
    .join('');
}

/** What names of fields hold, but for the mark of an escape. */
const IN_NAME = /[\w!#$&'*+.^`|~-]/;

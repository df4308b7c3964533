/**
 * A coordinator: it knows which shards there are, which shard has which cluster and domain, how
 * quotas are cut, and what shards last reported. It decides nothing about machines, and nobody
 * waits for it: shards and clusters go on while there is none.
 *
 * The leader keeps a copy of what etcd holds and answers from it. A change is checked against the
 * copy, written to etcd by compare-and-put under the leader's key, and only then put into the copy;
 * changes go one after another. What became of a write that failed nobody knows: the leader stands
 * for election anew, and reads all again.
 *
 * What shards report is held in memory only, and comes again within a reporting interval.
 */
import { create } from '@bufbuild/protobuf';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import {
  ReportAckSchema,
  ShardRegistryEntrySchema,
  ShardReportSnapshotSchema,
} from '../contract/tables/coordinator.ts';
import type {
  AssignDomainRequest,
  ProviderEntry,
  ReportAck,
  ShardRegistryEntry,
  ShardReport,
  ShardReportSnapshot,
  UnassignDomainRequest,
} from '../contract/tables/coordinator.ts';
import type { ClusterBinding, SetQuotaRequest } from '../contract/tables/registry.ts';
import { Instructions } from './instructions.ts';
import type { Keeping } from './keeping.ts';
import { Leadership } from './leadership.ts';
import type { Clock } from './leadership.ts';
import { bindingOf, domainOf, providerOf, quotaOf, Registry } from './registry.ts';
import type { Change, KeptValue } from './registry.ts';

/** Names of shards, clusters, providers, regions; keys and values of domains. */
export const NAME_BYTES_MAX = 253;
/** Records of one kind. */
export const RECORDS_MAX = 200_000;
/** Changes that wait for their turn; more are refused. */
export const CHANGES_WAITING_MAX = 1000;
/** Shortfalls of one report that are kept. */
const SHORTFALLS_KEPT_MAX = 100;
const SHARDS_MAX = 10_000;
const PAGE = 1000;
const NANOS = 1_000_000n;

export interface CoordinatorOptions {
  readonly keeping: Keeping;
  readonly clock: Clock & { wallMs(): number };
  /** Keys of the fleet in etcd begin so. */
  readonly prefix: string;
  /** Where clients reach this one. */
  readonly self: string;
  readonly ttlSeconds: number;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export class Coordinator {
  readonly registry: Registry = new Registry();
  readonly leadership: Leadership;
  readonly instructions: Instructions = new Instructions(this.registry);
  /** How writes ended. */
  readonly applied = { ok: 0, conflict: 0, failed: 0 };
  readonly #options: CoordinatorOptions;
  readonly #reports = new Map<string, ShardReportSnapshot>();
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    const { keeping, clock, prefix, self, ttlSeconds, log } = options;
    const load = (): Promise<boolean> => this.#load();
    this.leadership = new Leadership({
      ...{ keeping, clock, prefix, self, ttlSeconds, log, load },
    });
  }

  /** The term. Throws `FailedPrecondition`, which clients take for "ask another one". */
  lead(): number {
    const { term, leader, fault } = this.leadership;
    if (term > 0) return term;
    const whom = leader === '' ? `nobody does${fault === '' ? '' : ` (${fault})`}` : leader;
    throw new CallError(GRPC_CODES.failedPrecondition, `this coordinator does not lead: ${whom}`);
  }

  async reportShard(report: ShardReport): Promise<ReportAck> {
    const term = this.lead();
    const { shardId } = report;
    named('shard_id', shardId);
    if (this.registry.shards.get(shardId) === undefined) await this.#register(report);
    const { cycle, summary } = report;
    const receivedAtUnixNs = this.#nowNanos();
    const shortfalls = report.shortfalls
      .slice(0, SHORTFALLS_KEPT_MAX)
      .map((one) => ({ ...one, requirements: [] }));
    const kept = { shardId, cycle, receivedAtUnixNs, shortfalls };
    this.#reports.set(
      shardId,
      create(ShardReportSnapshotSchema, { ...kept, ...(summary === undefined ? {} : { summary }) }),
    );
    const done = this.instructions.heard(shardId, report.shardEpoch, report.instructionAcks);
    for (const domain of done) await this.#change(() => this.registry.withdrawn.remove(...domain));
    return create(ReportAckSchema, {
      ...{ coordinatorTerm: BigInt(term), acknowledged: true },
      instructions: this.instructions.for(shardId, term),
    });
  }

  #register({ shardId, shardAddress: address }: ShardReport): Promise<void> {
    return this.#change(() => {
      const { shards } = this.registry;
      if (shards.get(shardId) !== undefined) return undefined;
      if (shards.size >= SHARDS_MAX) throw full(`there are ${SHARDS_MAX} shards`);
      if (Buffer.byteLength(address) > NAME_BYTES_MAX) throw invalid('shard_address is too long');
      const registeredAtUnixNs = this.#nowNanos();
      const entry = create(ShardRegistryEntrySchema, { shardId, address, registeredAtUnixNs });
      return shards.put(entry, shardId);
    });
  }

  async assignDomain({ topologyKey, topologyValue, shardId }: AssignDomainRequest): Promise<void> {
    named('topology_key', topologyKey);
    named('topology_value', topologyValue);
    await this.#change(() => {
      this.#shardThere(shardId);
      const { domains } = this.registry;
      const owner = domains.get(topologyKey, topologyValue)?.shardId;
      if (owner === shardId) return undefined;
      const what = `${topologyKey}=${topologyValue}`;
      if (owner !== undefined) throw taken(`${what} is assigned to ${owner}`);
      this.#roomIn(domains.size);
      const domain = domainOf(topologyKey, topologyValue, shardId);
      return domains.put(domain, topologyKey, topologyValue);
    });
  }

  /** The shard is told first that it has to give the domain up. */
  async unassignDomain({ topologyKey, topologyValue }: UnassignDomainRequest): Promise<void> {
    const { domains, withdrawn } = this.registry;
    const ownerOf = (): string | undefined => domains.get(topologyKey, topologyValue)?.shardId;
    await this.#change(() => {
      const owner = ownerOf();
      if (owner === undefined) return undefined;
      const domain = domainOf(topologyKey, topologyValue, owner);
      return withdrawn.put(domain, owner, topologyKey, topologyValue);
    });
    await this.#change(() => {
      return ownerOf() === undefined ? undefined : domains.remove(topologyKey, topologyValue);
    });
  }

  /** Its clusters and domains are free first, so that a removal that broke off can go on. */
  async removeShard(shardId: string): Promise<void> {
    this.lead();
    this.#shardThere(shardId);
    const { shards, clusters, domains } = this.registry;
    for (const one of clusters.all.filter((binding) => binding.shardId === shardId)) {
      await this.#change(() => clusters.remove(one.clusterId));
    }
    for (const one of domains.all.filter((domain) => domain.shardId === shardId)) {
      await this.unassignDomain({ ...one, $typeName: 'bigfleet.v1alpha1.UnassignDomainRequest' });
    }
    await this.#change(() => shards.remove(shardId));
    this.#reports.delete(shardId);
    this.instructions.forget(shardId);
  }

  async bindCluster({ clusterId, shardId }: ClusterBinding): Promise<void> {
    named('cluster_id', clusterId);
    await this.#change(() => {
      this.#shardThere(shardId);
      const { clusters } = this.registry;
      const owner = clusters.get(clusterId)?.shardId;
      if (owner === shardId) return undefined;
      if (owner !== undefined) throw taken(`cluster ${clusterId} is bound to ${owner}`);
      this.#roomIn(clusters.size);
      return clusters.put(bindingOf(clusterId, shardId), clusterId);
    });
  }

  unbindCluster(clusterId: string): Promise<void> {
    return this.#change(() => {
      const { clusters } = this.registry;
      return clusters.get(clusterId) === undefined ? undefined : clusters.remove(clusterId);
    });
  }

  async setQuota({ provider, region, perShard, limit }: SetQuotaRequest): Promise<void> {
    named('provider', provider);
    named('region', region);
    const slices = Object.entries(perShard);
    if (slices.length > SHARDS_MAX) throw invalid(`over ${SHARDS_MAX} slices`);
    const sum = slices.reduce((total, [, slice]) => total + slice, 0);
    if (slices.some(([shard, slice]) => shard === '' || slice < 0)) {
      throw invalid('a slice has no shard, or is negative');
    }
    if (limit > 0 && sum > limit) throw invalid(`the slices are ${sum} in all, over ${limit}`);
    await this.#change(() => {
      const { quotas } = this.registry;
      if (slices.length > 0) {
        for (const [shard] of slices) this.#shardThere(shard);
        this.#roomIn(quotas.size);
        return quotas.put(quotaOf(provider, region, perShard), provider, region);
      }
      return quotas.get(provider, region) === undefined
        ? undefined
        : quotas.remove(provider, region);
    });
  }

  async putProvider(entry: ProviderEntry): Promise<void> {
    named('name', entry.name);
    named('address', entry.address);
    if (Buffer.byteLength(entry.region) > NAME_BYTES_MAX) throw invalid('region is too long');
    await this.#change(() => {
      this.#roomIn(this.registry.providers.size);
      return this.registry.providers.put(providerOf(entry), entry.name);
    });
  }

  removeProvider(name: string): Promise<void> {
    return this.#change(() => {
      const { providers } = this.registry;
      return providers.get(name) === undefined ? undefined : providers.remove(name);
    });
  }

  /** By id, with when each was heard last. */
  listShards(): ShardRegistryEntry[] {
    this.lead();
    return this.registry.shards.all.map((entry) => {
      const lastHeartbeatUnixNs = this.#reports.get(entry.shardId)?.receivedAtUnixNs ?? 0n;
      return { ...entry, lastHeartbeatUnixNs };
    });
  }

  /** By shard; of one if it is named. */
  listReports(shardId: string): ShardReportSnapshot[] {
    this.lead();
    const found = this.registry.shards.all.flatMap((entry) => {
      const report = this.#reports.get(entry.shardId);
      return report === undefined ? [] : [report];
    });
    return shardId === '' ? found : found.filter((report) => report.shardId === shardId);
  }

  #shardThere(shardId: string): void {
    if (this.registry.shards.get(shardId) !== undefined) return;
    throw new CallError(GRPC_CODES.notFound, `no shard is called ${shardId}`);
  }

  #roomIn(records: number): void {
    if (records >= RECORDS_MAX) throw full(`there are ${RECORDS_MAX} records`);
  }

  #nowNanos(): bigint {
    return BigInt(Math.floor(this.#options.clock.wallMs())) * NANOS;
  }

  /** Makes a change in its turn. `decide` throws a refusal; undefined: nothing to do. */
  async #change(decide: () => Change | undefined): Promise<void> {
    this.lead();
    if (this.#waiting >= CHANGES_WAITING_MAX) throw full('too many changes wait');
    this.#waiting++;
    const made = this.#turn.then(() => this.#apply(decide));
    const settled = (): void => void this.#waiting--;
    this.#turn = made.then(settled, settled);
    return made;
  }

  async #apply(decide: () => Change | undefined): Promise<void> {
    this.lead();
    const change = decide();
    if (change === undefined) return;
    const { table, name, value } = change;
    const { keeping, prefix } = this.#options;
    const answer = await keeping.write({
      key: Buffer.from(`${prefix}${table.word}/${name}`),
      expected: table.revisionOf(name),
      value: value === null ? null : Buffer.from(value),
      guard: this.leadership.guard,
    });
    if (answer.ok && answer.value.succeeded) {
      this.applied.ok++;
      table.learn(name, value, answer.value.revision);
      return;
    }
    this.applied[answer.ok ? 'conflict' : 'failed']++;
    const why = answer.ok ? `${table.word}/${name} was changed by another one` : answer.message;
    await this.leadership.resign(why);
    throw new CallError(GRPC_CODES.unavailable, `it is not known what became of it: ${why}`);
  }

  async #load(): Promise<boolean> {
    const { keeping, prefix, log } = this.#options;
    const end = Buffer.from(prefix);
    end[end.length - 1] = (end[end.length - 1] ?? 0) + 1;
    const kept: KeptValue[] = [];
    let key = Buffer.from(prefix);
    let revision = 0;
    for (;;) {
      const page = await keeping.range({ key, end, limit: PAGE, revision });
      if (!page.ok) throw new Error(page.message);
      kept.push(...page.value.kvs);
      revision = page.value.revision;
      const last = page.value.kvs.at(-1);
      if (!page.value.more || last === undefined) break;
      key = Buffer.concat([last.key, Buffer.from([0])]);
    }
    this.#reports.clear();
    this.instructions.clear();
    for (const unread of this.registry.load(prefix, kept)) {
      log('warn', `${unread} cannot be read and counts for nothing`);
    }
    return true;
  }
}

function named(field: string, text: string): void {
  if (text === '') throw invalid(`${field} is empty`);
  if (Buffer.byteLength(text) > NAME_BYTES_MAX) {
    throw invalid(`${field} is longer than ${NAME_BYTES_MAX} bytes`);
  }
}

function invalid(message: string): CallError {
  return new CallError(GRPC_CODES.invalidArgument, message);
}

function taken(message: string): CallError {
  return new CallError(GRPC_CODES.alreadyExists, message);
}

function full(message: string): CallError {
  return new CallError(GRPC_CODES.resourceExhausted, message);
}

/**
 * What a coordinator keeps, as it stands in etcd: one key for each shard, cluster, domain, quota
 * and provider, below one prefix. Values are the messages of the wire in protobuf's JSON, so that
 * `etcdctl get --prefix` reads well. A value that cannot be read is left alone and told of.
 */
import { create, fromJsonString, toJsonString } from '@bufbuild/protobuf';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import {
  DomainAssignmentSchema,
  ProviderEntrySchema,
  QuotaAllocationSchema,
  ShardRegistryEntrySchema,
} from '../contract/tables/coordinator.ts';
import type {
  DomainAssignment,
  ProviderEntry,
  QuotaAllocation,
} from '../contract/tables/coordinator.ts';
import { ClusterBindingSchema } from '../contract/tables/registry.ts';
import type { ClusterBinding } from '../contract/tables/registry.ts';
import { byUtf8 } from '../contract/text-order.ts';

/** A key and what it holds, as etcd tells them. */
export interface KeptValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly modRevision: number;
}

/** A change that is to be written: null deletes. */
export interface Change {
  readonly table: Table<DescMessage>;
  readonly name: string;
  readonly value: string | null;
}

interface Entry<Message> {
  readonly message: Message;
  /** Of its last change in etcd. */
  readonly revision: number;
}

/** One kind of records: name (parts that are escaped, joined by `/`) to message. */
export class Table<Schema extends DescMessage> {
  readonly word: string;
  readonly #schema: Schema;
  readonly #entries = new Map<string, Entry<MessageShape<Schema>>>();
  /** Rises with each change. */
  version = 0;

  constructor(word: string, schema: Schema) {
    this.word = word;
    this.#schema = schema;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(...parts: readonly string[]): MessageShape<Schema> | undefined {
    return this.#entries.get(nameOf(parts))?.message;
  }

  /** 0: there is none. */
  revisionOf(name: string): number {
    return this.#entries.get(name)?.revision ?? 0;
  }

  /** In no order. */
  *values(): Generator<MessageShape<Schema>> {
    for (const { message } of this.#entries.values()) yield message;
  }

  /** By name. */
  get all(): MessageShape<Schema>[] {
    const sorted = [...this.#entries].sort(([left], [right]) => byUtf8(left, right));
    return sorted.map(([, { message }]) => message);
  }

  /** How a message would be written. */
  put(message: MessageShape<Schema>, ...parts: readonly string[]): Change {
    return this.#change(parts, toJsonString(this.#schema, message));
  }

  remove(...parts: readonly string[]): Change {
    return this.#change(parts, null);
  }

  #change(parts: readonly string[], value: string | null): Change {
    return { table: this, name: nameOf(parts), value };
  }

  /** Takes what etcd holds. Throws where it is no such message. */
  learn(name: string, value: string | null, revision: number): void {
    this.version++;
    if (value === null) {
      this.#entries.delete(name);
      return;
    }
    const options = { ignoreUnknownFields: true };
    this.#entries.set(name, { message: fromJsonString(this.#schema, value, options), revision });
  }

  clear(): void {
    this.version++;
    this.#entries.clear();
  }
}

function nameOf(parts: readonly string[]): string {
  return parts.map((part) => encodeURIComponent(part)).join('/');
}

export class Registry {
  readonly shards: Table<typeof ShardRegistryEntrySchema> = new Table(
    'shards',
    ShardRegistryEntrySchema,
  );
  /** Which shard each cluster is bound to. */
  readonly clusters: Table<typeof ClusterBindingSchema> = new Table(
    'clusters',
    ClusterBindingSchema,
  );
  /** Which shard has each domain. */
  readonly domains: Table<typeof DomainAssignmentSchema> = new Table(
    'domains',
    DomainAssignmentSchema,
  );
  /** Domains that a shard had, and has not been told to give up yet: by shard, key and value. */
  readonly withdrawn: Table<typeof DomainAssignmentSchema> = new Table(
    'withdrawn',
    DomainAssignmentSchema,
  );
  readonly quotas: Table<typeof QuotaAllocationSchema> = new Table('quotas', QuotaAllocationSchema);
  readonly providers: Table<typeof ProviderEntrySchema> = new Table(
    'providers',
    ProviderEntrySchema,
  );

  get tables(): readonly Table<DescMessage>[] {
    const { shards, clusters, domains, withdrawn, quotas, providers } = this;
    const all = [shards, clusters, domains, withdrawn, quotas, providers];
    return all;
  }

  /** Begins anew with what etcd holds below `prefix`. Answers keys that cannot be read. */
  load(prefix: string, kept: readonly KeptValue[]): string[] {
    const unread: string[] = [];
    for (const table of this.tables) table.clear();
    for (const { key, value, modRevision } of kept) {
      const path = key.toString().slice(prefix.length);
      const slash = path.indexOf('/');
      const table = this.tables.find(({ word }) => word === path.slice(0, slash));
      if (table === undefined) continue;
      try {
        table.learn(path.slice(slash + 1), value.toString(), modRevision);
      } catch {
        unread.push(key.toString());
      }
    }
    return unread;
  }

  /** All of it as JSON: a snapshot for people and for a new etcd. */
  dump(): string {
    const lines = this.tables.flatMap((table) => {
      return table.all.map((message) => {
        const schema = SCHEMAS.get(table.word);
        const text = schema === undefined ? '{}' : toJsonString(schema, message);
        return `{"kind":"${table.word}","value":${text}}`;
      });
    });
    return lines.map((line) => `${line}\n`).join('');
  }
}

const SCHEMAS: ReadonlyMap<string, DescMessage> = new Map<string, DescMessage>([
  ['shards', ShardRegistryEntrySchema],
  ['clusters', ClusterBindingSchema],
  ['domains', DomainAssignmentSchema],
  ['withdrawn', DomainAssignmentSchema],
  ['quotas', QuotaAllocationSchema],
  ['providers', ProviderEntrySchema],
]);

export function domainOf(key: string, value: string, shardId: string): DomainAssignment {
  return create(DomainAssignmentSchema, { topologyKey: key, topologyValue: value, shardId });
}

export function bindingOf(clusterId: string, shardId: string): ClusterBinding {
  return create(ClusterBindingSchema, { clusterId, shardId });
}

export function quotaOf(
  provider: string,
  region: string,
  perShard: Readonly<Record<string, number>>,
): QuotaAllocation {
  return create(QuotaAllocationSchema, { provider, region, perShard: { ...perShard } });
}

export function providerOf({ name, address, region }: ProviderEntry): ProviderEntry {
  return create(ProviderEntrySchema, { name, address, region });
}

// shell: asks and tells a coordinator, for people
import { create, toJson } from '@bufbuild/protobuf';
import type {
  DescMessage,
  DescMethod,
  JsonValue,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { CallError, callUnary, MESSAGE_BYTES_MAX } from '../contract/calls.ts';
import { Coordinator } from '../contract/tables/coordinator.ts';
import { FleetRegistry } from '../contract/tables/registry.ts';
import { textTable } from '../contract/text-table.ts';

const CALL_MS_MAX = 30_000;
const NANOS = 1_000_000n;

export interface Coordinators {
  /** Asked in turn until one leads. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  readonly tls?: ConnectTls;
}

type Unary<Input extends DescMessage, Output extends DescMessage> = DescMethod & {
  readonly methodKind: 'unary';
  readonly input: Input;
  readonly output: Output;
};

/** Calls whichever coordinator leads. Rejects with a `CallError`, the last one's. */
async function ask<Input extends DescMessage, Output extends DescMessage>(
  { addresses, tls }: Coordinators,
  method: Unary<Input, Output>,
  request: MessageInitShape<Input>,
): Promise<MessageShape<Output>> {
  let last: unknown = new Error('there is no address');
  for (const { host, port } of addresses) {
    const connection = connect({ host, port, ...(tls === undefined ? {} : { tls }) });
    const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
    try {
      return await callUnary(client, method, create(method.input, request), CALL_MS_MAX);
    } catch (error) {
      last = error;
      const code = error instanceof CallError ? error.code : GRPC_CODES.internal;
      if (code !== GRPC_CODES.failedPrecondition && code !== GRPC_CODES.unavailable) throw error;
    } finally {
      connection.destroy();
    }
  }
  throw last;
}

/** What a coordinator keeps, as tables or as JSON. */
export async function assignments(
  whom: Coordinators,
): Promise<{ readonly table: string; readonly json: JsonValue }> {
  const { method } = Coordinator;
  const shards = await ask(whom, method.listShards, {});
  const reports = await ask(whom, method.listShardReports, {});
  const clusters = await ask(whom, FleetRegistry.method.listClusters, {});
  const domains = await ask(whom, method.listDomainAssignments, {});
  const quotas = await ask(whom, method.listQuotas, {});
  const providers = await ask(whom, method.listProviders, {});
  const reportOf = new Map(reports.reports.map((report) => [report.shardId, report]));
  const shardRows = shards.shards.map(({ shardId, address, lastHeartbeatUnixNs }) => {
    const report = reportOf.get(shardId);
    const heard = lastHeartbeatUnixNs === 0n ? 'never' : timeOf(lastHeartbeatUnixNs);
    const { totalMachines = 0, freeMachines = 0 } = report?.summary ?? {};
    const short = report?.shortfalls.length ?? 0;
    return [shardId, address, heard, String(totalMachines), String(freeMachines), String(short)];
  });
  const quotaRows = quotas.allocations.flatMap(({ provider, region, perShard }) => {
    return Object.entries(perShard).map(([shard, slice]) => [
      provider,
      region,
      shard,
      String(slice),
    ]);
  });
  const table = [
    textTable(['SHARD', 'ADDRESS', 'HEARD', 'MACHINES', 'FREE', 'SHORTFALLS'], shardRows),
    textTable(
      ['CLUSTER', 'SHARD'],
      clusters.clusters.map((one) => [one.clusterId, one.shardId]),
    ),
    textTable(
      ['DOMAIN', 'SHARD'],
      domains.assignments.map((one) => [`${one.topologyKey}=${one.topologyValue}`, one.shardId]),
    ),
    textTable(['PROVIDER', 'REGION', 'SHARD', 'QUOTA'], quotaRows),
    textTable(
      ['PROVIDER', 'ADDRESS', 'REGION'],
      providers.providers.map(({ name, address, region }) => [name, address, region]),
    ),
  ].join('\n\n');
  const { listShards, listShardReports, listDomainAssignments, listQuotas, listProviders } = method;
  const json = {
    shards: toJson(listShards.output, shards),
    reports: toJson(listShardReports.output, reports),
    clusters: toJson(FleetRegistry.method.listClusters.output, clusters),
    domains: toJson(listDomainAssignments.output, domains),
    quotas: toJson(listQuotas.output, quotas),
    providers: toJson(listProviders.output, providers),
  };
  return { table, json };
}

function timeOf(unixNs: bigint): string {
  return new Date(Number(unixNs / NANOS)).toISOString();
}

/** A change of what a coordinator keeps. */
export type Assignment =
  | {
      readonly kind: 'assign-domain' | 'unassign-domain';
      readonly key: string;
      readonly value: string;
      readonly shard: string;
    }
  | {
      readonly kind: 'bind-cluster' | 'unbind-cluster';
      readonly cluster: string;
      readonly shard: string;
    }
  | { readonly kind: 'remove-shard'; readonly shard: string }
  | {
      readonly kind: 'set-quota';
      readonly provider: string;
      readonly region: string;
      readonly limit: number;
      readonly slices: ReadonlyMap<string, number>;
    }
  | {
      readonly kind: 'put-provider' | 'remove-provider';
      readonly name: string;
      readonly address: string;
      readonly region: string;
    };

/** Makes a change. Rejects with a `CallError`. */
export async function assign(whom: Coordinators, change: Assignment): Promise<void> {
  const { method } = Coordinator;
  const registry = FleetRegistry.method;
  switch (change.kind) {
    case 'assign-domain':
    case 'unassign-domain': {
      const { key: topologyKey, value: topologyValue, shard: shardId } = change;
      const domain = { topologyKey, topologyValue };
      if (change.kind === 'unassign-domain') await ask(whom, method.unassignDomain, domain);
      else await ask(whom, method.assignDomain, { ...domain, shardId });
      return;
    }
    case 'bind-cluster':
    case 'unbind-cluster': {
      const binding = { clusterId: change.cluster, shardId: change.shard };
      const isBind = change.kind === 'bind-cluster';
      await ask(whom, isBind ? registry.bindCluster : registry.unbindCluster, binding);
      return;
    }
    case 'remove-shard':
      await ask(whom, method.removeShard, { shardId: change.shard });
      return;
    case 'set-quota': {
      const { provider, region, limit, slices } = change;
      const perShard = Object.fromEntries(slices);
      await ask(whom, registry.setQuota, { provider, region, limit, perShard });
      return;
    }
    case 'put-provider': {
      const { name, address, region } = change;
      await ask(whom, registry.putProvider, { name, address, region });
      return;
    }
    case 'remove-provider':
      await ask(whom, registry.removeProvider, { name: change.name });
  }
}

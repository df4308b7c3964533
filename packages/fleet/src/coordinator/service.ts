/** The services of a coordinator over gRPC, and who may call what: section 2.9. */
import { create, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, DescMethod, MessageShape } from '@bufbuild/protobuf';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcCallHandler, GrpcMethods } from '@megaplane/wire/grpc';
import { CallError, pathOfMethod, refuse, serveUnary } from '../contract/calls.ts';
import { identityOf } from '../contract/identity.ts';
import {
  AssignDomainResponseSchema,
  Coordinator as Published,
  ListDomainAssignmentsResponseSchema,
  ListProvidersResponseSchema,
  ListQuotasResponseSchema,
  ListShardReportsResponseSchema,
  ListShardsResponseSchema,
  RemoveShardResponseSchema,
  SnapshotSaveChunkSchema,
  UnassignDomainResponseSchema,
} from '../contract/tables/coordinator.ts';
import {
  FleetRegistry,
  ListClustersResponseSchema,
  RegistryAckSchema,
} from '../contract/tables/registry.ts';
import type { Coordinator } from './coordinator.ts';

const ADMIN = 'bigfleet://admin';
const READONLY = 'bigfleet://readonly';
const CHUNK_BYTES = 1024 * 1024;

type Unary<Input extends DescMessage, Output extends DescMessage> = DescMethod & {
  readonly methodKind: 'unary';
  readonly input: Input;
  readonly output: Output;
};

/** Serves both services. Identities count on connections with TLS; others are not asked. */
export function serveCoordinator(methods: GrpcMethods, coordinator: Coordinator): void {
  const serve = <Input extends DescMessage, Output extends DescMessage>(
    method: Unary<Input, Output>,
    allowed: readonly string[],
    handle: (request: MessageShape<Input>) => Promise<MessageShape<Output>> | MessageShape<Output>,
  ): void => {
    serveUnary(methods, method, (request, call) => {
      admit(call, allowed);
      return handle(request);
    });
  };
  const { method } = Published;
  serveUnary(methods, method.reportShard, (report, call) => {
    admit(call, [`bigfleet://shard/${report.shardId}`]);
    return coordinator.reportShard(report);
  });
  serve(method.assignDomain, [ADMIN], async (request) => {
    await coordinator.assignDomain(request);
    return create(AssignDomainResponseSchema);
  });
  serve(method.unassignDomain, [ADMIN], async (request) => {
    await coordinator.unassignDomain(request);
    return create(UnassignDomainResponseSchema);
  });
  serve(method.removeShard, [ADMIN], async ({ shardId }) => {
    await coordinator.removeShard(shardId);
    return create(RemoveShardResponseSchema);
  });
  serve(method.joinRaftCluster, [ADMIN], () => {
    const why = 'coordinators share an etcd cluster and form no Raft group: start one more';
    throw new CallError(GRPC_CODES.unimplemented, why);
  });
  const readers = [READONLY, ADMIN];
  const { registry } = coordinator;
  serve(method.listShards, readers, () => {
    return create(ListShardsResponseSchema, { shards: coordinator.listShards() });
  });
  serve(method.listDomainAssignments, readers, () => {
    coordinator.lead();
    return create(ListDomainAssignmentsResponseSchema, { assignments: registry.domains.all });
  });
  serve(method.listQuotas, readers, () => {
    coordinator.lead();
    return create(ListQuotasResponseSchema, { allocations: registry.quotas.all });
  });
  serve(method.listProviders, readers, () => {
    coordinator.lead();
    return create(ListProvidersResponseSchema, { providers: registry.providers.all });
  });
  serve(method.listShardReports, readers, ({ shardId }) => {
    return create(ListShardReportsResponseSchema, { reports: coordinator.listReports(shardId) });
  });
  methods.call(
    pathOfMethod(method.snapshotSave),
    (call) => snapshot(call, coordinator),
    'server_stream',
  );
  serveRegistry(serve, coordinator);
}

type Serve = <Input extends DescMessage, Output extends DescMessage>(
  method: Unary<Input, Output>,
  allowed: readonly string[],
  handle: (request: MessageShape<Input>) => Promise<MessageShape<Output>> | MessageShape<Output>,
) => void;

function serveRegistry(serve: Serve, coordinator: Coordinator): void {
  const { method } = FleetRegistry;
  const change = <Input extends DescMessage>(
    one: Unary<Input, typeof RegistryAckSchema>,
    make: (request: MessageShape<Input>) => Promise<void>,
  ): void => {
    serve(one, [ADMIN], async (request) => {
      await make(request);
      return create(RegistryAckSchema);
    });
  };
  change(method.bindCluster, (request) => coordinator.bindCluster(request));
  change(method.unbindCluster, ({ clusterId }) => coordinator.unbindCluster(clusterId));
  change(method.setQuota, (request) => coordinator.setQuota(request));
  change(method.putProvider, (request) => coordinator.putProvider(request));
  change(method.removeProvider, ({ name }) => coordinator.removeProvider(name));
  serve(method.listClusters, [READONLY, ADMIN], () => {
    coordinator.lead();
    return create(ListClustersResponseSchema, { clusters: coordinator.registry.clusters.all });
  });
}

/** Throws `PermissionDenied` for who is none of those. */
function admit(call: GrpcCall, allowed: readonly string[]): void {
  const identity = identityOf(call.connection);
  if (identity === undefined || allowed.includes(identity)) return;
  const why = `the certificate is not of ${allowed.join(' or ')}`;
  throw new CallError(GRPC_CODES.permissionDenied, why);
}

/** A first frame that tells what follows, then all records as lines of JSON. */
function snapshot(call: GrpcCall, coordinator: Coordinator): GrpcCallHandler {
  let frames: Uint8Array[] = [];
  const send = (): void => {
    while (!call.closed && call.writable() > 0) {
      const frame = frames.shift();
      if (frame === undefined) return call.finish(GRPC_CODES.ok);
      call.send(frame);
    }
  };
  return {
    onMessage: () => {},
    onHalfClose: () => {
      try {
        admit(call, [ADMIN]);
        const term = coordinator.lead();
        const data = Buffer.from(coordinator.registry.dump());
        const meta = { format: 'megaplane.fleet/v1', term, bytes: data.length };
        const frameOf = (payload: 'metaJson' | 'data', value: Uint8Array): Uint8Array =>
          toBinary(
            SnapshotSaveChunkSchema,
            create(SnapshotSaveChunkSchema, { payload: { case: payload, value } }),
          );
        frames = [frameOf('metaJson', Buffer.from(JSON.stringify(meta)))];
        for (let at = 0; at < data.length; at += CHUNK_BYTES) {
          frames.push(frameOf('data', data.subarray(at, at + CHUNK_BYTES)));
        }
      } catch (error) {
        return refuse(call, error);
      }
      send();
    },
    onCancel: () => {
      frames = [];
    },
    onWritable: send,
  };
}

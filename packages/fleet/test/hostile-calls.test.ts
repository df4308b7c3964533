/**
 * Whatever comes to the ports of a provider, a shard and a coordinator, as bytes, requests or calls
 * of every method with damaged messages: others are served afterwards, and nothing is an error of
 * the program's own.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ScalarType, type DescField, type DescMessage, type DescService } from '@bufbuild/protobuf';
import { ask, besiege, plainDoor, type HostilePort } from '@megaplane/base/hostile-client.sim';
import { messageBytes, type MessageField } from '@megaplane/base/hostile-message.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { pathOfMethod } from '../src/contract/calls.ts';
import { InfrastructureAutoscaler } from '../src/contract/tables/autoscaler.ts';
import { Coordinator } from '../src/contract/tables/coordinator.ts';
import { CapacityProvider } from '../src/contract/tables/provider.ts';
import { FleetRegistry } from '../src/contract/tables/registry.ts';
import { Shard } from '../src/contract/tables/shard.ts';
import { ShardLook } from '../src/contract/tables/shardlook.ts';
import { ShardRead } from '../src/contract/tables/shardread.ts';
import { SimulatedEtcd } from '../src/coordinator/etcd.sim.ts';
import { runCoordinator } from '../src/coordinator/run.ts';
import { SHARD_DEFAULTS } from '../src/engine/shard.ts';
import { runProvider } from '../src/provider/run.ts';
import { runShard } from '../src/shard/run.ts';

const timeout = FUZZ_SECONDS > 0 ? 36_000_000 : 110_000;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-hostile-fleet-'));
const errors: string[] = [];
const services: { stop(): Promise<void> }[] = [];
const ports: HostilePort[] = [];

const log = (level: string, message: string): void => {
  if (level === 'error') errors.push(message);
};

const FIXED64 = new Set([ScalarType.DOUBLE, ScalarType.FIXED64, ScalarType.SFIXED64]);
const FIXED32 = new Set([ScalarType.FLOAT, ScalarType.FIXED32, ScalarType.SFIXED32]);

function scalarOf(number: number, type: ScalarType): MessageField {
  if (FIXED64.has(type)) return { number, kind: 'fixed64' };
  if (FIXED32.has(type)) return { number, kind: 'fixed32' };
  const isBytes = type === ScalarType.STRING || type === ScalarType.BYTES;
  return { number, kind: isBytes ? 'bytes' : 'varint' };
}

function fieldOf(field: DescField): MessageField {
  const { number } = field;
  if (field.fieldKind === 'map') {
    const value: MessageField =
      field.mapKind === 'message'
        ? { number: 2, kind: 'message', fields: () => fieldsOf(field.message) }
        : scalarOf(2, field.mapKind === 'enum' ? ScalarType.INT32 : field.scalar);
    return { number, kind: 'message', fields: () => [scalarOf(1, field.mapKey), value] };
  }
  if (field.message !== undefined) {
    const { message } = field;
    return { number, kind: 'message', fields: () => fieldsOf(message) };
  }
  return scalarOf(number, field.scalar ?? ScalarType.INT32);
}

function fieldsOf(message: DescMessage): readonly MessageField[] {
  return message.fields.map(fieldOf);
}

function portsOf(
  name: string,
  { port, metricsUrl }: { readonly port: number; readonly metricsUrl: string },
  of: readonly DescService[],
): HostilePort[] {
  const calls = of.flatMap(({ methods }) =>
    methods.map((method) => ({
      path: pathOfMethod(method),
      message: messageBytes(fieldsOf(method.input)),
    })),
  );
  const [open, metrics] = [plainDoor(port), plainDoor(Number(new URL(metricsUrl).port))];
  const answers = async (): Promise<void> => {
    assert.match(await ask(open, '/'), /^HTTP\/1\.1 404 [^]*only gRPC is served here/);
    assert.match(await ask(metrics, '/metrics'), /^HTTP\/1\.1 200 /);
  };
  return [
    { name, port, open, calls, answers },
    { name: `${name}, metrics`, port: Number(new URL(metricsUrl).port), open: metrics, answers },
  ];
}

before(async () => {
  const own = { host: '127.0.0.1', port: 0, metricsAddress: '127.0.0.1:0', log };
  const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', price: 1 };
  const offers = [{ ...facts, slots: 20, resources: { cpu: 4 } }];
  const source = { kind: 'simulated', file: { offers, latencies: {} }, seed: 1 } as const;
  const begin = (name: string): ReturnType<typeof runProvider> =>
    runProvider({ ...own, source, timeoutMs: 60_000, dataDir: join(dir, name) });
  // one for strangers, and one whose only connection is the shard's
  const [provider, other] = [await begin('provider'), await begin('other')];
  services.unshift(provider, other);
  const coordinator = await runCoordinator({
    ...{ ...own, keeping: new SimulatedEtcd().client(), prefix: '/f/', ttlSeconds: 60 },
  });
  services.unshift(coordinator);
  const shard = await runShard({
    ...{ ...own, shardId: 's1', dataDir: join(dir, 'shard'), engine: SHARD_DEFAULTS },
    providers: [{ host: '127.0.0.1', port: other.port, isSecure: false }],
    ...{ cycleMs: 50, joinMs: 60_000, concurrency: 4, isIncremental: true },
  });
  services.unshift(shard);
  ports.push(
    ...portsOf('provider', provider, [CapacityProvider]),
    ...portsOf('coordinator', coordinator, [Coordinator, FleetRegistry]),
    ...portsOf('shard', shard, [Shard, ShardRead, ShardLook, InfrastructureAutoscaler]),
  );
});

after(async () => {
  for (const service of services) await service.stop();
  rmSync(dir, { recursive: true, force: true });
});

test('whatever comes to a port of the fleet, others are served', { timeout }, async () => {
  const ended = await besiege(ports, { runs: 50, errors });
  // not all of it is refused at the door
  assert(ended.size > 5 && [...ended.values()].some((codes) => codes.has('0')));
});

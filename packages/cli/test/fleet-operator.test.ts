import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createKubeClient } from '@megaplane/client/kube-client';
import { pathOfMethod } from '@megaplane/fleet/contract/calls';
import { MachineState } from '@megaplane/fleet/contract/tables/provider';
import {
  OperatorMessageSchema,
  Shard,
  ShardMessageSchema,
} from '@megaplane/fleet/contract/tables/shard';
import type { OperatorMessage, ShardMessage } from '@megaplane/fleet/contract/tables/shard';
import { runOperator } from '@megaplane/fleet/operator/run';
import { stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import type { GrpcCall } from '@megaplane/wire/grpc';
import { listen } from '@megaplane/wire/listener';
import { ENTRY, SERVER_ONLY, startCluster } from './cluster.ts';

/** Only what is broken takes so long. */
const TRIES_MAX = 900;
const PAUSE_MS = 100;
const API = '/apis/bigfleet.lucy.sh/v1alpha1';

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < TRIES_MAX, `never: ${what}`);
    await setTimeout(PAUSE_MS);
  }
}

/** A shard that only listens, and says what it is told to say. */
class StubShard {
  readonly heard: OperatorMessage[] = [];
  readonly routes = new GrpcRoutes({
    messageBytesMax: 1 << 28,
    messageTooLargeText: () => 'too large',
  });
  call: GrpcCall | null = null;

  constructor() {
    this.routes.call(pathOfMethod(Shard.method.session), (call) => {
      this.call = call;
      return {
        onMessage: (bytes, start, end) => {
          this.heard.push(fromBinary(OperatorMessageSchema, bytes.subarray(start, end)));
        },
        onHalfClose: () => call.finish(0),
        onCancel: () => {},
      };
    });
  }

  say(payload: ShardMessage['payload']): void {
    const message = create(ShardMessageSchema);
    message.payload = payload;
    this.call?.send(toBinary(ShardMessageSchema, message));
  }

  cases(): string[] {
    return this.heard.map(({ payload }) => payload.case ?? '');
  }
}

test('an operator reports, acknowledges, bootstraps, follows nodes and comes back', async () => {
  const cluster = await startCluster(SERVER_ONLY);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  const shard = new StubShard();
  const handler = (): never => assert.fail('only gRPC comes');
  const listener = await listen({ handler, grpc: shard.routes });
  const object = async (path: string): Promise<JsonObject> => {
    const answer = await client.request({ method: 'GET', path });
    return answer.ok ? answer.object : {};
  };
  const post = async (path: string, body: JsonObject | string, type: string): Promise<void> => {
    const answer = await client.request({ method: 'POST', path, body, contentType: type });
    assert.ok(answer.ok, `${path}: ${answer.ok ? '' : answer.status.message}`);
  };
  const definitions = execFileSync(process.execPath, [ENTRY, 'fleet', 'definitions']);
  for (const text of String(definitions).split('---\n')) {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await post(path, text, 'application/yaml');
  }
  const service = await runOperator({
    ...{ kubeconfig: cluster.kubeconfig, clusterId: 'c1', host: '127.0.0.1' },
    ...{ port: listener.address.port, rollUpMs: 1000, groupsByNamespace: true },
    bootstrap: 'join {{ .ClusterID }} with {{ .Requirements }}',
    ...{ bootstrapTtlSeconds: 60, log: () => {} },
  });
  try {
    const requests = `${API}/namespaces/default/capacityrequests`;
    const make = async (name: string, spec: JsonObject): Promise<void> => {
      const kind = { apiVersion: 'bigfleet.lucy.sh/v1alpha1', kind: 'CapacityRequest' };
      const whole = { priority: 3, resources: { cpu: '2' }, ...spec };
      await until(`request ${name}`, async () => {
        const body = { ...kind, metadata: { name }, spec: whole };
        return (await client.request({ method: 'POST', path: requests, body })).ok;
      });
    };
    await make('good', {});
    await make('bad', { requirements: [{ key: 'a', operator: 'Gt', values: ['1'] }] });
    const phase = async (name: string): Promise<string> =>
      stringAt(await object(`${requests}/${name}`), 'status', 'phase');
    await until('good is acknowledged', async () => (await phase('good')) === 'Acknowledged');
    await until('bad is told why', async () =>
      JSON.stringify(await object(`${requests}/bad`)).includes('"reason":"UnknownOperator"'),
    );
    assert.equal(await phase('bad'), 'Pending');
    assert.equal(shard.cases()[0], 'hello');
    const last = shard.heard.findLast(({ payload }) => payload.case === 'rollup');
    assert.ok(last?.payload.case === 'rollup');
    assert.deepEqual(
      last.payload.value.needs.map(({ aggregateResources }) => aggregateResources),
      [{ cpu: '2' }],
    );

    const asked = create(ShardMessageSchema, {
      payload: { case: 'bootstrapRequest', value: { requestId: 'r1', clusterId: 'c1' } },
    });
    shard.say(asked.payload);
    await until('a blob comes', () => shard.cases().includes('bootstrapResponse'));
    const answer = shard.heard.find(({ payload }) => payload.case === 'bootstrapResponse');
    assert.ok(answer?.payload.case === 'bootstrapResponse');
    assert.equal(Buffer.from(answer.payload.value.userData).toString(), 'join c1 with []');
    assert.equal(answer.payload.value.ttlSeconds, 60n);

    const kind = { apiVersion: 'v1', kind: 'Node' };
    await post('/api/v1/nodes', { ...kind, metadata: { name: 'm1' } }, 'application/json');
    const tell = (state: MachineState): void => {
      const value = { machineId: 'm1', state, resources: { resources: { cpu: '4' } } };
      const payload = { case: 'nodeStateUpdate' as const, value };
      shard.say(create(ShardMessageSchema, { payload }).payload);
    };
    const node = `${API}/upcomingnodes/m1`;
    const nodePhase = async (): Promise<string> => stringAt(await object(node), 'status', 'phase');
    tell(MachineState.CONFIGURED);
    await until('the node is ready', async () => (await nodePhase()) === 'Ready');
    const value = { instructionId: 'i1', nodes: ['m1'], gracePeriodSeconds: 10n };
    const payload = { case: 'reclaimInstruction' as const, value };
    shard.say(create(ShardMessageSchema, { payload }).payload);
    await until('the drain is acknowledged', () => shard.cases().includes('reclaimAck'));
    assert.equal(valueAt(await object('/api/v1/nodes/m1'), 'spec', 'unschedulable'), true);
    await until('it is drained', async () => (await nodePhase()) === 'Drained');
    tell(MachineState.DRAINING);
    tell(MachineState.IDLE);
    await until('its object is gone', async () => (await nodePhase()) === '');

    shard.call?.finish(14, 'the shard goes');
    const heard = shard.heard.length;
    await until('it comes back', () => shard.cases().slice(heard).includes('rollup'));
    assert.equal(shard.cases()[heard], 'hello');
  } finally {
    await service.stop();
    client.close();
    await listener.close();
    await cluster.remove();
  }
});

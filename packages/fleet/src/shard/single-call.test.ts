import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  AcknowledgementSchema,
  ClusterCapacityNeedsSchema,
} from '../contract/tables/autoscaler.ts';
import { SHARD_DEFAULTS } from '../engine/shard.ts';
import { runProvider } from '../provider/run.ts';
import { inspectNeeds, listMachines, listShortfalls, whatIf } from '../ctl/shard-questions.ts';
import { runShard } from './run.ts';

/** The published name: foreign programs have it in their generated code. */
const PATH = '/bigfleet.lucy.sh.v1alpha1.InfrastructureAutoscaler/UpdateClusterNeeds';

type Needs = MessageInitShape<typeof ClusterCapacityNeedsSchema>;

/** Calls by somebody else's gRPC; resolves with the answer, or the code of the failure. */
function update(client: Client, needs: Needs): Promise<boolean | number> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      PATH,
      (message: Needs) =>
        Buffer.from(
          toBinary(ClusterCapacityNeedsSchema, create(ClusterCapacityNeedsSchema, message)),
        ),
      (bytes: Buffer) => fromBinary(AcknowledgementSchema, bytes),
      needs,
      (error, answer) => resolve(error?.code ?? answer?.acknowledged ?? false),
    );
  });
}

test('demand comes by one call; readers see machines, shortfalls, what would be', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-single-call-'));
  const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', price: 1 };
  const file = { offers: [{ ...facts, slots: 3, resources: { cpu: 4 } }], latencies: {} };
  const provider = await runProvider({
    ...{ host: '127.0.0.1', port: 0, timeoutMs: 60_000 },
    source: { kind: 'simulated', file, seed: 1 },
  });
  const shard = await runShard({
    ...{ shardId: 's1', dataDir, host: '127.0.0.1', port: 0, metricsAddress: '127.0.0.1:0' },
    providers: [{ host: '127.0.0.1', port: provider.port, isSecure: false }],
    engine: SHARD_DEFAULTS,
    ...{ cycleMs: 50, joinMs: 60_000, concurrency: 4, isIncremental: false, log: () => {} },
  });
  const address = { host: '127.0.0.1', port: shard.port };
  const client = new Client(`127.0.0.1:${shard.port}`, credentials.createInsecure());
  try {
    const need = {
      requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['m4'] }],
      aggregateResources: { cpu: '6' },
      minUnit: { cpu: '1' },
      priority: 3,
    };
    const lacking = { ...need, requirements: [{ key: 'disk', operator: 'Exists' }], priority: 9 };
    assert.equal(await update(client, { clusterId: 'c1', needs: [need, lacking] }), true);
    for (;;) {
      const machines = await listMachines(address, { clusterId: '', states: ['Idle'], limit: 0 });
      if (machines.length === 2) break;
    }
    const frames = await inspectNeeds({ ...address, clusterId: 'c1', limit: 0 });
    const rows = frames.flatMap(({ frame }) => (frame.case === 'need' ? [frame.value] : []));
    assert.deepEqual(
      rows.map((row) => [row.need?.priority, row.unmetReason]),
      [
        [9, 2],
        [3, 0],
      ],
    );
    const { shortfalls, cycle } = await listShortfalls(address);
    assert.ok(cycle > 0n);
    assert.deepEqual(
      shortfalls.map((one) => one.deficit?.resources),
      [{ cpu: '6' }],
    );

    const rollup = { clusterId: 'c2', needs: [{ aggregateResources: { cpu: '4' } }] };
    const answer = await whatIf(address, rollup);
    const actions = answer.flatMap(({ frame }) => (frame.case === 'action' ? [frame.value] : []));
    assert.deepEqual(
      actions.filter((one) => one.cluster === 'c2').map((one) => one.kind),
      ['Provision'],
    );
    // nothing of it came to be
    assert.deepEqual(
      await inspectNeeds({ ...address, clusterId: 'c2', limit: 0 }).then(([header]) =>
        header?.frame.case === 'header' ? header.frame.value.totalNeeds : -1,
      ),
      0,
    );

    const { invalidArgument } = { invalidArgument: 3 };
    const wrong = (needs: Needs['needs']): Promise<boolean | number> =>
      update(client, { clusterId: 'c1', needs: needs ?? [] });
    assert.equal(await update(client, { clusterId: '' }), invalidArgument);
    assert.equal(await update(client, { clusterId: 'c'.repeat(300) }), invalidArgument);
    const greater = { ...need, requirements: [{ key: 'a', operator: 'Gt', values: ['1'] }] };
    assert.equal(await wrong([greater]), invalidArgument);
    assert.equal(await wrong([{ ...need, aggregateResources: { cpu: 'x' } }]), invalidArgument);
    assert.equal(await wrong([{ ...need, interruptionPenaltyBucket: 99 as 1 }]), invalidArgument);
    const spread = [{ topologyKey: 'z', maxSkew: 1, whenUnsatisfiable: 'Never' }];
    assert.equal(await wrong([{ ...need, spread }]), invalidArgument);

    // demand that is nearly all gone has to come three times
    const many = Array.from({ length: 10 }, (_, priority) => ({ ...need, priority }));
    assert.equal(await wrong(many), true);
    assert.deepEqual([await wrong([]), await wrong([]), await wrong([])], [false, false, true]);
  } finally {
    client.close();
    await shard.stop();
    await provider.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

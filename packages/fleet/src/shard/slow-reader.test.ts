import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { pathOfMethod } from '../contract/calls.ts';
import { OperatorMessageSchema, Shard, ShardMessageSchema } from '../contract/tables/shard.ts';
import type { OperatorMessage, ShardMessage } from '../contract/tables/shard.ts';
import { SHARD_DEFAULTS } from '../engine/shard.ts';
import { runProvider } from '../provider/run.ts';
import { runShard } from './run.ts';

const MACHINES_EACH = 20;
const CONFIGURED = 5;

/** An operator of one cluster that wants machines, and reads nothing while it is paused. */
class Operator {
  readonly #stream: ClientDuplexStream<OperatorMessage, ShardMessage>;
  readonly #states = new Map<string, number>();
  #heard: () => void = () => {};

  constructor(client: Client, clusterId: string, isPaused: boolean) {
    this.#stream = client.makeBidiStreamRequest(
      pathOfMethod(Shard.method.session),
      (message: OperatorMessage) => Buffer.from(toBinary(OperatorMessageSchema, message)),
      (bytes: Buffer) => fromBinary(ShardMessageSchema, bytes),
    );
    this.#stream.on('error', () => {});
    this.#stream.on('data', ({ payload }: ShardMessage) => {
      if (payload.case === 'bootstrapRequest') {
        const { requestId } = payload.value;
        const userData = new Uint8Array([1]);
        this.#say({ case: 'bootstrapResponse', value: { requestId, userData } });
      }
      if (payload.case !== 'nodeStateUpdate') return;
      this.#states.set(payload.value.machineId, payload.value.state);
      this.#heard();
    });
    if (isPaused) this.#stream.pause();
    this.#say({ case: 'hello', value: { clusterId } });
    const cpu = String(4 * MACHINES_EACH);
    const need = { aggregateResources: { cpu }, minUnit: { cpu: '1' }, priority: 3 };
    this.#say({ case: 'rollup', value: { clusterId, needs: [need] } });
  }

  #say(payload: NonNullable<MessageInitShape<typeof OperatorMessageSchema>['payload']>): void {
    this.#stream.write(create(OperatorMessageSchema, { payload }));
  }

  resume(): void {
    this.#stream.resume();
  }

  get configured(): number {
    return [...this.#states.values()].filter((state) => state === CONFIGURED).length;
  }

  /** Resolves when all its machines are configured. */
  async served(): Promise<void> {
    while (this.configured < MACHINES_EACH) {
      await new Promise<void>((resolve) => (this.#heard = resolve));
    }
  }
}

test('an operator that reads nothing holds up nobody, and is served once it reads', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-slow-reader-'));
  const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', price: 1 };
  const offer = { ...facts, slots: 2 * MACHINES_EACH, resources: { cpu: 4 } };
  const provider = await runProvider({
    ...{ host: '127.0.0.1', port: 0, timeoutMs: 60_000 },
    source: { kind: 'simulated', file: { offers: [offer], latencies: {} }, seed: 1 },
  });
  const shard = await runShard({
    ...{ shardId: 's1', dataDir, host: '127.0.0.1', port: 0, metricsAddress: '127.0.0.1:0' },
    providers: [{ host: '127.0.0.1', port: provider.port, isSecure: false }],
    ...{ engine: SHARD_DEFAULTS, cycleMs: 50, joinMs: 60_000, concurrency: 16 },
    ...{ isIncremental: false, log: () => {} },
  });
  const clients = ['slow', 'quick'].map(
    () => new Client(`127.0.0.1:${shard.port}`, credentials.createInsecure()),
  );
  const [one, two] = clients;
  assert.ok(one !== undefined && two !== undefined);
  try {
    const slow = new Operator(one, 'slow', true);
    const quick = new Operator(two, 'quick', false);
    await quick.served();
    assert.equal(slow.configured, 0);
    slow.resume();
    await slow.served();
  } finally {
    for (const client of clients) client.close();
    await shard.stop();
    await provider.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

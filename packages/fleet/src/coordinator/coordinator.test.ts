import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { CallError } from '../contract/calls.ts';
import {
  AssignDomainRequestSchema,
  InstructAck_Outcome as Outcome,
  ShardReportSchema,
  UnassignDomainRequestSchema,
} from '../contract/tables/coordinator.ts';
import type { ReportAck } from '../contract/tables/coordinator.ts';
import { SetQuotaRequestSchema } from '../contract/tables/registry.ts';
import { Coordinator } from './coordinator.ts';
import { SimulatedEtcd } from './etcd.sim.ts';
import { bindingOf, providerOf } from './registry.ts';

const TTL_SECONDS = 6;

interface Timer {
  readonly dueMs: number;
  readonly fire: () => void;
}

/** Coordinators on one etcd, in one clock; each may sleep. */
class World {
  readonly etcd: SimulatedEtcd = new SimulatedEtcd();
  readonly log: string[] = [];
  #timers = new Map<number, Timer & { readonly of: string }>();
  #count = 0;
  readonly asleep = new Set<string>();

  coordinator(name: string): Coordinator {
    const coordinator = new Coordinator({
      keeping: this.etcd.client(),
      clock: {
        nowMs: () => this.etcd.nowMs,
        wallMs: () => this.etcd.nowMs,
        after: (delayMs, fire) => {
          const id = ++this.#count;
          this.#timers.set(id, { dueMs: this.etcd.nowMs + delayMs, fire, of: name });
          return () => this.#timers.delete(id);
        },
      },
      ...{ prefix: '/f/', self: name, ttlSeconds: TTL_SECONDS },
      log: (_, message) => this.log.push(`${name}: ${message}`),
    });
    coordinator.leadership.start();
    return coordinator;
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left >= 0; left -= 100) {
      for (const [id, { dueMs, fire, of }] of this.#timers) {
        if (dueMs > this.etcd.nowMs || this.asleep.has(of)) continue;
        this.#timers.delete(id);
        fire();
      }
      for (let turn = 0; turn < 30; turn++) await Promise.resolve();
      if (left > 0) this.etcd.pass(100);
    }
  }
}

function domain(topologyKey: string, topologyValue: string, shardId: string) {
  return create(AssignDomainRequestSchema, { topologyKey, topologyValue, shardId });
}

function undomain(topologyKey: string, topologyValue: string) {
  return create(UnassignDomainRequestSchema, { topologyKey, topologyValue });
}

/** Reports, and takes everything that is told. */
async function report(
  coordinator: Coordinator,
  shardId: string,
  last?: ReportAck,
  shardEpoch = 1n,
): Promise<ReportAck> {
  const instructionAcks = (last?.instructions ?? []).map(({ instructionId }) => {
    return { instructionId, outcome: Outcome.ACCEPTED };
  });
  const facts = { shardId, shardEpoch, shardAddress: `${shardId}:1`, instructionAcks };
  return coordinator.reportShard(create(ShardReportSchema, facts));
}

function told({ instructions }: ReportAck): string[] {
  return instructions.map(({ payload }) => {
    const isDomain = payload.case === 'assignDomain' || payload.case === 'unassignDomain';
    return `${payload.case} ${isDomain ? payload.value.topologyValue : ''}`;
  });
}

function code(expected: number) {
  return (error: unknown): boolean => error instanceof CallError && error.code === expected;
}

test('one of several leads, another takes over, and what was kept is there', async () => {
  const world = new World();
  const a = world.coordinator('a');
  await world.pass(100);
  const b = world.coordinator('b');
  await world.pass(3000);
  assert.ok(a.leadership.term > 0);
  assert.equal(b.leadership.term, 0);
  assert.equal(b.leadership.leader, 'a');
  await assert.rejects(report(b, 's1'), code(9));
  await report(a, 's1');
  await a.assignDomain(domain('rack', 'r1', 's1'));
  await a.bindCluster(bindingOf('c1', 's1'));
  await a.setQuota(
    create(SetQuotaRequestSchema, { provider: 'p', region: 'eu', perShard: { s1: 5 } }),
  );
  await a.putProvider({ ...providerOf({ name: 'p', address: 'h:1', region: '' } as never) });
  // it is gone without a word: its lease ends, and its term with it
  world.asleep.add('a');
  await world.pass(TTL_SECONDS * 1000 + 3000);
  assert.equal(a.leadership.term, 0);
  assert.ok(b.leadership.term > 1);
  assert.deepEqual(
    b.listShards().map(({ shardId, address }) => [shardId, address]),
    [['s1', 's1:1']],
  );
  assert.equal(b.registry.domains.get('rack', 'r1')?.shardId, 's1');
  assert.equal(b.registry.clusters.get('c1')?.shardId, 's1');
  assert.deepEqual(b.registry.quotas.get('p', 'eu')?.perShard, { s1: 5 });
  assert.equal(b.registry.providers.get('p')?.address, 'h:1');
  // the one that slept writes nothing, though it does not know yet
  await assert.rejects(a.assignDomain(domain('rack', 'r2', 's1')), code(9));
  world.asleep.delete('a');
  await world.pass(3000);
  assert.equal(a.leadership.leader, 'b');
});

test('a leader whose key is gone writes nothing, though its own clock stood still', async () => {
  const world = new World();
  const a = world.coordinator('a');
  await world.pass(100);
  await report(a, 's1');
  const before = world.etcd.keys;
  // its lease ended at etcd; nothing told it
  const other = world.etcd.client();
  await other.revokeLease({ high: 0, low: 1 });
  await assert.rejects(a.assignDomain(domain('rack', 'r1', 's1')), code(14));
  assert.deepEqual(
    world.etcd.keys,
    before.filter((key) => key !== '/f/leader'),
  );
  assert.equal(a.applied.conflict, 1);
});

test('a write of which nobody knows what became makes the leader read all anew', async () => {
  const world = new World();
  const a = world.coordinator('a');
  await world.pass(100);
  await report(a, 's1');
  world.etcd.fault = 'lost answers';
  const doubtful = a.assignDomain(domain('rack', 'r1', 's1'));
  await assert.rejects(doubtful, code(14));
  world.etcd.fault = 'none';
  await world.pass(TTL_SECONDS * 1000 + 5000);
  assert.ok(a.leadership.term > 0);
  // it had been written all the same
  assert.equal(a.registry.domains.get('rack', 'r1')?.shardId, 's1');
});

test('a domain has one shard, and another one only after it was given up', async () => {
  const world = new World();
  const a = world.coordinator('a');
  await world.pass(100);
  await report(a, 's1');
  await report(a, 's2');
  await a.assignDomain(domain('rack', 'r1', 's1'));
  await a.assignDomain(domain('rack', 'r1', 's1'));
  await assert.rejects(a.assignDomain(domain('rack', 'r1', 's2')), code(6));
  await assert.rejects(a.assignDomain(domain('rack', 'r1', 'nobody')), code(5));
  const first = await report(a, 's1');
  assert.deepEqual(told(first), ['assignDomain r1']);
  assert.deepEqual(told(await report(a, 's1', first)), []);
  // another life of the shard is told again
  assert.deepEqual(told(await report(a, 's1', undefined, 2n)), ['assignDomain r1']);

  await a.unassignDomain(undomain('rack', 'r1'));
  await a.unassignDomain(undomain('rack', 'r1'));
  await a.assignDomain(domain('rack', 'r1', 's2'));
  assert.deepEqual(told(await report(a, 's2')), [], 's1 still has it');
  const lost = await report(a, 's1', undefined, 2n);
  assert.deepEqual(told(lost), ['unassignDomain r1']);
  await report(a, 's1', lost, 2n);
  assert.deepEqual(told(await report(a, 's2')), ['assignDomain r1']);
});

test('a shard that is removed is waited for no more, and told if it comes back', async () => {
  const world = new World();
  const a = world.coordinator('a');
  await world.pass(100);
  await report(a, 's1');
  await report(a, 's2');
  await a.bindCluster(bindingOf('c1', 's1'));
  await assert.rejects(a.bindCluster(bindingOf('c1', 's2')), code(6));
  await a.assignDomain(domain('zone', 'z', 's1'));
  await report(a, 's1', await report(a, 's1'));
  await a.removeShard('s1');
  await assert.rejects(a.removeShard('s1'), code(5));
  await a.assignDomain(domain('zone', 'z', 's2'));
  await a.bindCluster(bindingOf('c1', 's2'));
  assert.deepEqual(told(await report(a, 's2')), ['assignDomain z']);
  assert.deepEqual(told(await report(a, 's1')), ['unassignDomain z']);
});

test('wrong words are refused, wrong records are told of and left alone', async () => {
  const world = new World();
  world.etcd.put('/f/shards/s9', '{"shardId":');
  world.etcd.put('/f/elsewhere/x', 'x');
  const a = world.coordinator('a');
  await world.pass(100);
  assert.ok(world.log.some((line) => line.includes('/f/shards/s9 cannot be read')));
  await assert.rejects(report(a, ''), code(3));
  await assert.rejects(report(a, 'x'.repeat(300)), code(3));
  await report(a, 's1');
  await assert.rejects(a.assignDomain(domain('', 'v', 's1')), code(3));
  const quota = { provider: 'p', region: 'r', perShard: { s1: 3, s2: 2 } };
  await assert.rejects(a.setQuota(create(SetQuotaRequestSchema, { ...quota, limit: 4 })), code(3));
  await assert.rejects(a.setQuota(create(SetQuotaRequestSchema, quota)), code(5));
  const negative = { ...quota, perShard: { s1: -1 } };
  await assert.rejects(a.setQuota(create(SetQuotaRequestSchema, negative)), code(3));
  assert.ok(world.etcd.keys.includes('/f/elsewhere/x'));
  // a name with a slash is one name
  await a.assignDomain(domain('a/b', 'c/d', 's1'));
  assert.ok(world.etcd.keys.includes('/f/domains/a%2Fb/c%2Fd'));
});

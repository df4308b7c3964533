/**
 * Kubelets through bad days, under a seeded clock: the server is gone, refuses all with 429, or is
 * slow; somebody else writes leases or deletes them; nodes go and come back under their names; the
 * process stands still; the machine's clock is set forward and back. After it every node's lease
 * is renewed in time, and meanwhile no node has asked more than its bound, nor all together more
 * than a multiple of what they usually ask.
 *
 * `MEGAPLANE_SEED=n` plays one again, `MEGAPLANE_LONG=1` lives two hours with 10,000 nodes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { FakeClient, type Sent } from '../../test/fake-client.ts';
import { CATCH_UP_FACTOR, Kubelets } from '../kubelet/kubelets.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const SEED = Number(process.env['MEGAPLANE_SEED'] ?? (IS_LONG ? Date.now() % 1e6 : 11));
const NODES = IS_LONG ? 10_000 : 300;
const HOURS = IS_LONG ? 2 : 0.75;
const PERIOD_MS = 10_000;
const STEP_MS = 50;
/** Of one node, whatever happens: a renewal each 10 s is 6; failures are asked ever more seldom. */
const REQUESTS_PER_MINUTE_MAX = 30;
/** In calm, after the last trouble, a lease is this old at most. */
const AGE_MS_MAX = 2 * PERIOD_MS;
const REST_MS = 120_000;

type Mood = 'well' | 'gone' | 'throttling' | 'slow';

interface Lease {
  version: number;
  renewTime: string;
  uid: string;
  /** By the clock that nobody sets. */
  writtenMs: number;
}

/** What an API server does with leases and statuses of nodes, and what happens to it. */
class Day {
  readonly client = new FakeClient(SEED);
  readonly metrics = new SimulatorMetrics();
  readonly random = new Random(SEED);
  readonly leases: Map<string, Lease> = new Map();
  readonly uids: Map<number, string> = new Map();
  readonly kubelets: Kubelets;
  mood: Mood = 'well';
  readonly #asked: Uint16Array = new Uint16Array(NODES);
  readonly #late: { readonly atMs: number; readonly sent: Sent }[] = [];
  #version = 0;
  #generation = 0;
  #minuteMs = 0;
  #secondMs = 0;
  #inSecond = 0;
  worstMinute = 0;
  worstSecond = 0;

  constructor() {
    this.client.queueMax = 4 * NODES;
    this.kubelets = new Kubelets({
      client: this.client,
      clock: {
        steadyMs: () => this.client.timers.nowMs(),
        wallMs: () => this.client.timers.wallMs(),
      },
      metrics: this.metrics,
      leaseDurationSeconds: 40,
      isRegistering: () => false,
      faultOf: () => null,
      holder: '',
      statusPeriodMs: 600_000,
      readsStatus: false,
      keepsStatus: () => true,
      endpoint: { port: 0, hostname: '', nodeIp: '' },
      nameOf: (id) => `node-${id}`,
      onNode: () => {},
    });
    for (let id = 0; id < NODES; id++) this.make(id, true);
    this.kubelets.start(NODES, (id) => this.uids.has(id));
  }

  get nowMs(): number {
    return this.client.timers.nowMs();
  }

  /** A Node is there, anew where it was gone. */
  make(id: number, isReady: boolean): void {
    const isNew = !this.uids.has(id);
    const serial = String(isNew ? this.#generation++ : 0).padStart(12, '0');
    const uid = isNew ? `00000000-0000-4000-8000-${serial}` : (this.uids.get(id) ?? '');
    this.uids.set(id, uid);
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }];
    const metadata = { name: `node-${id}`, uid };
    const bytes = Buffer.from(JSON.stringify({ metadata, status: { conditions } }));
    this.kubelets.handler.onUpsert(id, isNew, bytes, 0, bytes.length);
  }

  /** A Node is deleted, and its lease with it, as the garbage collector does. */
  remove(id: number): void {
    if (!this.uids.delete(id)) return;
    this.leases.delete(`node-${id}`);
    this.kubelets.handler.onDelete(id, new Uint8Array(0), 0, 0);
  }

  /** Time passes; `isAwake` false: this process stands still. */
  pass(durationMs: number, isAwake = true): void {
    if (!isAwake) return this.client.pass(durationMs);
    for (let passed = 0; passed < durationMs; passed += STEP_MS) {
      this.client.pass(STEP_MS);
      this.kubelets.tick();
      this.#serve();
      this.#count();
    }
  }

  #count(): void {
    if (this.nowMs - this.#secondMs >= 1000) {
      this.worstSecond = Math.max(this.worstSecond, this.#inSecond);
      this.#inSecond = 0;
      this.#secondMs = this.nowMs;
    }
    if (this.nowMs - this.#minuteMs < 60_000) return;
    for (const asked of this.#asked) this.worstMinute = Math.max(this.worstMinute, asked);
    this.#asked.fill(0);
    this.#minuteMs = this.nowMs;
  }

  #serve(): void {
    const latenessMs = this.mood === 'slow' ? 3000 : 0;
    for (const sent of this.client.sent.splice(0)) {
      const id = this.#idOf(sent);
      this.#asked[id]!++;
      this.#inSecond++;
      this.#late.push({ atMs: this.nowMs + latenessMs, sent });
    }
    while ((this.#late[0]?.atMs ?? Infinity) <= this.nowMs) {
      const { sent } = this.#late.shift()!;
      const [status, body] = this.#answer(sent);
      const bytes = Buffer.from(JSON.stringify(body));
      this.client.inFlight--;
      sent.done(status, bytes, 0, bytes.length, sent.tag);
    }
  }

  #idOf({ path, body }: Sent): number {
    const text = /node-(\d+)/.exec(path)?.[1] ?? /"name":"node-(\d+)"/.exec(body)?.[1];
    return Number(text);
  }

  #answer(sent: Sent): [number, object] {
    if (this.mood === 'gone') return [0, {}];
    if (this.mood === 'throttling' && this.random.below(10) > 0) return [429, {}];
    const id = this.#idOf(sent);
    const name = `node-${id}`;
    if (sent.path.endsWith('/status')) {
      if (!this.uids.has(id)) return [404, {}];
      this.make(id, true);
      return [200, {}];
    }
    const lease = this.leases.get(name);
    if (sent.method === 'GET') return lease === undefined ? [404, {}] : [200, shown(name, lease)];
    if (sent.method === 'POST' && lease !== undefined) return [409, {}];
    if (sent.method === 'PUT' && lease === undefined) return [404, {}];
    return this.#write(name, JSON.parse(sent.body) as object, lease, sent.method === 'POST');
  }

  #write(name: string, body: object, lease: Lease | undefined, isNew: boolean): [number, object] {
    const { metadata, spec } = body as ReturnType<typeof shown>;
    if (lease !== undefined && metadata.resourceVersion !== String(lease.version)) return [409, {}];
    if (lease !== undefined && lease.uid === metadata.ownerReferences[0]?.uid) {
      const { renewTime } = lease;
      const isForward = spec.renewTime >= renewTime;
      assert(isForward, `${name}: ${spec.renewTime} goes back from ${renewTime}`);
    }
    assert.equal(spec.holderIdentity, name);
    const written: Lease = {
      version: ++this.#version,
      renewTime: spec.renewTime,
      uid: metadata.ownerReferences[0]?.uid ?? '',
      writtenMs: this.nowMs,
    };
    this.leases.set(name, written);
    return [isNew ? 201 : 200, shown(name, written)];
  }

  /** Somebody else writes a lease, or deletes it. */
  meddle(id: number): void {
    const lease = this.leases.get(`node-${id}`);
    if (lease === undefined) return;
    if (this.random.below(2) === 0) this.leases.delete(`node-${id}`);
    else lease.version = ++this.#version;
  }

  trouble(): void {
    const some = (count: number): number[] =>
      Array.from({ length: count }, () => this.random.below(NODES));
    const secondsMax = this.random.below(3) === 0 ? 300 : 30;
    const durationMs = 1000 * (1 + this.random.below(secondsMax));
    switch (this.random.below(7)) {
      case 0:
      case 1:
      case 2:
        this.mood = (['gone', 'throttling', 'slow'] as const)[this.random.below(3)] ?? 'gone';
        break;
      case 3:
        for (const id of some(NODES / 3)) this.meddle(id);
        break;
      case 4:
        for (const id of some(NODES / 10)) this.remove(id);
        break;
      case 5:
        this.pass(durationMs, false);
        break;
      default:
        this.client.setMs = (this.random.below(49) - 24) * 3_600_000;
    }
    this.pass(durationMs);
    this.mood = 'well';
    for (let id = 0; id < NODES; id++) if (!this.uids.has(id)) this.make(id, false);
  }
}

function shown(name: string, { version, renewTime, uid }: Lease) {
  const ownerReferences = [{ kind: 'Node', name, uid }];
  return {
    metadata: { name, resourceVersion: String(version), ownerReferences },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime },
  };
}

test('leases outlive bad days, and no node and no crowd of them asks too much', () => {
  const day = new Day();
  day.pass(2 * PERIOD_MS);
  // the making of leases that were never there is no matter of pace
  day.worstSecond = 0;
  const endMs = day.nowMs + HOURS * 3_600_000;
  while (day.nowMs < endMs) {
    day.trouble();
    day.pass(1000 * day.random.below(60));
  }
  day.pass(REST_MS);
  const seed = `MEGAPLANE_SEED=${SEED}`;
  const old: string[] = [];
  for (let id = 0; id < NODES; id++) {
    const lease = day.leases.get(`node-${id}`);
    const isOld = lease === undefined || day.nowMs - lease.writtenMs > AGE_MS_MAX;
    if (isOld || lease.uid !== day.uids.get(id)) old.push(`node-${id}`);
  }
  assert.deepEqual(old, [], seed);
  assert.equal(day.leases.size, NODES, seed);
  assert.equal(day.metrics.nodesReady, NODES, seed);
  assert.ok(day.worstMinute <= REQUESTS_PER_MINUTE_MAX, `${seed}: ${day.worstMinute} of a node`);
  const usual = (NODES * 1000) / PERIOD_MS;
  // leases and statuses are paced each for themselves, one more in each turn
  const most = 2 * (CATCH_UP_FACTOR * usual + (2 * 1000) / STEP_MS) + NODES / 10;
  assert.ok(day.worstSecond <= most, `${seed}: ${day.worstSecond} in a second, usually ${usual}`);
});

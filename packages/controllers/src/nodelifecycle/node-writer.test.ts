import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { FakeApi } from '../../test/fake-api.ts';
import { EXISTS } from '../columns/node-flags.ts';
import { NodeLifecycle } from './node-lifecycle.ts';
import { NodeTable } from '../columns/node-table.ts';
import { NODES_AT_ONCE, NodeWriter } from './node-writer.ts';
import { NodeScan, TTL_ANNOTATION } from '../columns/node-scan.ts';

const NODES = '/api/v1/nodes';
const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const OWN = { key: 'own', value: 'é', effect: 'NoSchedule' };

class AskedApi extends FakeApi {
  readonly asked: string[] = [];

  override request(request: ClientRequest): Promise<ClientResponse> {
    this.asked.push(`${request.method} ${request.path}`);
    return super.request(request);
  }
}

/** A server that answers reads one after the other, when it is told to. */
class SlowApi extends FakeApi {
  readonly #line: (() => void)[] = [];

  override async request(request: ClientRequest): Promise<ClientResponse> {
    if (request.method === 'GET') await new Promise<void>((resolve) => this.#line.push(resolve));
    return super.request(request);
  }

  /** Answers the read that waits longest; false: none waits. */
  async answer(): Promise<boolean> {
    const next = this.#line.shift();
    next?.();
    for (let i = 0; i < 3; i++) await this.settle();
    return next !== undefined;
  }
}

/** A node that has just become ready, and a writer that is told so by its event. */
async function world() {
  const api = new AskedApi();
  const nodes = new NodeTable(new Random(1));
  const writer = new NodeWriter({
    client: api,
    nodes,
    announce: () => {},
    monotonicMs: () => 0,
    now: () => '2026-01-01T00:00:00Z',
    onError: (error) => assert.fail(String(error)),
    podsOn: () => [],
    missingTtl: (node) => (nodes.ttl.get(node) === 16 ? -1 : 15),
    onDisruption: () => {},
  });
  const made = await api.request({
    method: 'POST',
    path: NODES,
    body: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n' },
      spec: { taints: [NOT_READY, OWN] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
  });
  assert(made.ok);
  const key = Buffer.from('n');
  const id = nodes.rowOf(key, 0, key.length);
  const scan = new NodeScan();
  scan.scan(made.bytes, 0, made.bytes.length);
  const taints = Buffer.from(made.bytes).toString('utf8', scan.taintsStart, scan.taintsEnd);
  nodes.revision.set(id, Number(stringAt(made.object, 'metadata', 'resourceVersion')));
  nodes.bits.set(id, EXISTS | scan.bits);
  nodes.setTaints(id, taints);
  const react = async (): Promise<void> => {
    api.asked.length = 0;
    writer.syncNoSchedule(id);
    for (let i = 0; i < 3; i++) await api.settle();
  };
  const ttlNow = () => {
    const { annotations } = objectAt(api.objects.get(`${NODES} /n`), 'metadata') ?? {};
    return stringAt({ annotations }, 'annotations', TTL_ANNOTATION);
  };
  const taintsNow = () => listAt(api.objects.get(`${NODES} /n`), 'spec', 'taints');
  return { api, nodes, react, taintsNow, ttlNow, writer, id };
}

test('a taint goes with one request where an event tells that the node is ready', async () => {
  const { api, react, taintsNow, ttlNow } = await world();
  await react();
  assert.deepEqual(api.asked, [`PATCH ${NODES}/n`]);
  assert.deepEqual(taintsNow(), [OWN]);
  assert.equal(ttlNow(), '15', 'the annotation goes with it');
});

test('an annotation that was written is not written again before its event comes', async () => {
  const { api, nodes, ttlNow, writer, id } = await world();
  api.asked.length = 0;
  writer.annotate(id);
  writer.syncNoSchedule(id);
  for (let i = 0; i < 6; i++) await api.settle();
  assert.equal(ttlNow(), '15');
  // the first went out alone; what was wanted meanwhile was the taint, which had become stale
  const first = [...api.asked];
  writer.annotate(id);
  for (let i = 0; i < 3; i++) await api.settle();
  assert.deepEqual(api.asked, first);
  nodes.ttl.set(id, 0);
  writer.annotate(id);
  for (let i = 0; i < 3; i++) await api.settle();
  assert.equal(api.asked.length, first.length + 1, 'an event that tells otherwise counts');
});

test('a node that has changed since its event is read once more', async () => {
  const { api, react, taintsNow } = await world();
  const newer = { key: 'newer', effect: 'NoExecute' };
  const body = { spec: { taints: [NOT_READY, newer] } };
  const contentType = 'application/merge-patch+json';
  await api.request({ method: 'PATCH', path: `${NODES}/n`, contentType, body });
  await react();
  const patch = `PATCH ${NODES}/n`;
  assert.deepEqual(api.asked, [patch, `GET ${NODES}/n`, patch]);
  assert.deepEqual(taintsNow(), [newer]);
});

test('a node whose taints are not kept is read first', async () => {
  const { api, nodes, react, taintsNow, id } = await world();
  for (let i = 0; i < 20_000; i++) {
    const key = Buffer.from(`node-${i}`);
    nodes.setTaints(nodes.rowOf(key, 0, key.length), `[{"key":"k${i}"}]`);
  }
  nodes.setTaints(id, '[{"key":"one more"}]');
  await react();
  assert.deepEqual(api.asked, [`GET ${NODES}/n`, `PATCH ${NODES}/n`]);
  assert.deepEqual(taintsNow(), [OWN]);
});

test('what waits for a node is done at once, of what the node is by then', async () => {
  const { api, nodes, ttlNow, writer, id } = await world();
  const places: number[] = [];
  for (let i = 0; i < NODES_AT_ONCE; i++) {
    const key = Buffer.from(`busy-${i}`);
    places.push(nodes.rowOf(key, 0, key.length));
    nodes.bits.set(places[i]!, EXISTS);
  }
  api.asked.length = 0;
  for (const place of places) writer.annotate(place);
  writer.annotate(id);
  writer.syncNoSchedule(id);
  writer.annotate(id);
  assert.equal(api.asked.length, NODES_AT_ONCE, 'as many as are worked on at a time');
  const contentType = 'application/merge-patch+json';
  const body = { spec: { taints: [NOT_READY] } };
  const path = `${NODES}/n`;
  const changed = await api.request({ method: 'PATCH', path, contentType, body });
  assert(changed.ok);
  nodes.revision.set(id, Number(stringAt(changed.object, 'metadata', 'resourceVersion')));
  nodes.setTaints(id, JSON.stringify([NOT_READY]));
  for (let i = 0; i < 5; i++) await api.settle();
  const ours = api.asked.slice(NODES_AT_ONCE + 1);
  assert.deepEqual(ours, [`PATCH ${path}`], 'taints, and the annotation with them');
  assert.equal(ttlNow(), '15');
});

test('a node that goes while it waits is forgotten after its turn', async () => {
  const { api, nodes, react, id } = await world();
  nodes.bits.set(id, 0);
  const turn = react();
  nodes.release(id);
  await turn;
  assert.deepEqual(api.asked, []);
  assert.equal(nodes.find('n'), -1);
});

test('reads that wait for each other are no stall, silence of the server is one', async () => {
  const api = new SlowApi();
  const nodes = new NodeTable(new Random(1));
  let nowMs = 0;
  const writer = new NodeWriter({
    ...{ client: api, nodes, announce: () => {}, monotonicMs: () => nowMs },
    ...{ now: () => '2026-01-01T00:00:00Z', podsOn: () => [], missingTtl: () => -1 },
    ...{ onError: (error) => assert.fail(String(error)), onDisruption: () => {} },
  });
  const rules = { periodMs: 5000, graceMs: 50_000, startupGraceMs: 60_000 };
  const rates = { evictionRate: 0.1, secondaryEvictionRate: 0.01, largeClusterSize: 50 };
  const machine = new NodeLifecycle(
    nodes,
    { ...rules, ...rates, unhealthyThreshold: 0.55 },
    writer,
  );
  writer.attach(machine);
  for (let i = 0; i < 20; i++) {
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: `n${i}` } };
    assert((await api.request({ method: 'POST', path: NODES, body })).ok);
    const key = Buffer.from(`n${i}`);
    const id = nodes.rowOf(key, 0, key.length);
    nodes.bits.set(id, EXISTS);
    writer.confirm(id);
  }
  // 20 nodes and their leases at 0.5 s each: the last is answered after 20 s
  do nowMs += 500;
  while (await api.answer());
  assert.equal(machine.distrusts, 0);
  const key = Buffer.from('n0');
  writer.confirm(nodes.rowOf(key, 0, key.length));
  nowMs += 3000;
  await api.answer();
  await api.answer();
  assert.equal(machine.distrusts, 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { FakeApi } from '../test/fake-api.ts';
import { NodeTable } from './node-table.ts';
import { NodeWriter } from './node-writer.ts';
import { NodeScan } from './node-scan.ts';
import { TTL_ANNOTATION } from './node-ttl.ts';

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
  const resourceVersion = Number(stringAt(made.object, 'metadata', 'resourceVersion'));
  const seen = { id, resourceVersion, bits: scan.bits, taints, ttl: 15 };
  const react = async (): Promise<void> => {
    api.asked.length = 0;
    writer.during(seen, () => writer.syncNoSchedule(id));
    for (let i = 0; i < 3; i++) await api.settle();
  };
  const ttlNow = () => {
    const { annotations } = objectAt(api.objects.get(`${NODES} /n`), 'metadata') ?? {};
    return stringAt({ annotations }, 'annotations', TTL_ANNOTATION);
  };
  const taintsNow = () => listAt(api.objects.get(`${NODES} /n`), 'spec', 'taints');
  return { api, react, taintsNow, ttlNow, writer, id };
}

test('a taint goes with one request where an event tells that the node is ready', async () => {
  const { api, react, taintsNow, ttlNow } = await world();
  await react();
  assert.deepEqual(api.asked, [`PATCH ${NODES}/n`]);
  assert.deepEqual(taintsNow(), [OWN]);
  assert.equal(ttlNow(), '15', 'the annotation goes with it');
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

test('what no event asked for begins with reading the node', async () => {
  const { api, taintsNow, writer, id } = await world();
  api.asked.length = 0;
  writer.syncNoSchedule(id);
  for (let i = 0; i < 3; i++) await api.settle();
  assert.deepEqual(api.asked, [`GET ${NODES}/n`, `PATCH ${NODES}/n`]);
  assert.deepEqual(taintsNow(), [OWN]);
});

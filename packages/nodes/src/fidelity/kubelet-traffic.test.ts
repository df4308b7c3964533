import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StreamHandle, StreamSink } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FakeClient } from '../../test/fake-client.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { CALLS, parseCalls, type Call } from './calls.ts';
import { imageList } from './image-list.ts';
import { KubeletTraffic } from './kubelet-traffic.ts';

/** A client whose watches are ended by the test. */
class Watched extends FakeClient {
  readonly open: { path: string; sink: StreamSink }[] = [];

  override stream(path: string, sink: StreamSink): StreamHandle {
    const one = { path, sink };
    this.open.push(one);
    const cancel = (): void => void this.open.splice(this.open.indexOf(one), 1);
    return { cancel, pause: () => {}, resume: () => {} };
  }

  end(index: number, status: number, error: string | null): void {
    const [one] = this.open.splice(index, 1);
    if (error === null) one?.sink.onHead(status, 0);
    one?.sink.onEnd(error);
  }
}

function trafficOf(...calls: Call[]): {
  readonly client: Watched;
  readonly traffic: KubeletTraffic;
  readonly metrics: SimulatorMetrics;
} {
  const client = new Watched(3);
  const metrics = new SimulatorMetrics();
  const isOurs = (node: string): boolean => node === 'n';
  const traffic = new KubeletTraffic({ client, metrics, calls: new Set(calls), isOurs });
  return { client, traffic, metrics };
}

function tell({ podHandler }: KubeletTraffic, id: number, pod: JsonObject): void {
  const bytes = Buffer.from(JSON.stringify(pod));
  podHandler.onUpsert(id, true, bytes, 0, bytes.length);
}

function pod(name: string, spec: JsonObject, phase = 'Pending'): JsonObject {
  const metadata = { name, namespace: 'd', uid: `uid-${name}` };
  const containers = [{ name: 'c', image: 'i' }];
  return { metadata, spec: { nodeName: 'n', containers, ...spec }, status: { phase } };
}

test('calls are all, some, or all but some', () => {
  const usual = CALLS.filter((call) => call !== 'status-get');
  assert.deepEqual([...parseCalls('--c', '')], usual);
  assert.deepEqual([...parseCalls('--c', 'status,status-get')], ['status', 'status-get']);
  assert.deepEqual([...parseCalls('--c', 'token,events')], ['token', 'events']);
  assert.equal(parseCalls('--c', '-token').size, usual.length - 1);
  assert.throws(() => parseCalls('--c', 'tokens'), /--c: tokens is none of csinode, /);
  assert.throws(() => parseCalls('--c', 'events,-token'), /either all words begin with - or none/);
});

test('a watch that ends is taken up again: at once if it was long, later and later if not', () => {
  const { client, traffic, metrics } = trafficOf('watch-pods');
  traffic.onNode('n', 'u');
  traffic.tick();
  assert.match(
    client.open[0]?.path ?? '',
    /^\/api\/v1\/pods\?fieldSelector=spec.nodeName%3Dn&watch/,
  );
  const seconds = Number(/timeoutSeconds=(\d+)/.exec(client.open[0]?.path ?? '')?.[1]);
  assert(seconds >= 300 && seconds <= 600);
  client.pass(400_000);
  client.end(0, 200, null);
  client.pass(1700);
  assert.equal(client.open.length, 1);
  for (let turn = 0; turn < 8; turn++) {
    client.end(0, 0, 'connection refused');
    client.pass(61_000);
    assert.equal(client.open.length, 1);
  }
  client.end(0, 0, 'connection refused');
  client.pass(1000);
  assert.equal(client.open.length, 0);
  assert.equal(metrics.watchesOpen, 0);
  traffic.stop();
  client.pass(100_000);
  assert.equal(client.open.length, 0);
});

test('a watch goes on at the version last seen, and lists anew when that is forgotten', () => {
  const { client, traffic } = trafficOf('watch-services');
  traffic.onNode('n', 'u');
  traffic.tick();
  const tell = (text: string): void =>
    client.open[0]?.sink.onData(Buffer.from(text), 0, Buffer.byteLength(text));
  const event = (type: string, version: number, more = ''): string =>
    `{"type":"${type}","object":{"metadata":{"resourceVersion":"${version}"${more}}}}\n`;
  const asked = (): string => /(resourceVersion=\d+|sendInitial)/.exec(client.open[0]!.path)![0];
  const again = (): string => {
    client.end(0, 200, null);
    client.pass(100_000);
    return asked();
  };
  assert.equal(asked(), 'sendInitial');
  client.open[0]?.sink.onHead(200, 0);
  tell(event('ADDED', 50));
  assert.equal(again(), 'sendInitial', 'the list was not whole');
  client.open[0]?.sink.onHead(200, 0);
  tell(event('ADDED', 50) + event('ADDED', 20));
  tell(event('BOOKMARK', 60, ',"annotations":{"k8s.io/initial-events-end":"true"}'));
  tell(event('MODIFIED', 70));
  // the number is cut by the end of the chunk
  tell(event('MODIFIED', 80).slice(0, -6));
  assert.equal(again(), 'resourceVersion=70');
  client.open[0]?.sink.onHead(200, 0);
  tell('{"type":"ERROR","object":{"kind":"Status","code":410}}\n');
  assert.equal(again(), 'sendInitial');
});

test('a server that streams no lists is asked for a list, and then for what came after', () => {
  const error = '{"type":"ERROR","object":{"kind":"Status","code":403}}\n';
  for (const [status, told] of [
    [200, error],
    [400, '{"kind":"Status"}'],
  ] as const) {
    const { client, traffic, metrics } = trafficOf('watch-services');
    traffic.onNode('n', 'u');
    traffic.tick();
    const answer = (code: number, text: string): string => {
      const { sink } = client.open[0]!;
      sink.onHead(code, 0);
      sink.onData(Buffer.from(text), 0, Buffer.byteLength(text));
      client.end(0, code, null);
      client.pass(1);
      return client.open[0]?.path.replace(/^.*None&/, '').replace(/&timeout.*/, '') ?? '';
    };
    const list = '{"kind":"ServiceList","metadata":{"resourceVersion":"50"},"items":[';
    const item = '{"metadata":{"resourceVersion":"20"}}]}';
    assert.equal(answer(status, told), 'resourceVersion=0');
    const watch = 'watch=true&allowWatchBookmarks=true';
    assert.equal(answer(200, list + item), `${watch}&resourceVersion=50`);
    assert.equal(answer(200, error), '', 'what is forgotten is asked for later');
    client.pass(60_000);
    assert.match(client.open[0]!.path, /sendInitial/);
    assert.equal(answer(status, told), 'resourceVersion=0');
    assert.equal(answer(429, ''), '', 'a list that is refused');
    client.pass(60_000);
    assert.match(client.open[0]!.path, /sendInitial/);
    assert.equal(metrics.watchesOpen, 1);
  }
});

test('containers tell that they run and that they are stopped, in the words of kubelets', () => {
  const { client, traffic } = trafficOf('events');
  const containers = [
    { name: 'a', image: 'i' },
    { name: 'b', image: 'i' },
  ];
  const told = (): string[] => {
    const lines: string[] = [];
    while (client.sent.length > 0) {
      const { involvedObject, reason, message, source } = JSON.parse(client.answer(201).body);
      lines.push(`${source.host} ${involvedObject.fieldPath} ${reason}: ${message}`);
    }
    return lines;
  };
  tell(traffic, 1, pod('p', { containers }));
  tell(traffic, 1, pod('p', { containers }, 'Running'));
  const pulled = 'Container image "i" already present on machine and can be accessed by the pod';
  const started = (name: string): string[] =>
    [`Pulled: ${pulled}`, 'Created: Container created', 'Started: Container started'].map(
      (text) => `n spec.containers{${name}} ${text}`,
    );
  assert.deepEqual(told(), [...started('a'), ...started('b')]);
  const running = pod('p', { containers }, 'Running');
  const metadata = { name: 'p', namespace: 'd', uid: 'uid-p', deletionTimestamp: 'now' };
  tell(traffic, 1, { ...running, metadata });
  tell(traffic, 1, { ...running, metadata });
  const stopping = (name: string): string =>
    `n spec.containers{${name}} Killing: Stopping container ${name}`;
  assert.deepEqual(told(), [stopping('a'), stopping('b')]);
});

test('a pod that ran before is not told to start, one that has ended is not told to stop', () => {
  const { client, traffic } = trafficOf('events');
  const timeOf = (ageMs: number): string =>
    new Date(client.timers.wallMs() - ageMs).toISOString().replace(/\.\d+/, '');
  const running = (name: string, ageMs: number): JsonObject => ({
    ...pod(name, {}),
    status: { phase: 'Running', startTime: timeOf(ageMs) },
  });
  tell(traffic, 1, running('before', 5000));
  assert.equal(client.sent.length, 0);
  tell(traffic, 2, running('after', 0));
  assert.equal(client.sent.length, 3);
  while (client.sent.length > 0) client.answer(201);
  const deleted = pod('after', {}, 'Succeeded');
  const metadata = { ...(deleted['metadata'] as JsonObject), deletionTimestamp: timeOf(0) };
  tell(traffic, 2, { ...deleted, metadata });
  assert.equal(client.sent.length, 0);
});

test('a pod that has ended needs no token and no configuration', () => {
  const { client, traffic } = trafficOf('token', 'watch-configs');
  tell(traffic, 1, pod('p', {}));
  traffic.tick();
  client.answer(201);
  assert.equal(client.open.length, 1);
  tell(traffic, 1, pod('p', {}, 'Failed'));
  assert.equal(client.open.length, 0);
  client.pass(4_000_000);
  traffic.tick();
  assert.equal(client.sent.length, 0);
  // another pod of that name, though nobody told of the end of the first
  tell(traffic, 2, pod('q', {}));
  client.answer(201);
  const other = pod('q', {});
  tell(traffic, 2, { ...other, metadata: { ...(other['metadata'] as JsonObject), uid: 'u2' } });
  assert.match(client.answer(201).body, /"uid":"u2"/);
});

test('configurations are watched once per node for as long as a pod needs them', () => {
  const { client, traffic } = trafficOf('watch-configs');
  const volumes = [
    { configMap: { name: 'a' } },
    { projected: { sources: [{ secret: { name: 's' } }] } },
  ];
  const env = [{ valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }];
  tell(traffic, 1, pod('p', { volumes }));
  tell(traffic, 2, pod('q', { containers: [{ name: 'c', env }] }));
  tell(traffic, 3, { ...pod('r', {}), spec: { nodeName: 'other' } });
  traffic.tick();
  const watched = (): string[] =>
    client.open.map(({ path }) =>
      path.replace(/^.*\/d\/(.*)\?.*metadata.name%3D([^&]*)&.*$/, '$1 $2'),
    );
  const all = ['configmaps kube-root-ca.crt', 'configmaps a', 'secrets s'];
  assert.deepEqual(watched(), all);
  traffic.podHandler.onDelete(1, Buffer.alloc(0), 0, 0);
  assert.deepEqual(watched(), ['configmaps kube-root-ca.crt', 'secrets s']);
  traffic.podHandler.onDelete(2, Buffer.alloc(0), 0, 0);
  assert.deepEqual(watched(), []);
});

test('a pod gets a token, and a new one before it is over', () => {
  const { client, traffic, metrics } = trafficOf('token', 'events');
  tell(traffic, 1, pod('p', { serviceAccountName: 'robot' }));
  const asked = client.answer(201);
  assert.equal(asked.path, '/api/v1/namespaces/d/serviceaccounts/robot/token');
  assert.match(asked.body, /"expirationSeconds":3607.*"uid":"uid-p"/);
  client.pass(2_800_000);
  traffic.tick();
  assert.equal(client.sent.length, 0);
  client.pass(100_000);
  traffic.tick();
  assert.equal(client.answer(201).path, asked.path);
  traffic.podHandler.onDelete(1, Buffer.alloc(0), 0, 0);
  client.pass(4_000_000);
  traffic.tick();
  assert.equal(client.sent.length, 0);
  assert.match(metrics.text(), /megaplane_kubelet_calls_total\{call="token"\} 2/);
});

test('a token that is refused is asked for ever more seldom', () => {
  const { client, traffic } = trafficOf('token');
  tell(traffic, 1, pod('p', {}));
  const asked: number[] = [];
  for (let seconds = 0; seconds < 1200; seconds++) {
    if (client.sent.length > 0) {
      client.answer(500);
      asked.push(seconds);
    }
    client.pass(1000);
    traffic.tick();
  }
  assert.ok(asked.length >= 9 && asked.length <= 13, asked.join(' '));
});

test('a node has as many images as kubelets tell, of real size', () => {
  const images = imageList();
  assert.equal(images.length, 50);
  const bytes = JSON.stringify(images).length;
  assert(bytes > 8000 && bytes < 15_000, String(bytes));
});

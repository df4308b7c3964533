import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { serveEtcd } from '@megaplane/etcd/run-store';
import { openStore } from '@megaplane/store/open';
import { decodePorts, PORTS_KEY } from '../../registry/service/node-port-range.ts';
import { issue } from '../../testing/kubelet.sim.ts';
import { emptyRow } from '../storage.ts';
import { Proxy } from './proxy.sim.ts';
import { startServer, until } from '../../testing/servers.sim.ts';

const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
const etcd = await serveEtcd(opened, { listen: [{}] });
const port = etcd.addresses[0]?.port ?? 0;
const url = `http://127.0.0.1:${port}`;
const client = new EtcdClient({
  endpoints: parseEndpoints('--etcd-servers', url),
  tls: () => null,
  log: () => {},
});
after(async () => {
  client.close();
  await etcd.close();
  await opened.close();
});

const MAPS = '/api/v1/namespaces/default/configmaps';

interface Shown {
  readonly metadata: { readonly name: string; readonly uid: string; resourceVersion: string };
  readonly data?: Record<string, string>;
}

function config(name: string, data: Record<string, string> = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}

async function stored(key: string): Promise<Buffer> {
  const result = await client.range({ key: Buffer.from(key) });
  assert(result.ok);
  return result.value.kvs[0]?.value ?? Buffer.alloc(0);
}

interface ListAnswer {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue: string;
    readonly remainingItemCount?: number;
  };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

test('two servers on one etcd read what the other wrote, and lose no race', async () => {
  const flags = { etcdServers: url, etcdPrefix: '/two' };
  const [left, right] = [await startServer(flags), await startServer(flags)];
  await left.bootstrap();
  const created = await left.ask('POST', MAPS, config('a', { k: '1' }));
  assert.equal(created.status, 201, created.text);
  const object = JSON.parse(created.text) as Shown;
  assert.equal((await right.ask('GET', `${MAPS}/a`)).text, created.text);
  assert.equal((await right.ask('POST', MAPS, config('a'))).status, 409);

  const changed = await right.ask('PUT', `${MAPS}/a`, { ...object, data: { k: '2' } });
  assert.equal(changed.status, 200, changed.text);
  const late = await left.ask('PUT', `${MAPS}/a`, { ...object, data: { k: '3' } });
  assert.equal(late.status, 409, late.text);
  const again = await left.ask('PUT', `${MAPS}/a`, { ...JSON.parse(changed.text), data: {} });
  assert.equal(again.status, 200, again.text);

  assert.equal((await left.ask('DELETE', `${MAPS}/a`)).status, 200);
  assert.equal((await right.ask('GET', `${MAPS}/a`)).status, 404);
  const reborn = await right.ask('POST', MAPS, config('a'));
  assert.equal(reborn.status, 201, reborn.text);
  const wrong = { preconditions: { uid: object.metadata.uid } };
  assert.equal((await left.ask('DELETE', `${MAPS}/a`, wrong)).status, 409);

  const many = Array.from({ length: 20 }, (_, i) => i);
  const patch = { 'content-type': 'application/merge-patch+json' };
  const patched = await Promise.all(
    many.map((i) =>
      (i % 2 === 0 ? left : right).ask('PATCH', `${MAPS}/a`, { data: { [`k${i}`]: 'v' } }, patch),
    ),
  );
  const wins = patched.filter(({ status }) => status === 200).length;
  const list = JSON.parse((await left.ask('GET', MAPS)).text) as { items: Shown[] };
  assert.equal(Object.keys(list.items[0]?.data ?? {}).length, wins);
  assert(wins > 5, `${wins} of 20 patches went through`);
  await Promise.all([left.stop(), right.stop()]);
});

test('no address and no port is given out twice, whoever picks at the same time', async () => {
  const flags = { etcdServers: url, etcdPrefix: '/claims' };
  const [left, right] = [await startServer(flags), await startServer(flags)];
  await left.bootstrap();
  left.isPredictable = true;
  right.isPredictable = true;
  const services = '/api/v1/namespaces/default/services';
  const service = (name: string): object => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { type: 'NodePort', ports: [{ port: 80 }] },
  });
  const names = Array.from({ length: 12 }, (_, i) => `s${i}`);
  const made = await Promise.all(
    names.map((name, i) => (i % 2 === 0 ? left : right).ask('POST', services, service(name))),
  );
  const specs = made.map(({ status, text }) => {
    assert.equal(status, 201, text);
    return (JSON.parse(text) as { spec: { clusterIP: string; ports: { nodePort: number }[] } })
      .spec;
  });
  assert.equal(new Set(specs.map((spec) => spec.clusterIP)).size, names.length);
  assert.equal(new Set(specs.map((spec) => spec.ports[0]?.nodePort)).size, names.length);
  const taken = { ...service('x'), spec: { ...specs[0], ports: [{ port: 80 }] } };
  const refused = await right.ask('POST', services, taken);
  assert.equal(refused.status, 422);
  assert.match(refused.text, /provided IP is already allocated/);

  const addresses = '/apis/networking.k8s.io/v1/ipaddresses';
  const claims = async (): Promise<number> =>
    (JSON.parse((await right.ask('GET', addresses)).text) as { items: object[] }).items.length;
  assert.equal(await claims(), names.length);
  assert.equal((await left.ask('DELETE', `${services}/s0`)).status, 200);
  await until('the address to be free', () => {
    const claimed = right.storage.get(
      Buffer.from(`/registry/ipaddresses/${specs[0]?.clusterIP}`),
      emptyRow(),
    );
    return !claimed;
  });
  const again = await right.ask('POST', services, taken);
  assert.equal(again.status, 201, again.text);
  const patch = { 'content-type': 'application/merge-patch+json' };
  const plain = await left.ask('PATCH', `${services}/s1`, { spec: { type: 'ClusterIP' } }, patch);
  assert.equal(plain.status, 200, plain.text);
  await until('the port to be free', () => {
    const row = emptyRow();
    right.storage.get(PORTS_KEY, row);
    return !decodePorts(row).has(specs[1]?.ports[0]?.nodePort ?? 0);
  });
  await Promise.all([left.stop(), right.stop()]);
});

test('a list without a revision shows what the other server has just written', async () => {
  const flags = { etcdServers: url, etcdPrefix: '/fresh' };
  const [left, right] = [await startServer(flags), await startServer(flags)];
  await left.bootstrap();
  for (let i = 0; i < 20; i++) {
    await left.ask('POST', MAPS, config(`c${i}`));
    // a write elsewhere moves etcd on, past what the servers watch
    await client.put(Buffer.from('/elsewhere'), Buffer.from(`${i}`));
    const list = JSON.parse((await right.ask('GET', MAPS)).text) as { items: Shown[] };
    assert.equal(list.items.length, i + 1);
  }
  // a revision that one server has shown is waited for on the other, however quiet etcd is
  await client.put(Buffer.from('/elsewhere'), Buffer.from('last'));
  const newest = JSON.parse((await left.ask('GET', MAPS)).text) as Shown;
  const revision = Number(newest.metadata.resourceVersion);
  await client.put(Buffer.from('/elsewhere'), Buffer.from('more'));
  const at = await right.ask('GET', `${MAPS}?resourceVersion=${revision + 1}`);
  assert.equal(at.status, 200, at.text);
  const far = await right.ask('GET', `${MAPS}?resourceVersion=${revision + 1000}`);
  assert.equal(far.status, 504);
  await Promise.all([left.stop(), right.stop()]);
});

test('a watch on one server tells the writes of the other at their revisions', async () => {
  const flags = { etcdServers: url, etcdPrefix: '/watch' };
  const [left, right] = [await startServer(flags), await startServer(flags)];
  await left.bootstrap();
  const list = JSON.parse((await right.ask('GET', MAPS)).text) as Shown;
  const from = list.metadata.resourceVersion;
  const watch = await right.ask('GET', `${MAPS}?watch=true&resourceVersion=${from}`);
  const made = JSON.parse((await left.ask('POST', MAPS, config('a'))).text) as Shown;
  await left.ask('DELETE', `${MAPS}/a`);
  await until('two events', () => watch.text.split('\n').length === 3);
  const [added, deleted] = watch.text.split('\n').map((line) => (line ? JSON.parse(line) : null));
  assert.equal(added.type, 'ADDED');
  assert.equal(added.object.metadata.resourceVersion, made.metadata.resourceVersion);
  assert.equal(deleted.type, 'DELETED');
  await Promise.all([left.stop(), right.stop()]);
});

test('values of others are read: protobuf with unknown fields, JSON, older versions', async () => {
  const metadata = '0a0161120022002a0132';
  const data = '12060a01781201792a';
  // field 15 of a ConfigMap is none that we know
  const raw = Buffer.from(`0a${len(metadata)}${metadata}${data.slice(0, -2)}7a036e6577`, 'hex');
  const type = Buffer.from('0a0276311209436f6e6669674d6170', 'hex');
  const magic = Buffer.from('6b387300', 'hex');
  const parts = [magic, Buffer.from([0x0a, type.length]), type, Buffer.from([0x12, raw.length])];
  const prefix = '/foreign';
  const put = (key: string, value: Buffer | string) =>
    client.put(Buffer.from(prefix + key), Buffer.from(value as string));
  await put(
    '/configmaps/default/a',
    Buffer.concat([...parts, raw, Buffer.from('1a002200', 'hex')]),
  );
  const json =
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"default",';
  await put('/configmaps/default/b', `${json}"creationTimestamp":null},"data":{"x":"z"}}\n`);
  await put(
    '/events/default/e',
    '{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e","namespace":' +
      '"default"},"note":"hello","regarding":{"name":"p"}}',
  );
  await put('/configmaps/default/c', 'k8s:enc:aescbc:v1:key1:nonsense');
  const server = await startServer({ etcdServers: url, etcdPrefix: prefix });
  const a = JSON.parse((await server.ask('GET', `${MAPS}/a`)).text) as Shown;
  assert.deepEqual(a.data, { x: 'y' });
  const b = JSON.parse((await server.ask('GET', `${MAPS}/b`)).text) as Shown;
  assert.deepEqual(b.data, { x: 'z' });
  const e = await server.ask('GET', '/api/v1/namespaces/default/events/e');
  assert.equal((JSON.parse(e.text) as { message: string }).message, 'hello');
  await server.stop();
});

function len(hex: string): string {
  return (hex.length / 2).toString(16).padStart(2, '0');
}

test('what is written is protobuf in the layout of upstream, or JSON when asked', async () => {
  const flags = { etcdServers: url, etcdPrefix: '/written' };
  const server = await startServer(flags);
  await server.bootstrap();
  await server.ask('POST', MAPS, config('a', { x: 'y' }));
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } };
  assert.equal((await server.ask('POST', '/api/v1/nodes', node)).status, 201);
  const bytes = await stored('/written/configmaps/default/a');
  assert.equal(bytes.subarray(0, 4).toString('latin1'), 'k8s\0');
  assert.equal((await stored('/written/minions/n')).subarray(0, 4).toString('latin1'), 'k8s\0');
  assert((await stored('/written/services/specs/default/kubernetes')).length > 0);
  await server.stop();
  const json = await startServer({ ...flags, storageMediaType: 'application/json' });
  await json.ask(
    'PATCH',
    `${MAPS}/a`,
    { data: { x: 'z' } },
    {
      'content-type': 'application/merge-patch+json',
    },
  );
  const text = (await stored('/written/configmaps/default/a')).toString();
  assert.match(
    text,
    /^\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"managedFields":\[\{"manager"/,
  );
  assert.equal(text.includes('resourceVersion'), false);
  await json.stop();
});

test('a watch that was cut off goes on, or ends with 410 after a compaction', async () => {
  const proxy = new Proxy(port);
  const flags = { etcdServers: `http://127.0.0.1:${await proxy.listen()}`, etcdPrefix: '/cut' };
  const writer = await startServer({ etcdServers: url, etcdPrefix: '/cut' });
  await writer.bootstrap();
  for (const name of ['a', 'b', 'c']) await writer.ask('POST', MAPS, config(name));
  const reader = await startServer(flags);
  const watch = await reader.ask('GET', `${MAPS}?watch=true&resourceVersion=0`);
  await until('the state', () => watch.text.split('\n').length === 4);

  proxy.cut();
  await writer.ask('POST', MAPS, config('d'));
  assert.notEqual(reader.storage.fault, null);
  proxy.mend();
  await until('the event after the cut', () => watch.text.includes('"name":"d"'));
  await until('no fault', () => reader.storage.fault === null);
  assert.equal(watch.isEnded, false);

  proxy.cut();
  await writer.ask('DELETE', `${MAPS}/a`);
  await writer.ask('DELETE', `${MAPS}/b`);
  await writer.ask('POST', MAPS, config('b', { is: 'new' }));
  await writer.ask('POST', MAPS, config('e'));
  const newest = await client.put(Buffer.from('/elsewhere'), Buffer.from('x'));
  assert(newest.ok);
  assert((await client.compact(newest.value)).ok);
  proxy.mend();
  const list = await reader.ask('GET', MAPS);
  assert.equal(list.text, (await writer.ask('GET', MAPS)).text);
  await until('the end of the watch', () => watch.isEnded);
  assert.match(watch.text, /"code":410/);
  await Promise.all([reader.stop(), writer.stop(), proxy.close()]);
});

test('without etcd requests fail as upstream, checks are red, and all recovers', async () => {
  const proxy = new Proxy(port);
  const flags = { etcdServers: `http://127.0.0.1:${await proxy.listen()}`, etcdPrefix: '/gone' };
  const server = await startServer(flags);
  await server.bootstrap();
  await until('no fault', () => server.storage.fault === null);
  proxy.cut();
  await until('a fault', () => server.storage.fault !== null);
  const ready = await server.ask('GET', '/readyz?verbose');
  assert.equal(ready.status, 500);
  assert.match(ready.text, /\[-\]etcd failed: reason withheld/);
  // what asks for no freshness is still served
  assert.equal((await server.ask('GET', `${MAPS}?resourceVersion=0`)).status, 200);
  const [read, write] = await Promise.all([
    server.ask('GET', MAPS),
    server.ask('POST', MAPS, config('x')),
  ]);
  assert.deepEqual([read.status, write.status], [500, 500], read.text);
  proxy.mend();
  await until('recovery', () => server.storage.fault === null);
  assert.equal((await server.ask('POST', MAPS, config('y'))).status, 201);
  assert.equal((await server.ask('GET', '/readyz')).status, 200);
  await Promise.all([server.stop(), proxy.close()]);
});

test('a slow etcd makes requests slow, not wrong', async () => {
  const proxy = new Proxy(port);
  const flags = { etcdServers: `http://127.0.0.1:${await proxy.listen()}`, etcdPrefix: '/slow' };
  const fast = await startServer({ etcdServers: url, etcdPrefix: '/slow' });
  await fast.bootstrap();
  const slow = await startServer(flags);
  proxy.delayMs = 150;
  const created = await fast.ask('POST', MAPS, config('a', { k: '1' }));
  // its watch has not told it of the object yet
  const patch = { 'content-type': 'application/merge-patch+json' };
  const patched = await slow.ask('PATCH', `${MAPS}/a`, { data: { k: '2' } }, patch);
  assert.equal(patched.status, 200, patched.text);
  assert.equal((await slow.ask('GET', `${MAPS}/a`)).text, patched.text);
  assert.equal((await fast.ask('PUT', `${MAPS}/a`, JSON.parse(created.text))).status, 409);
  assert.equal((await fast.ask('POST', MAPS, config('b'))).status, 201);
  assert.match((await slow.ask('DELETE', MAPS)).text, /"name":"b"/);
  await Promise.all([fast.stop(), slow.stop(), proxy.close()]);
});

test('what was before a server started is read from etcd, as long as that has it', async () => {
  const flags = { etcdServers: url, etcdPrefix: '/past' };
  const first = await startServer(flags);
  await first.bootstrap();
  for (const name of ['a', 'b', 'c']) await first.ask('POST', MAPS, config(name, { k: '1' }));
  const page = JSON.parse((await first.ask('GET', `${MAPS}?limit=1`)).text) as ListAnswer;
  const { resourceVersion, continue: token } = page.metadata;
  const exact = `${MAPS}?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`;
  const before = (await first.ask('GET', exact)).text;
  await first.ask('DELETE', `${MAPS}/b`);
  await first.ask('PUT', `${MAPS}/c`, config('c', { k: '2' }));
  const second = await startServer(flags);
  assert.equal((await second.ask('GET', exact)).text, before);
  const selected = (await second.ask('GET', `${exact}&fieldSelector=metadata.name%3Db`)).text;
  assert.match(selected, /"name":"b"/);
  assert.doesNotMatch(selected, /"name":"[ac]"/);
  const rest = (await second.ask('GET', `${MAPS}?limit=1&continue=${token}`)).text;
  const { metadata, items } = JSON.parse(rest) as ListAnswer;
  assert.deepEqual([metadata.resourceVersion, metadata.remainingItemCount], [resourceVersion, 1]);
  assert.deepEqual(
    items.map((item) => item.metadata.name),
    ['b'],
  );
  // a hundred lists that were read hold nothing any more
  for (let at = 0; at < 100; at++) {
    assert.equal((await second.ask('GET', `${exact}&limit=1`)).status, 200);
  }
  const newest = await client.put(Buffer.from('/elsewhere'), Buffer.from('x'));
  assert(newest.ok);
  assert((await client.compact(newest.value)).ok);
  assert.equal((await second.ask('GET', exact)).status, 410);
  const gone = await second.ask('GET', `${MAPS}?limit=1&continue=${token}`);
  assert.match(gone.text, /"continue":"[^"]+".*"code":410/);
  await Promise.all([first.stop(), second.stop()]);
});

test('a resource with servers of its own has its own revisions and leases', async () => {
  const other = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const second = await serveEtcd(other, { listen: [{}] });
  const override = `/events#http://127.0.0.1:${second.addresses[0]?.port ?? 0}`;
  const flags = { etcdServers: url, etcdPrefix: '/split', etcdServersOverrides: override };
  const server = await startServer(flags);
  await server.bootstrap();
  const events = '/api/v1/namespaces/default/events';
  const list = JSON.parse((await server.ask('GET', events)).text) as Shown;
  const from = list.metadata.resourceVersion;
  const watch = await server.ask('GET', `${events}?watch=true&resourceVersion=${from}`);
  const event = {
    metadata: { name: 'e' },
    involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' },
    reason: 'Tested',
  };
  const created = await server.ask('POST', events, event);
  assert.equal(created.status, 201, created.text);
  await until('the event', () => watch.text.includes('"ADDED"'));
  assert.equal((await stored('/split/events/default/e')).length, 0);
  assert.equal(other.store.leases.size, 1);
  assert((await server.ask('GET', MAPS)).status === 200);
  await server.stop();
  await second.close();
  await other.close();
});

test('over TLS the server shows its certificate, and looks at that of etcd', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-etcd-tls-'));
  const authority = issue('etcd-ca', 'authority', null);
  const serving = issue('etcd', 'server', authority);
  const own = issue('apiserver-etcd-client', 'client', authority);
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const tls = {
    key: serving.key,
    cert: serving.certificate,
    clientCa: authority.certificate,
    requiresClientCert: true,
  };
  const secure = await serveEtcd(opened, { listen: [{ tls }] });
  const etcdServers = `https://127.0.0.1:${secure.addresses[0]?.port ?? 0}`;
  const etcdCafile = file('ca.crt', authority.certificate);
  const etcdCertfile = file('client.crt', own.certificate);
  const flags = { etcdServers, etcdCertfile, etcdKeyfile: file('client.key', own.key) };
  const server = await startServer({ ...flags, etcdCafile, etcdPrefix: '/tls' });
  await server.bootstrap();
  assert.equal((await server.ask('POST', MAPS, config('a'))).status, 201);
  await server.stop();
  // an authority that did not sign it, and no certificate of one's own
  const wrong = file('wrong.crt', issue('other', 'authority', null).certificate);
  await assert.rejects(startServer({ ...flags, etcdCafile: wrong }), /is etcd running/);
  await assert.rejects(startServer({ etcdServers, etcdCafile }), /is etcd running/);
  await secure.close();
  rmSync(dir, { recursive: true, force: true });
});

test('flags that make no sense are refused by name', async () => {
  const refused = async (flags: object, message: RegExp): Promise<void> => {
    await assert.rejects(startServer({ etcdServers: url, ...flags }), message);
  };
  await refused({ etcdServersOverrides: 'events#http://a:1' }, /overrides invalid, must be of/);
  await refused({ etcdServersOverrides: '/nothing#http://a:1' }, /nothing is no resource/);
  await refused({ storageMediaType: 'application/yaml' }, /--storage-media-type: "application/);
  await refused({ eventTtl: 'soon' }, /--event-ttl: soon is no duration/);
  await refused({ etcdCertfile: '/x' }, /--etcd-keyfile is missing/);
  await refused({ etcdCafile: '/nowhere' }, /--etcd-cafile: cannot be read/);
});

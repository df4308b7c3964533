import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { serveEtcd } from '@megaplane/etcd/run-store';
import { openStore } from '@megaplane/store/open';
import { EmbeddedStorage } from '../embedded/embedded-storage.ts';
import { startServer, TestServer, until } from '../../testing/servers.sim.ts';
import { emptyRow } from '../storage.ts';
import { readConfiguration } from './encryption-config.ts';
import { openSealer } from './open-sealer.ts';
import { SealedStorage } from './sealed-storage.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-encryption-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const SECRETS = '/api/v1/namespaces/default/secrets';
const KEY = '/registry/secrets/default/a';
const PASSWORD = 'cGFzc3dvcmQ=';

function secret(name: string): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { password: PASSWORD } };
}

function key(name: string, letter: string): object {
  return { name, secret: Buffer.alloc(32, letter).toString('base64') };
}

function config(...providers: object[]): object {
  return {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources: ['secrets'], providers }],
  };
}

function write(name: string, value: object): string {
  const file = join(dir, name);
  writeFileSync(file, JSON.stringify(value));
  return file;
}

const log = (): void => {};

test('the embedded store holds sealed bytes only, and keys can be changed', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const raw = new EmbeddedStorage(opened.store, () => opened.close());
  const file = write('embedded.yaml', config({ aesgcm: { keys: [key('key1', 'a')] } }));
  const { sealer, stop } = openSealer(file, true, log, 20);
  const faults: string[] = [];
  const server = new TestServer(new SealedStorage(raw, sealer, (text) => void faults.push(text)));
  await server.bootstrap();
  const bytes = (): string => {
    const ref = opened.store.get(Buffer.from(KEY), 0, KEY.length);
    const end = opened.store.valueTo(ref);
    return opened.store.record(ref).toString('latin1', opened.store.valueAt(ref), end);
  };
  const watch = await server.ask('GET', `${SECRETS}?watch=true&resourceVersion=1`);
  const created = await server.ask('POST', SECRETS, secret('a'));
  assert.equal(created.status, 201, created.text);
  assert(bytes().startsWith('k8s:enc:aesgcm:v1:key1:'));
  assert.equal(bytes().includes(PASSWORD), false);
  await until('the event', () => watch.text.includes(PASSWORD));
  assert.equal((await server.ask('GET', `${SECRETS}/a`)).text, created.text);
  assert((await server.ask('GET', SECRETS)).text.includes(PASSWORD));

  write('embedded.yaml', config({ secretbox: { keys: [key('key2', 'b')] } }, { identity: {} }));
  await until('the new keys', () => sealer.sealOf(KEY).includes('key2'));
  // without its key the object cannot be shown any more
  assert.equal((await server.ask('GET', `${SECRETS}/a`)).status, 500);
  assert.match(faults[0] ?? '', /secrets\/default\/a: no matching prefix found/);
  const both = [
    { secretbox: { keys: [key('key2', 'b')] } },
    { aesgcm: { keys: [key('key1', 'a')] } },
  ];
  write('embedded.yaml', config(...both));
  const row = emptyRow();
  await until('both keys', () => {
    server.storage.get(Buffer.from(KEY), row);
    return row.bytes.toString('latin1', row.start).startsWith('{"kind":"Secret"');
  });
  assert.equal(server.storage.isStale(Buffer.from(KEY)), true);
  // an update that changes nothing writes the object all the same, under the new key
  const rewritten = await server.ask('PUT', `${SECRETS}/a`, JSON.parse(created.text));
  assert.equal(rewritten.status, 200, rewritten.text);
  assert(bytes().startsWith('k8s:enc:secretbox:v1:key2:'));
  assert.equal(server.storage.isStale(Buffer.from(KEY)), false);
  const revision = server.storage.appliedRevision;
  await server.ask('PUT', `${SECRETS}/a`, JSON.parse(rewritten.text));
  assert.equal(server.storage.appliedRevision, revision);

  writeFileSync(file, 'kind: Nonsense');
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert((await server.ask('GET', `${SECRETS}/a`)).text.includes(PASSWORD));
  stop();
  await server.stop();
});

test('etcd holds sealed protobuf, which a server with the same keys reads', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const etcd = await serveEtcd(opened, { listen: [{}] });
  const flags = { etcdServers: `http://127.0.0.1:${etcd.addresses[0]?.port ?? 0}` };
  const file = write(
    'etcd.yaml',
    config({ aescbc: { keys: [key('key1', 'c')] } }, { identity: {} }),
  );
  const { sealer } = openSealer(file, false, log);
  const [left, right] = [await startServer(flags, sealer), await startServer(flags, sealer)];
  await left.bootstrap();
  const created = await left.ask('POST', SECRETS, secret('a'));
  assert.equal(created.status, 201, created.text);
  assert.equal((await right.ask('GET', `${SECRETS}/a`)).text, created.text);
  const ref = opened.store.get(Buffer.from(KEY), 0, KEY.length);
  const bytes = opened.store
    .record(ref)
    .subarray(opened.store.valueAt(ref), opened.store.valueTo(ref));
  assert.equal(bytes.toString('latin1', 0, 23), 'k8s:enc:aescbc:v1:key1:');
  const { value } = sealer.open(KEY, Buffer.from(KEY), bytes);
  assert.equal(value.toString('latin1', 0, 4), 'k8s\0');
  assert.equal(right.storage.isStale(Buffer.from(KEY)), false);
  await Promise.all([left.stop(), right.stop()]);
  await etcd.close();
  await opened.close();
});

test('configurations that cannot be used are refused at the field that is wrong', () => {
  const refused = (value: object, message: RegExp): void => {
    assert.throws(() => readConfiguration(value as never), message);
  };
  refused({}, /not of apiserver.config.k8s.io\/v1, EncryptionConfiguration/);
  refused(config(), /resources\[0\]\.providers: at least one/);
  refused(config({ kms: {} }), /providers\[0\]: kms is not supported/);
  refused(config({ aes: {} }), /aes is no provider/);
  refused(config({ aescbc: { keys: [] } }), /aescbc\.keys: at least one/);
  const short = { name: 'k', secret: 'c2hvcnQ=' };
  refused(
    config({ aesgcm: { keys: [short] } }),
    /keys\[0\]\.secret: secret is not of the expected length, got 5, expected one of \[16 24 32\]/,
  );
  refused(config({ aesgcm: { keys: [key('a:b', 'x')] } }), /must not contain ":"/);
  refused(config({ aesgcm: { keys: [key('a', 'x'), key('a', 'y')] } }), /have the same name/);
  refused(config({ aesgcm: { keys: [{ name: 'a', secret: '???' }] } }), /it is no base64/);
  refused(config({ identity: {}, aesgcm: {} }), /one of aescbc, aesgcm, secretbox and identity/);
  const twice = config({ identity: {} });
  refused({ ...twice, resources: [{ resources: ['a', 'a'], providers: [] }] }, /named twice/);
  assert.throws(() => openSealer(join(dir, 'nowhere'), false, log), /--encryption-provider-config/);
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { once } from 'node:events';
import { ask, plainDoor, tlsDoor } from '@megaplane/base/hostile-client.sim';
import { FakeClient } from '../../test/fake-client.ts';
import { KubeletData } from './kubelet-data.ts';
import { openKubeletPort, type KubeletPort } from './kubelet-port.ts';
import type { PortAccess } from './port-access.ts';
import { PortConfig } from './port-config.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-kubelet-port-'));
let port: KubeletPort;

before(async () => {
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const files = ['-nodes', '-keyout', 'key', '-out', 'cert', '-days', '30', '-subj', '/CN=a'];
  execFileSync('openssl', [...request, ...files], { cwd: dir, stdio: 'ignore' });
  const [key, certificate] = ['key', 'cert'].map((file) => readFileSync(join(dir, file), 'utf8'));
  const everybody = { decide: () => Promise.resolve({ kind: 'allowed' }) };
  port = await openKubeletPort({
    address: '127.0.0.1:0',
    tls: { certificate: certificate ?? '', key: key ?? '', clientCa: null, frontProxy: null },
    access: everybody as unknown as PortAccess,
    config: new PortConfig({ nowMs: () => 0, random: () => 0, startedContainers: () => 0 }),
    data: new KubeletData(new FakeClient(1)),
    nowMs: () => 0,
    metrics: () => 'm 1\n',
    nodeNames: () => [],
    onTrouble: (message) => assert.fail(message),
    slow: { headersTimeout: 200, requestTimeout: 300, connectionsCheckingInterval: 50 },
  });
});

after(async () => {
  await port?.close();
  rmSync(dir, { recursive: true, force: true });
});

test('a path that is none is refused, with and without TLS', async () => {
  const doors = [plainDoor(port.port), tlsDoor(port.port)];
  const paths = ['//', 'http://[', '/%', '/containerLogs/%/x/y', '/metrics/nodes/%/x'];
  for (const open of doors) {
    for (const path of paths) {
      assert.match(await ask(open, path), /^HTTP\/1\.1 400 [^]*the path is no URL/, path);
    }
    const fields = { 'x-forwarded-uri': '/api/v1/nodes/%/proxy' };
    assert.match(await ask(open, '/pods', fields), /^HTTP\/1\.1 400 /);
    assert.match(await ask(open, '/healthz'), /^HTTP\/1\.1 200 /);
  }
  const fields = { connection: 'upgrade', upgrade: 'SPDY/3.1' };
  assert.match(await ask(tlsDoor(port.port), '/exec/%/b/c', fields), /^HTTP\/1\.1 400 /);
});

test('a head or a body that never ends is not waited for, with and without TLS', async () => {
  const head = 'GET /healthz HTTP/1.1\r\nhost: a\r\n';
  const body = 'POST /nothing HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n1';
  for (const open of [plainDoor(port.port), tlsDoor(port.port)]) {
    for (const bytes of [head, body]) {
      const socket = open('http/1.1');
      socket.on('error', () => undefined);
      socket.resume().write(bytes);
      await once(socket, 'close');
    }
  }
});

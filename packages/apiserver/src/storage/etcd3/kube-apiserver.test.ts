// shell
/**
 * With a real kube-apiserver on the same etcd. Needs its binary: MEGAPLANE_KUBE_APISERVER=path
 * (build
 * `k8s.io/kubernetes/cmd/kube-apiserver` from the Go modules, with the staging modules replaced by
 * their releases), etcd and openssl.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import { openSealer } from '../encryption/open-sealer.ts';
import { masterLeaseKey } from '../master-leases.ts';
import { shownEndpoint } from '../../controlplane/advertised-address.ts';
import { EndpointLeases } from '../../controlplane/endpoint-leases.ts';
import { emptyRow } from '../storage.ts';
import { RealEtcd, withoutEtcd } from './real-etcd.sim.ts';
import { startServer, until } from '../../testing/servers.sim.ts';

const binary = process.env['MEGAPLANE_KUBE_APISERVER'] ?? '';
const skip =
  binary !== '' && existsSync(binary) ? withoutEtcd : 'needs MEGAPLANE_KUBE_APISERVER=path';
const START_MS_MAX = 60_000;
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
const SECRETS = '/api/v1/namespaces/default/secrets';
const ENDPOINTS = '/api/v1/namespaces/default/endpoints/kubernetes';
const SLICE = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';
const OWN_ADDRESS = '198.51.100.7';
const SERVICES = '/api/v1/namespaces/default/services';

class KubeApiserver {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  async ask(method: string, path: string, body?: object): Promise<{ code: number; text: string }> {
    const headers = { authorization: 'Bearer token', 'content-type': 'application/json' };
    const options = { host: '127.0.0.1', port: this.#port, method, path, headers };
    const sent = request({ ...options, rejectUnauthorized: false });
    sent.end(body === undefined ? '' : JSON.stringify(body));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of answer) text += String(piece);
    return { code: answer.statusCode ?? 0, text };
  }

  async ready(): Promise<void> {
    const endMs = performance.now() + START_MS_MAX;
    for (;;) {
      const answer = await this.ask('GET', '/readyz').catch(() => ({ code: 0 }));
      if (answer.code === 200) return;
      if (performance.now() > endMs) throw new Error('kube-apiserver did not start');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

test('a kube-apiserver and this server work on one etcd', { skip }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-kube-'));
  const etcd = new RealEtcd();
  await etcd.start();
  const port = await freePort();
  const config = join(dir, 'encryption.yaml');
  const secret = Buffer.alloc(32, 'k').toString('base64');
  const providers = [{ secretbox: { keys: [{ name: 'one', secret }] } }, { identity: {} }];
  const head = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration' };
  const sealed = { ...head, resources: [{ resources: ['secrets'], providers }] };
  writeFileSync(config, JSON.stringify(sealed));
  writeFileSync(join(dir, 'tokens'), 'token,admin,1,"system:masters"\n');
  execFileSync('openssl', ['genrsa', '-out', join(dir, 'sa.key'), '2048'], { stdio: 'ignore' });
  const args = ['--etcd-servers', etcd.url, '--secure-port', `${port}`, '--cert-dir', dir];
  args.push('--bind-address', '127.0.0.1', '--token-auth-file', join(dir, 'tokens'));
  args.push('--service-account-key-file', join(dir, 'sa.key'));
  args.push('--service-account-signing-key-file', join(dir, 'sa.key'));
  args.push('--service-account-issuer', 'https://issuer', '--authorization-mode', 'RBAC');
  args.push('--service-cluster-ip-range', '10.96.0.0/16');
  args.push('--encryption-provider-config', config);
  const child = spawn(binary, args, { stdio: 'ignore' });
  const theirs = new KubeApiserver(port);
  await theirs.ready();
  const { sealer } = openSealer(config, false, () => {});
  const ours = await startServer({ etcdServers: etcd.url }, sealer);
  await until('no fault', () => ours.storage.fault === null);

  // both ways: what one writes the other shows, byte for byte where both know all fields
  const map = (name: string): object => ({ metadata: { name }, data: { k: name } });
  assert.equal((await theirs.ask('POST', CONFIGMAPS, map('a'))).code, 201);
  assert.equal((await ours.ask('POST', CONFIGMAPS, map('b'))).status, 201);
  for (const name of ['a', 'b']) {
    const [left, right] = [
      await theirs.ask('GET', `${CONFIGMAPS}/${name}`),
      await ours.ask('GET', `${CONFIGMAPS}/${name}`),
    ];
    assert.deepEqual(JSON.parse(left.text), JSON.parse(right.text));
  }
  const value = { metadata: { name: 's' }, stringData: {}, data: { p: 'cGFzcw==' } };
  assert.equal((await theirs.ask('POST', SECRETS, value)).code, 201);
  assert.match((await ours.ask('GET', `${SECRETS}/s`)).text, /"p":"cGFzcw=="/);
  const own = { ...value, metadata: { name: 't' } };
  assert.equal((await ours.ask('POST', SECRETS, own)).status, 201);
  assert.match((await theirs.ask('GET', `${SECRETS}/t`)).text, /"p":"cGFzcw=="/);

  // an update on an old revision is a conflict, whoever wrote in between
  const old = JSON.parse((await theirs.ask('GET', `${CONFIGMAPS}/a`)).text) as object;
  assert.equal((await ours.ask('PUT', `${CONFIGMAPS}/a`, { ...old, data: {} })).status, 200);
  assert.equal((await theirs.ask('PUT', `${CONFIGMAPS}/a`, old)).code, 409);

  // node ports and addresses come from the same records
  const service = (name: string): object => ({
    metadata: { name },
    spec: { type: 'NodePort', ports: [{ port: 80 }] },
  });
  for (let i = 0; i < 10; i++) {
    assert.equal((await theirs.ask('POST', SERVICES, service(`a${i}`))).code, 201);
    const made = await ours.ask('POST', SERVICES, service(`b${i}`));
    assert.equal(made.status, 201, made.text);
  }
  const services = JSON.parse((await ours.ask('GET', SERVICES)).text) as {
    items: { spec: { clusterIP: string; ports: { nodePort?: number }[] } }[];
  };
  const addresses = services.items.map(({ spec }) => spec.clusterIP);
  assert.equal(new Set(addresses).size, 21);
  const ports = services.items.flatMap(({ spec }) => spec.ports[0]?.nodePort ?? []);
  assert.equal(new Set(ports).size, 20);

  // the Service leads to both, and to the one that is left
  const leases = new EndpointLeases(ours.api.parts.world, { address: OWN_ADDRESS, port }, () => {});
  const host = shownEndpoint({}, '127.0.0.1', true).address;
  const shown = async (): Promise<unknown[]> => {
    const answers = [await theirs.ask('GET', ENDPOINTS), await theirs.ask('GET', SLICE)];
    return answers.map(
      ({ text }) => text.includes(`"${OWN_ADDRESS}"`) && text.includes(`"${host}"`),
    );
  };
  await leases.look();
  assert.deepEqual(await shown(), [true, true]);
  const before = await theirs.ask('GET', ENDPOINTS);
  const lease = masterLeaseKey(host);
  const row = emptyRow();
  assert(ours.storage.get(lease, row));
  const { modRevision } = row;
  const isRenewed = (): boolean => ours.storage.get(lease, row) && row.modRevision > modRevision;
  await until('theirs to look', isRenewed);
  await leases.look();
  assert.deepEqual(await theirs.ask('GET', ENDPOINTS), before);
  await leases.leave();
  assert.deepEqual(await shown(), [false, false]);
  assert.match((await theirs.ask('GET', SLICE)).text, new RegExp(`"${host}"`));

  await ours.stop();
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
  await etcd.remove();
  rmSync(dir, { recursive: true, force: true });
});

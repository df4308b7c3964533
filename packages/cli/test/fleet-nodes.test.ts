/** The whole loop by commands: pods, requests, demand, machines, nodes of the cluster, and back. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createKubeClient } from '@megaplane/client/kube-client';
import type { KubeClient } from '@megaplane/client/kube-client';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ENTRY, startCluster } from './cluster.ts';

/** Only what is broken takes so long. */
const TRIES_MAX = 3000;
const PAUSE_MS = 100;

const CATALOGUE = `
offers:
  - { instanceType: m4, zones: [a], capacityType: OnDemand, slots: 6, price: 0.2, resources: { cpu: 4, memory: 16Gi } }
latencies: { create: { minMs: 50 }, delete: { minMs: 50 } }
`;

class Parts {
  readonly dir: string = mkdtempSync(join(tmpdir(), 'megaplane-fleet-nodes-'));
  readonly #children = new Set<ChildProcess>();

  /** Starts a part of the fleet; answers its ready line, and what kills it. */
  async start(...args: string[]): Promise<{ readonly ready: string; kill(): Promise<void> }> {
    const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children.add(child);
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const ready = await new Promise<string>((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        const line = /ready in .*\n/.exec(text)?.[0];
        if (line !== undefined) resolve(line);
      });
      child.once('exit', (code) => reject(new Error(`${args[1]} ended with ${code}: ${errors}`)));
    });
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL');
      await exited;
      this.#children.delete(child);
    };
    return { ready, kill };
  }

  end(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Certificates of an authority, each with its names. */
  issue(names: Readonly<Record<string, string>>): void {
    const openssl = (...args: string[]): void => {
      const { status, stderr } = spawnSync('openssl', args, { cwd: this.dir, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    };
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    openssl(...['req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt'], '-subj', '/CN=ca');
    for (const [name, alternative] of Object.entries(names)) {
      const request = ['-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`];
      openssl('req', '-new', ...key, ...request);
      writeFileSync(join(this.dir, `${name}.ext`), `subjectAltName=${alternative}\n`);
      const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30'];
      const files = ['-in', `${name}.csr`, '-out', `${name}.crt`, '-extfile', `${name}.ext`];
      openssl('x509', '-req', ...files, ...signer);
    }
  }

  tls(name: string): string[] {
    const at = (file: string): string => join(this.dir, file);
    return [
      '--tls-cert',
      at(`${name}.crt`),
      '--tls-key',
      at(`${name}.key`),
      '--tls-ca',
      at('ca.crt'),
    ];
  }
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < TRIES_MAX, `never: ${what}`);
    await setTimeout(PAUSE_MS);
  }
}

function portOf(ready: string, what: RegExp): number {
  const port = Number(what.exec(ready)?.[1]);
  assert.ok(port > 0, ready);
  return port;
}

async function list(client: KubeClient, path: string): Promise<readonly JsonObject[]> {
  const answer = await client.request({ method: 'GET', path });
  return answer.ok ? (listAt(answer.object, 'items') as JsonObject[]) : [];
}

function deployment(replicas: number): JsonObject {
  const resources = { requests: { cpu: '3', memory: '1Gi' } };
  const labels = { app: 'web' };
  const spec = { containers: [{ name: 'c', image: 'i', resources }] };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

async function define(client: KubeClient): Promise<void> {
  const { stdout } = spawnSync(process.execPath, [ENTRY, 'fleet', 'definitions'], {
    encoding: 'utf8',
  });
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const body of stdout.split('---\n')) {
    const sent = { method: 'POST', path, body, contentType: 'application/yaml' } as const;
    assert.ok((await client.request(sent)).ok);
  }
  const api = '/apis/bigfleet.lucy.sh/v1alpha1';
  await until('the definitions are served', async () => {
    const answer = await client.request({ method: 'GET', path: api });
    return answer.ok && listAt(answer.object, 'resources').length >= 3;
  });
}

test('pods run on machines that came for them, over TLS and over deaths of the parts', async () => {
  const parts = new Parts();
  const cluster = await startCluster(['--nodes', '0']);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  try {
    await define(client);
    parts.issue({
      shard: 'DNS:localhost,URI:bigfleet://shard/s1',
      provider: 'DNS:localhost,URI:bigfleet://provider/p',
      c1: 'URI:bigfleet://cluster/c1',
      admin: 'URI:bigfleet://admin',
    });
    const catalogue = join(parts.dir, 'catalogue.yaml');
    writeFileSync(catalogue, CATALOGUE);
    const template = join(parts.dir, 'blob');
    writeFileSync(template, readFileSync(cluster.kubeconfig));
    const providerFlags = [
      ...['fleet', 'provider', 'nodes', '--catalogue', catalogue, '--listen', '127.0.0.1:0'],
      ...['--data-dir', join(parts.dir, 'provider'), ...parts.tls('provider')],
    ];
    let provider = await parts.start(...providerFlags);
    const port = portOf(provider.ready, /provider on 127\.0\.0\.1:(\d+)/);
    providerFlags[providerFlags.indexOf('--listen') + 1] = `127.0.0.1:${port}`;
    const shardFlags = [
      ...['fleet', 'shard', '--shard-id', 's1', '--data-dir', join(parts.dir, 'shard')],
      ...['--provider-addr', `https://localhost:${port}`, '--listen', '127.0.0.1:0'],
      ...['--metrics-address', '127.0.0.1:0', '--cycle-interval', '200ms'],
      ...['--reclaim-cap-fraction', '0', '--on-demand-hold', '1s', ...parts.tls('shard')],
    ];
    let shard = await parts.start(...shardFlags);
    const shardPort = portOf(shard.ready, /on 127\.0\.0\.1:(\d+)/);
    shardFlags[shardFlags.indexOf('--listen') + 1] = `127.0.0.1:${shardPort}`;
    const reach = ['--kubeconfig', cluster.kubeconfig];
    // a cluster that starts without nodes has nobody who plays those that come
    await parts.start('nodes', ...reach, '--server-address', '127.0.0.1:0');
    await parts.start('fleet', 'pods', ...reach);
    const operatorFlags = [
      ...['fleet', 'operator', ...reach, '--cluster-id', 'c1'],
      ...['--shard-addr', `localhost:${shardPort}`, '--roll-up-interval', '1'],
      ...['--bootstrap-template-file', template, ...parts.tls('c1')],
    ];
    const operator = await parts.start(...operatorFlags);

    const path = '/apis/apps/v1/namespaces/default/deployments';
    assert.ok((await client.request({ method: 'POST', path, body: deployment(2) })).ok);
    const running = async (): Promise<number> => {
      const pods = await list(client, '/api/v1/namespaces/default/pods');
      return pods.filter((pod) => stringAt(pod, 'status', 'phase') === 'Running').length;
    };
    await until('two pods run', async () => (await running()) === 2);
    const nodes = async (): Promise<string[]> => {
      const found = await list(client, '/api/v1/nodes');
      return found.map((node) => stringAt(node, 'metadata', 'name')).toSorted();
    };
    assert.equal((await nodes()).length, 2);
    const before = await nodes();

    // every part dies once; what is bound stays
    await provider.kill();
    provider = await parts.start(...providerFlags);
    await operator.kill();
    await parts.start(...operatorFlags);
    await shard.kill();
    shard = await parts.start(...shardFlags);
    const scale = { spec: { replicas: 3 } };
    const patch = { method: 'PATCH', path: `${path}/web`, body: scale } as const;
    const contentType = 'application/merge-patch+json';
    assert.ok((await client.request({ ...patch, contentType })).ok);
    await until('three pods run', async () => (await running()) === 3);
    const after = await nodes();
    assert.ok(
      before.every((name) => after.includes(name)),
      'what is bound stays',
    );
    const ask = [
      ...[ENTRY, 'fleet', 'ctl', 'machines', '--shard-addr', `localhost:${shardPort}`],
      ...['--state', 'Configured', '--output', 'json', ...parts.tls('admin')],
    ];
    await until('the shard knows of three', () => {
      const { stdout } = spawnSync(process.execPath, ask, { encoding: 'utf8' });
      return (JSON.parse(stdout) as unknown[]).length === 3;
    });

    assert.ok((await client.request({ method: 'DELETE', path: `${path}/web` })).ok);
    await until('all nodes are gone', async () => (await nodes()).length === 0);
  } finally {
    client.close();
    parts.end();
    await cluster.remove();
  }
});

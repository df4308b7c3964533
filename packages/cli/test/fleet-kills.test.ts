/** `kill -9` of a shard and an operator in the middle of their work, again and again. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Random } from '@megaplane/base/random';
import { createKubeClient } from '@megaplane/client/kube-client';
import { runProvider } from '@megaplane/fleet/provider/run';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ENTRY, SERVER_ONLY, startCluster } from './cluster.ts';

/** Only what is broken takes so long. */
const TRIES_MAX = 3000;
const PAUSE_MS = 100;
const API = '/apis/bigfleet.lucy.sh/v1alpha1';
const REQUESTS = `${API}/namespaces/default/capacityrequests`;
const SLOTS = 8;
const KILLS = process.env['MEGAPLANE_LONG'] === undefined ? 2 : 60;
/** A kill comes at most so long after demand changed. */
const KILL_MS_MAX = 600;

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < TRIES_MAX, `never: ${what}`);
    await setTimeout(PAUSE_MS);
  }
}

const LATENCY = { minMs: 100, maxMs: 400 };
const CATALOGUE = {
  offers: [
    {
      ...{ instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', slots: SLOTS, price: 0.2 },
      resources: { cpu: 4 },
    },
  ],
  latencies: { create: LATENCY, configure: LATENCY, drain: LATENCY, delete: LATENCY },
};

/** A part of the fleet as a process, which is killed and started anew. */
class Part {
  readonly #args: readonly string[];
  #child: ChildProcess | null = null;
  #ready = '';

  constructor(args: readonly string[]) {
    this.#args = args;
  }

  async start(): Promise<string> {
    const child = spawn(process.execPath, [ENTRY, 'fleet', ...this.#args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#ready = '';
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        this.#ready += chunk.toString();
        if (/ready in .*\n/.test(this.#ready)) resolve();
      });
      child.once('exit', (code) => reject(new Error(`${this.#args[0]} ${code}: ${errors}`)));
    });
    return this.#ready;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    await exited;
  }
}

test('whenever a shard or an operator is killed, each cluster gets what it wants', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-kills-'));
  const cluster = await startCluster(SERVER_ONLY);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  const provider = await runProvider({
    ...{ host: '127.0.0.1', port: 0, timeoutMs: 60_000 },
    source: { kind: 'simulated', file: CATALOGUE, seed: 1 },
  });
  const template = join(dir, 'blob');
  writeFileSync(template, 'join');
  const shardArgs = [
    ...['shard', '--shard-id', 's1', '--data-dir', join(dir, 'shard')],
    ...['--provider-addr', `127.0.0.1:${provider.port}`, '--metrics-address', '127.0.0.1:0'],
    ...['--cycle-interval', '100ms', '--reclaim-cap-fraction', '0', '--on-demand-hold', '1s'],
  ];
  let shard = new Part([...shardArgs, '--listen', '127.0.0.1:0']);
  const port = /on 127\.0\.0\.1:(\d+)/.exec(await shard.start())?.[1] ?? '';
  await shard.kill();
  shard = new Part([...shardArgs, '--listen', `127.0.0.1:${port}`]);
  const operator = new Part([
    ...['operator', '--kubeconfig', cluster.kubeconfig, '--cluster-id', 'c1'],
    ...['--shard-addr', `127.0.0.1:${port}`, '--roll-up-interval', '1'],
    ...['--bootstrap-template-file', template],
  ]);
  const random = new Random(1);
  const object = async (path: string): Promise<JsonObject> => {
    const answer = await client.request({ method: 'GET', path });
    return answer.ok ? answer.object : {};
  };
  const want = async (count: number): Promise<void> => {
    for (let at = 0; at < SLOTS; at++) {
      const path = `${REQUESTS}/r${at}`;
      if (at >= count) await client.request({ method: 'DELETE', path });
      else {
        const kind = { apiVersion: 'bigfleet.lucy.sh/v1alpha1', kind: 'CapacityRequest' };
        const spec = { priority: 1, resources: { cpu: '4' } };
        const body = { ...kind, metadata: { name: `r${at}` }, spec };
        await client.request({ method: 'POST', path: REQUESTS, body });
      }
    }
  };
  const ask = ['fleet', 'ctl', 'machines', '--shard-addr', `127.0.0.1:${port}`];
  const bound = (): string[] => {
    const args = [ENTRY, ...ask, '--state', 'Configured', '--output', 'json'];
    try {
      const text = execFileSync(process.execPath, args, { encoding: 'utf8', stdio: 'pipe' });
      return (JSON.parse(text) as JsonObject[]).map((machine) => stringAt(machine, 'cluster'));
    } catch {
      // it is being killed, or has not heard of its machines yet
      return [];
    }
  };
  try {
    for (const body of execFileSync(process.execPath, [ENTRY, 'fleet', 'definitions'], {
      encoding: 'utf8',
    }).split('---\n')) {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      const contentType = 'application/yaml';
      const sent = { method: 'POST', path, body, contentType } as const;
      await until('a definition is taken', async () => {
        const answer = await client.request(sent);
        return answer.ok || answer.status.code === 409;
      });
    }
    await until('the definitions are served', async () => {
      return listAt(await object(API), 'resources').length >= 3;
    });
    await shard.start();
    await operator.start();
    for (let kill = 0; kill < KILLS; kill++) {
      await want(random.below(SLOTS + 1));
      await setTimeout(random.below(KILL_MS_MAX));
      const part = random.below(2) === 0 ? shard : operator;
      await part.kill();
      if (random.below(2) === 0) await want(random.below(SLOTS + 1));
      await part.start();
    }
    for (const count of [5, 2]) {
      await want(count);
      const wanted = Array.from({ length: count }, () => 'c1').join();
      await until(`${count} machines are bound`, () => bound().join() === wanted);
    }
  } finally {
    await operator.kill();
    await shard.kill();
    await provider.stop();
    client.close();
    await cluster.remove();
    rmSync(dir, { recursive: true, force: true });
  }
});

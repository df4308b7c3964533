import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '@megaplane/base/free-port.sim';
import { ENTRY, megaplane } from './cluster.ts';

/** Only what is broken takes so long. */
const TRIES_MAX = 600;
const PAUSE_MS = 100;

const dir: string = mkdtempSync(join(tmpdir(), 'megaplane-coordinator-'));
const running = new Set<ChildProcess>();

const CATALOGUE = `
offers:
  - { instanceType: m4, zones: [a, b], capacityType: OnDemand, slots: 3, price: 0.2, resources: { cpu: 4 } }
`;

before(() => writeFileSync(join(dir, 'catalogue.yaml'), CATALOGUE));

after(() => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

interface Part {
  readonly child: ChildProcess;
  /** What its ready line says. */
  readonly ready: string;
  kill(): Promise<void>;
}

async function start(program: string, ...args: string[]): Promise<Part> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ready =
    program === 'etcd'
      ? ''
      : await new Promise<string>((resolve, reject) => {
          let text = '';
          child.stdout.on('data', (chunk: Buffer) => {
            text += chunk.toString();
            const line = /ready in .*\n/.exec(text)?.[0];
            if (line !== undefined) resolve(line);
          });
          child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${errors}`)));
        });
  return {
    child,
    ready,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
      running.delete(child);
    },
  };
}

function fleet(...args: string[]): Promise<Part> {
  return start(process.execPath, ENTRY, 'fleet', ...args);
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < TRIES_MAX, `never: ${what}`);
    await setTimeout(PAUSE_MS);
  }
}

function portOf({ ready }: Part, what: RegExp): number {
  const port = Number(what.exec(ready)?.[1]);
  assert.ok(port > 0, ready);
  return port;
}

async function metric(port: number, line: RegExp): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => null);
  return Number(line.exec((await answer?.text()) ?? '')?.[1] ?? 0);
}

function ctl(ports: readonly number[], ...args: string[]) {
  const [name = '', ...rest] = args;
  const addresses = ports.flatMap((port) => ['--coordinator-addr', `127.0.0.1:${port}`]);
  return megaplane('fleet', 'ctl', name, ...addresses, ...rest);
}

const TOTAL = /inventory_machines\{.*\} (\d+)/;

async function story(etcd: string): Promise<void> {
  const flags = (port: number): string[] => [
    ...['coordinator', '--etcd-servers', etcd, '--leader-ttl', '2', '--prefix', '/test/'],
    ...['--listen', `127.0.0.1:${port}`, '--metrics-address', '127.0.0.1:0'],
  ];
  const ports = [await freePort(), await freePort()];
  const [first = 0, second = 0] = ports;
  const one = await fleet(...flags(first));
  const two = await fleet(...flags(second));
  const metricsOf = (part: Part): number => portOf(part, /metrics on http:\/\/[^:]+:(\d+)/);
  const leads = async (part: Part): Promise<boolean> =>
    (await metric(metricsOf(part), /is_leader (\d)/)) === 1;
  await until('one leads', async () => (await leads(one)) || (await leads(two)));
  const [leader, other] = (await leads(one)) ? [one, two] : [two, one];

  const simulate = ['provider', 'simulate', '--catalogue', join(dir, 'catalogue.yaml')];
  const provider = await fleet(...simulate, '--listen', '127.0.0.1:0');
  const shardFlags = [
    ...['shard', '--shard-id', 's1', '--data-dir', mkdtempSync(join(dir, 'shard-'))],
    ...['--provider-addr', `127.0.0.1:${portOf(provider, /on 127\.0\.0\.1:(\d+)/)}`],
    ...['--listen', '127.0.0.1:0', '--metrics-address', '127.0.0.1:0'],
    ...ports.flatMap((port) => ['--coordinator-addr', `127.0.0.1:${port}`]),
    ...['--report-interval', '200ms', '--cycle-interval', '100ms', '--advertise', 'here:1'],
  ];
  let shard = await fleet(...shardFlags);
  const machines = (): Promise<number> => metric(metricsOf(shard), TOTAL);
  await until('the shard has all machines', async () => (await machines()) === 6);
  await until('it is registered', () => ctl(ports, 'assignments').stdout.includes('here:1'));
  const zone = 'topology.kubernetes.io/zone';
  assert.equal(ctl(ports, 'assign-domain', zone, 'a', 's1').status, 0);
  assert.equal(ctl(ports, 'bind-cluster', 'c1', 's1').status, 0);
  assert.equal(ctl(ports, 'put-provider', 'p', '127.0.0.1:1', 'eu').status, 0);
  assert.equal(ctl(ports, 'set-quota', 'p', 'eu', 's1=4', '--limit', '5').status, 0);
  const much = ctl(ports, 'set-quota', 'p', 'eu', 's1=6', '--limit', '5');
  assert.match(much.stderr, /the slices are 6 in all, over 5/);
  assert.equal(much.status, 1);
  await until('it has the machines of its domain', async () => (await machines()) === 3);

  // the leader dies without a word; the other one knows what it knew
  await leader.kill();
  await until('the other one leads', () => leads(other));
  const table = ctl(ports, 'assignments').stdout;
  assert.match(table, /\ns1 +here:1 /);
  assert.match(table, /\nc1 +s1\n/);
  assert.match(table, /\ntopology\.kubernetes\.io\/zone=a +s1\n/);
  assert.match(table, /\np +eu +s1 +4\n/);
  assert.match(table, /\np +127\.0\.0\.1:1 +eu\n/);

  // nobody leads: the shard goes on, also over a death of its own, with what it was told
  await other.kill();
  const cycles = /cycle_duration_seconds_count (\d+)/;
  const before = await metric(metricsOf(shard), cycles);
  await until('it decides', async () => (await metric(metricsOf(shard), cycles)) > before + 3);
  await shard.kill();
  shard = await fleet(...shardFlags);
  await until('the shard is back', async () => (await metric(metricsOf(shard), cycles)) > 3);
  assert.equal(await machines(), 3);

  const third = await fleet(...flags(first));
  await until('a third one leads', () => leads(third));
  assert.equal(ctl(ports, 'unassign-domain', zone, 'a').status, 0);
  await until('the shard has all machines again', async () => (await machines()) === 6);
  const json = JSON.parse(ctl(ports, 'assignments', '--output', 'json').stdout) as {
    readonly reports: { readonly reports: readonly { readonly summary?: object }[] };
  };
  await until('it has reported to the third one', () => {
    const text = ctl(ports, 'assignments', '--output', 'json').stdout;
    return text.includes('"perZoneCounts":{"a":3,"b":3}');
  });
  assert.ok(Array.isArray(json.reports.reports ?? []));
  for (const part of [third, shard, provider]) await part.kill();
}

const hasEtcd = spawnSync('etcd', ['--version']).status === 0;
const SKIP = 'needs etcd: apt-get install etcd-server';

test('coordinators share an etcd: one leads, kill -9 loses nothing, shards go on', async (t) => {
  if (!hasEtcd) return t.skip(SKIP);
  const [client, peer] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${client}`;
  const etcd = await start(
    'etcd',
    ...['--data-dir', join(dir, 'etcd'), '--listen-client-urls', url],
    ...['--advertise-client-urls', url, '--listen-peer-urls', `http://127.0.0.1:${peer}`],
    ...['--initial-advertise-peer-urls', `http://127.0.0.1:${peer}`],
    ...['--initial-cluster', `default=http://127.0.0.1:${peer}`],
  );
  await story(url);
  await etcd.kill();
});

test('the same on our own store', async (t) => {
  const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
  if (hasEtcd && !isLong) return t.skip('takes long: MEGAPLANE_LONG=1');
  const port = await freePort();
  const listen = ['--listen-client-urls', `http://127.0.0.1:${port}`];
  const store = await start(
    process.execPath,
    ...[ENTRY, 'store', '--data-dir', join(dir, 'store'), ...listen],
  );
  await story(`http://127.0.0.1:${port}`);
  await store.kill();
});

import assert from 'node:assert/strict';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { ENTRY, megaplane, startCluster, type Cluster } from './cluster.ts';
import { CommandHost } from './command-host.ts';

let cluster: Cluster;

before(async () => {
  cluster = await startCluster(['--nodes', '1', '--components', 'apiserver,controllers']);
});
after(async () => {
  await cluster?.remove();
});

function bench(name: string, ...flags: string[]): Readonly<Record<string, number>> {
  const output = join(cluster.dataDir, `${name}.json`);
  const own = ['--kubeconfig', cluster.kubeconfig, '--output', output];
  const ran = megaplane('bench', name, ...own, ...flags);
  assert(ran.status === 0 || name === 'gaps', ran.stderr);
  return JSON.parse(readFileSync(output, 'utf8')) as Record<string, number>;
}

test('numbered nodes are made, found missing, and deleted, in parts', () => {
  const machines = ['--machines', 'small:4:16Gi:110,big:64:256Gi', '--pod-cidr', '10.0.0.0/8'];
  assert.equal(bench('nodes', '--count', '40', '--skip', '5', ...machines)['nodes'], 40);
  assert.equal(bench('nodes', '--count', '50', '--rate', '500')['nodes'], 10);
  const gaps = (count: string): readonly unknown[] => {
    const { missing, others } = bench('gaps', '--prefix', 'kwok-node-', '--count', count);
    return [missing, others];
  };
  assert.deepEqual(gaps('50'), [0, 0]);
  const part = ['--resource', 'nodes', '--prefix', 'kwok-node-', '--skip', '10', '--count', '20'];
  bench('delete', ...part);
  assert.deepEqual(gaps('52'), [22, 0]);
  const own = ['--kubeconfig', cluster.kubeconfig, '--output', join(cluster.dataDir, 'gone.json')];
  const { stdout } = megaplane('bench', 'delete', ...own, ...part, '--no-wait');
  assert.match(stdout, /gone already.*\n.*deleted +0 .* 20 +0/);
  assert.match(readFileSync(join(cluster.dataDir, 'gone.json'), 'utf8'), /"deletedSeconds":/);
  bench('nodes', '--prefix', 'kwok-node-0', '--count', '2');
  assert.deepEqual(gaps('52'), [22, 2]);
});

test('leases are written over what was written before', () => {
  const flags = ['--num-keys', '50', '--workers', '8', '--seconds', '1'];
  const { perSecond, conflicts, failures } = bench('lease-flood', ...flags);
  assert((perSecond ?? 0) > 0);
  assert.deepEqual([conflicts, failures], [0, 0]);
});

test('one slow connection makes no lease fail that others are written beside', async () => {
  const sockets: Socket[] = [];
  const revisions = new Map<string, number>();
  const write = (request: IncomingMessage, body: string): readonly [number, object] => {
    if (request.method === 'GET') return [404, {}];
    const { metadata } = JSON.parse(body) as { metadata: Record<string, string> };
    const { name = '', resourceVersion } = metadata;
    const found = revisions.get(name);
    const isOver = request.method === 'PUT' && String(found) === resourceVersion;
    if (!isOver && (request.method !== 'POST' || found !== undefined)) return [409, {}];
    revisions.set(name, (found ?? 0) + 1);
    return [201, { metadata: { ...metadata, resourceVersion: String((found ?? 0) + 1) } }];
  };
  const server = createServer((request, response) => {
    if (!sockets.includes(request.socket)) sockets.push(request.socket);
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const [status, answer] = write(request, body);
      const send = (): void => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answer));
      };
      if (request.socket === sockets[0]) setTimeout(send, 200);
      else send();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = join(cluster.dataDir, 'slow.kubeconfig');
  const output = join(cluster.dataDir, 'slow.json');
  writeFileSync(kubeconfig, JSON.stringify(configOf(url)));
  const own = ['--kubeconfig', kubeconfig, '--output', output, '--seconds', '1'];
  const flags = ['bench', 'lease-flood', ...own, '--num-keys', '50', '--workers', '8'];
  const bench = spawn(process.execPath, [ENTRY, ...flags], { stdio: 'ignore', timeout: 90_000 });
  const [status] = await once(bench, 'exit');
  server.closeAllConnections();
  server.close();
  assert.equal(status, 0);
  const { conflicts, failures } = JSON.parse(readFileSync(output, 'utf8')) as Record<
    string,
    number
  >;
  assert.deepEqual([conflicts, failures], [0, 0]);
  assert(sockets.length >= 2);
});

function configOf(server: string): object {
  const context = { cluster: 'one', user: 'one' };
  return {
    'current-context': 'one',
    clusters: [{ name: 'one', cluster: { server } }],
    users: [{ name: 'one', user: {} }],
    contexts: [{ name: 'one', context }],
  };
}

test('the pod that owns the others is one of those that a run has made', () => {
  assert.equal(bench('pods', '--prefix', 'own-', '--count', '5')['done'], 5);
});

test('a run in which nothing happens ends and says why; so does one that is stopped', async (t) => {
  const kubeconfig = join(cluster.dataDir, 'gone.kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(configOf('http://127.0.0.1:1')));
  const flags = ['--count', '5', '--patience', '1'];
  const gone = megaplane('bench', 'delete', '--kubeconfig', kubeconfig, ...flags);
  assert.equal(gone.status, 1);
  assert.match(
    gone.stderr,
    /0 of 5 pods deleted, and no more for 1 s: .*(no answer|not answered)$/m,
  );
  // nothing ever goes there
  const server = createServer((_request, response) => response.end('{}'));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileSync(kubeconfig, JSON.stringify(configOf(url)));
  const own = [ENTRY, 'bench', 'delete', '--kubeconfig', kubeconfig, '--count', '2'];
  const run = (patience: string): ChildProcessByStdio<null, Readable, Readable> =>
    spawn(process.execPath, [...own, '--patience', patience], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const held = run('1');
  let told = '';
  held.stderr.on('data', (part: Buffer) => (told += part.toString()));
  assert.deepEqual(await once(held, 'close'), [1, null]);
  assert.match(told, /0 of 2 pods gone, and no more for 1 s: last GET .*: it is still there$/m);
  const child = run('0');
  let text = '';
  child.stdout.on('data', (part: Buffer) => (text += part.toString()));
  child.stderr.on('data', (part: Buffer) => {
    if (part.includes('0 of 2 pods gone')) child.kill('SIGTERM');
  });
  assert.deepEqual(await once(child, 'close'), [130, null]);
  assert.match(text, /pods gone so far +0 /);
});

test('what the server refuses and flags that are none are told', async (t) => {
  const host = new CommandHost();
  t.after(() => host.close());
  const own = ['--kubeconfig', cluster.kubeconfig];
  const refused = await host.run('bench', 'pods', ...own, '--namespace', 'nowhere', '--count', '5');
  assert.match(refused.stderr, /namespaces "nowhere" not found/);
  const wrong = await host.run('bench', 'pods', ...own, '--shape', 'heap');
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /--shape: one of pod, deployment, job, gang is needed/);
  const told = async (code: number, ...args: string[]): Promise<string> => {
    const ran = await host.run('bench', ...args);
    assert.equal(ran.status, code, args.join(' '));
    assert.doesNotMatch(ran.stderr, /\n {4}at /);
    return ran.stderr;
  };
  assert.match(
    await told(1, 'nodes', '--kubeconfig', 'none.yaml'),
    /cannot read kubeconfig none.yaml/,
  );
  assert.match(await told(2, 'nodes', ...own, '--machines', 'a:4:x'), /a:4:x: x is no quantity/);
  assert.match(
    await told(2, 'nodes', ...own, '--pod-cidr', '10.0.0.0/99'),
    /is no IPv4 network of/,
  );
  const networks = ['--pod-cidr', '10.0.0.0/16', '--skip', '200', '--count', '57'];
  assert.match(await told(2, 'nodes', ...own, ...networks), /has 256 networks of \/24, not 257/);
  assert.match(await told(2, 'gaps', ...own, 'extra'), /extra/);
  assert.match(
    await told(2, 'nodes', ...own, '--output', '/none/x.json'),
    /--output: cannot write/,
  );
  assert.match(await told(2, 'pods', ...own, '--requests', 'cpu=x'), /cpu=x is no quantity/);
  assert.match(await told(2, 'hold', '--seconds', 'x'), /--seconds: a whole number from 1 on/);
  assert.match(await told(2, 'renewals', '--runs', 'x'), /--runs: a whole number from 1 on/);
  assert.match(await told(2, 'lease-flood', ...own, '--no-compare'), /is for --endpoints/);
  const flood = ['lease-flood', '--endpoints', 'http://127.0.0.1:1', '--seconds', '1'];
  assert.match(await told(1, ...flood), /no lease was written; \d+ tries failed/);
});

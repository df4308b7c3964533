/** The script of docs/ that sets three machines up, on three addresses of this one. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import { ENTRY, eventually } from './cluster.ts';

const SCRIPT = join(import.meta.dirname, '..', '..', '..', 'docs', 'three-machines.sh');
const MAPS = '/api/v1/namespaces/default/configmaps';
const MACHINES = [1, 2, 3] as const;

function missing(): false | string {
  if (process.env['MEGAPLANE_LONG'] !== '1') return 'MEGAPLANE_LONG=1 npm test';
  const programs = ['nats-server', 'openssl'];
  const found = programs.every((name) => spawnSync(name, ['--help']).error === undefined);
  return found ? false : 'needs nats-server and openssl: apt-get install nats-server openssl';
}

interface Place {
  readonly dir: string;
  readonly port: number;
}

function ask({ dir, port }: Place, machine: number, method: string, name: string): Promise<number> {
  const text = readFileSync(join(dir, `api-${machine}`, 'kubeconfig'), 'utf8');
  const field = (key: string): Buffer =>
    Buffer.from(new RegExp(`^\\s*${key}: *(\\S+)`, 'm').exec(text)?.[1] ?? '', 'base64');
  const identity = {
    ca: field('certificate-authority-data'),
    cert: field('client-certificate-data'),
    key: field('client-key-data'),
  };
  const path = method === 'GET' ? `${MAPS}/${name}` : MAPS;
  const headers = { 'content-type': 'application/json' };
  const host = `127.0.0.${machine}`;
  return new Promise((resolve, reject) => {
    const options = { host, port, path, method, headers, agent: false, ...identity };
    const sent = request(options, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(method === 'GET' ? undefined : JSON.stringify({ metadata: { name } }));
  });
}

void test('the script for three machines sets them up', { skip: missing() }, async () => {
  const dir = join(mkdtempSync(join(tmpdir(), 'megaplane-machines-')), 'three-machines');
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
  const [nats, routes, stores, port = 0] = ports;
  const env = {
    ...process.env,
    ...{ DIR: dir, MEGAPLANE: `${process.execPath} ${ENTRY}`, NATS_PORT: `${nats}` },
    ...{ ROUTE_PORT: `${routes}`, STORE_PORT: `${stores}`, SECURE_PORT: `${port}` },
  };
  const addresses = MACHINES.map((machine) => `127.0.0.${machine}`);
  execFileSync('bash', [SCRIPT, 'certificates', ...addresses], { env, stdio: 'ignore' });
  try {
    const starts = MACHINES.map(async (machine) => {
      const child = spawn('bash', [SCRIPT, 'start', `${machine}`], { env, stdio: 'ignore' });
      const [code] = (await once(child, 'exit')) as [number];
      assert.equal(code, 0);
    });
    await Promise.all(starts);
    const place = { dir, port };
    assert.equal(await ask(place, 1, 'POST', 'one'), 201);
    for (const machine of MACHINES) assert.equal(await ask(place, machine, 'GET', 'one'), 200);
  } finally {
    execFileSync('bash', [SCRIPT, 'stop'], { env, stdio: 'ignore' });
    await eventually('the end of all', () => {
      const found = spawnSync('pgrep', ['-f', dir], { encoding: 'utf8' }).stdout.trim();
      return found === '' || undefined;
    });
    rmSync(join(dir, '..'), { recursive: true, force: true });
  }
});

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENTRY } from './cluster.ts';

const CATALOGUE = `
offers:
  - { instanceType: m4, zones: [a], capacityType: OnDemand, slots: 3, price: 0.2, resources: { cpu: 4 } }
latencies: { create: { minMs: 20 }, configure: { minMs: 20 } }
`;

test('a provider is played from a file, and certified by the command', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'megaplane-fleet-'));
  const file = join(directory, 'catalogue.yaml');
  writeFileSync(file, CATALOGUE);
  const flags = ['fleet', 'provider', 'simulate', '--catalogue', file, '--listen', '127.0.0.1:0'];
  const provider = spawn(process.execPath, [ENTRY, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    const port = await new Promise<string>((resolve, reject) => {
      let text = '';
      provider.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        const found = /simulated provider on 127\.0\.0\.1:(\d+)\n/.exec(text)?.[1];
        if (found !== undefined) resolve(found);
      });
      provider.once('exit', (code) => reject(new Error(`it ended with ${code}`)));
    });
    const certify = ['fleet', 'provider', 'certify', '--addr', `127.0.0.1:${port}`];
    const all = spawnSync(process.execPath, [ENTRY, ...certify], { encoding: 'utf8' });
    assert.equal(all.status, 0, all.stdout + all.stderr);
    assert.match(all.stdout, /passed +fencing: .*\n/);
    assert.match(all.stdout, /CERTIFIED \(cloud\): \d+ checks, 0 failed\n$/);
    const wrong = [...certify, '--profile', 'bare-metal', '--output', 'json'];
    const other = spawnSync(process.execPath, [ENTRY, ...wrong], { encoding: 'utf8' });
    assert.equal(other.status, 1);
    assert.equal((JSON.parse(other.stdout) as { verdict: string }).verdict, 'FAILED');
  } finally {
    provider.kill();
    rmSync(directory, { recursive: true, force: true });
  }
});

test('what is wrong with a file or a flag is told in one line', () => {
  const ask = (...flags: string[]): { status: number | null; stderr: string } =>
    spawnSync(process.execPath, [ENTRY, 'fleet', ...flags], { encoding: 'utf8' });
  const missing = ask('provider', 'static', '--inventory', '/nowhere');
  assert.match(missing.stderr, /--inventory: cannot read \/nowhere/);
  assert.equal(missing.status, 1);
  const address = ask('provider', 'certify', '--addr', 'nowhere');
  assert.match(address.stderr, /host:port is needed/);
  assert.equal(address.status, 2);
  const tls = ['--tls-cert', 'x', '--kubeconfig', 'x', '--cluster-id', 'c', '--shard-addr', 'h:1'];
  const partial = ask('operator', ...tls);
  assert.match(partial.stderr, /--tls-cert, --tls-key and --tls-ca go together/);
  assert.equal(partial.status, 2);
});

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { assertReplaceable, mergeKubeconfig, publishKubeconfig } from './kubeconfig.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-kubeconfig-'));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, cluster: string, server: string): string {
  const path = join(folder, name);
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: cluster, cluster: { server } }],
      users: [{ name: `${cluster}-admin`, user: {} }],
      contexts: [{ name: cluster, context: { cluster, user: `${cluster}-admin` } }],
      'current-context': cluster,
    }),
  );
  return path;
}

test('a kubeconfig of another cluster is never overwritten', () => {
  const source = file('source', 'megaplane', 'https://127.0.0.1:6443');
  const other = file('other', 'production', 'https://10.0.0.1:6443');
  const before = readFileSync(other, 'utf8');
  assert.throws(
    () => publishKubeconfig(source, other),
    /exists already.*production.*choose another/,
  );
  assert.equal(readFileSync(other, 'utf8'), before);
  writeFileSync(join(folder, 'notes'), 'buy milk\n');
  assert.throws(() => assertReplaceable(join(folder, 'notes')), /is no kubeconfig/);
});

test('a kubeconfig of an earlier run is replaced and closed to others', () => {
  const source = file('source', 'megaplane', 'https://127.0.0.1:6444');
  const target = file('target', 'megaplane', 'https://127.0.0.1:1');
  assert.equal(publishKubeconfig(source, target), target);
  assert.match(readFileSync(target, 'utf8'), /6444/);
  assert.equal(statSync(target).mode & 0o777, 0o600);
  assert.equal(publishKubeconfig(source, undefined), source);
});

test('merging keeps the other clusters and replaces our own entries', () => {
  const mine = file('mine', 'production', 'https://10.0.0.1:6443');
  mergeKubeconfig(file('one', 'megaplane', 'https://127.0.0.1:1'), mine);
  mergeKubeconfig(file('two', 'megaplane', 'https://127.0.0.1:2'), mine);
  const merged = parse(readFileSync(mine, 'utf8'));
  assert.deepEqual(
    merged.clusters.map(({ name, cluster }: { name: string; cluster: { server: string } }) => [
      name,
      cluster.server,
    ]),
    [
      ['production', 'https://10.0.0.1:6443'],
      ['megaplane', 'https://127.0.0.1:2'],
    ],
  );
  assert.equal(merged['current-context'], 'megaplane');
});

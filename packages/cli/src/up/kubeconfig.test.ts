import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import {
  assertMergeable,
  assertReplaceable,
  mergeKubeconfig,
  publishKubeconfig,
} from './kubeconfig.ts';

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

test('a file that is no kubeconfig is never merged into, and told of', () => {
  const broken = join(folder, 'broken');
  const source = file('source', 'megaplane', 'https://127.0.0.1:6443');
  for (const text of ['a: [', 'buy milk\n', '[1]', 'clusters: 5', 'users: [null]']) {
    writeFileSync(broken, text);
    assert.throws(() => assertMergeable(broken), /--merge-kubeconfig: .*broken is no .*mend it/);
    assert.throws(() => mergeKubeconfig(source, broken), /is no/);
    assert.equal(readFileSync(broken, 'utf8'), text);
  }
  assert.throws(() => assertReplaceable(folder), /--kubeconfig: .* cannot be read \(EISDIR/);
});

test("kubectl's empty lists and empty files are merged into", () => {
  const source = file('source', 'megaplane', 'https://127.0.0.1:6443');
  for (const text of ['', 'apiVersion: v1\nkind: Config\nclusters: null\nusers: []\n']) {
    const target = join(folder, 'empty');
    writeFileSync(target, text);
    mergeKubeconfig(source, target);
    assert.equal(parse(readFileSync(target, 'utf8')).clusters.length, 1);
  }
});

test('a kubeconfig behind a link is written where it lies', () => {
  const kept = file('kept', 'production', 'https://10.0.0.1:6443');
  const link = join(folder, 'link');
  symlinkSync(kept, link);
  mergeKubeconfig(file('source', 'megaplane', 'https://127.0.0.1:6443'), link);
  assert(lstatSync(link).isSymbolicLink());
  assert.equal(parse(readFileSync(kept, 'utf8')).clusters.length, 2);
});

test('a place that takes no file is told of before anything starts', () => {
  writeFileSync(join(folder, 'plain'), '');
  const place = join(folder, 'plain', 'config');
  assert.throws(() => assertReplaceable(place), /^Error: --kubeconfig: cannot write .*EEXIST/);
  assert.throws(() => assertMergeable(place), /^Error: --merge-kubeconfig: cannot write .*EEXIST/);
  const below = join(folder, 'made', 'config');
  assertMergeable(below);
  assert.equal(statSync(join(folder, 'made')).mode & 0o777, 0o700);
});

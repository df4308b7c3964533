import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TEMPLATES_PREFIX } from '../managedfields/template-keeper.ts';
import { storagePolicy } from './storage-policy.ts';

function templatesOf(durability: string): string {
  const options = storagePolicy('/data', durability, '');
  const own = options.prefixes.find(({ prefix }) => prefix === TEMPLATES_PREFIX);
  return own?.durability ?? options.durability;
}

test('templates of managedFields last as long as the objects that last longest', () => {
  assert.equal(templatesOf(''), 'buffered');
  assert.equal(templatesOf('none'), 'none');
  assert.equal(templatesOf('leases.coordination.k8s.io=none'), 'buffered');
  assert.equal(templatesOf('none,pods=fsync,secrets=buffered'), 'fsync');
});

test('what is no durability and no resource is refused by name', () => {
  assert.throws(() => storagePolicy(null, 'always', ''), /--durability: always is not one of/);
  assert.throws(() => storagePolicy(null, 'nopes=none', ''), /--durability: nopes is no resource/);
});

test('a limit that was asked for stands as it is, others grow with what is alive', () => {
  const policyOf = (prefix: string, history: string) =>
    storagePolicy('/data', '', history).prefixes.find((policy) => policy.prefix === prefix);
  const mib = 1024 * 1024;
  assert.deepEqual(policyOf('/registry/pods/', 'pods=32MiB'), {
    prefix: '/registry/pods/',
    historyBytesMax: 32 * mib,
  });
  assert.deepEqual(policyOf('/registry/pods/', 'nodes=32MiB'), {
    prefix: '/registry/pods/',
    historyBytesMin: 64 * mib,
    historyBytesMax: 1024 * mib,
  });
});

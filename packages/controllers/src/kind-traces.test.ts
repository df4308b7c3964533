import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryObjects } from 'node:v8';
import { Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { startManager } from '../test/manager.ts';
import { WorkloadApi } from '../test/workload-api.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const GROUP = '/apis/example.com/v1/namespaces/default';
const KINDS = 12;

/** Objects of the process that can still be reached; it has no others than those of this file. */
function countOf(constructor: new (...args: never[]) => object): number {
  return Number(queryObjects(constructor, { format: 'count' }));
}

const countAll = (): number[] => [KeyTable, Uint32Column, ObjectScan].map(countOf);

async function make(api: WorkloadApi, path: string, kind: string, name: string): Promise<void> {
  const apiVersion = kind === 'Namespace' ? 'v1' : 'example.com/v1';
  const body = { apiVersion, kind, metadata: { name } };
  assert((await api.request({ method: 'POST', path, body })).ok);
}

/** Defines kinds, with an object each; returns what takes them away again. */
async function define(api: WorkloadApi, round: string): Promise<() => Promise<void>> {
  const served = api.served;
  const names = Array.from({ length: KINDS }, (_, n) => round + 'abcdefghijkl'.charAt(n));
  for (const name of names) {
    api.served = [...api.served, ['example.com', name, `Kind${name}`, 'Namespaced']];
    await make(api, DEFINITIONS, 'CustomResourceDefinition', `${name}.example.com`);
    await make(api, `${GROUP}/${name}`, `Kind${name}`, 'one');
  }
  await api.advance(10_000);
  return async () => {
    api.served = served;
    for (const name of names) {
      await api.request({ method: 'DELETE', path: `${GROUP}/${name}/one`, body: {} });
      await api.request({ method: 'DELETE', path: `${DEFINITIONS}/${name}.example.com`, body: {} });
    }
    await api.advance(700_000);
  };
}

test('a kind that is served no more leaves no trace', async () => {
  const api = new WorkloadApi();
  await make(api, '/api/v1/namespaces', 'Namespace', 'default');
  const manager = startManager(api, ['*']);
  await api.advance(5_000);
  const atFirst = countAll();
  const [tables = 0] = atFirst;
  for (const round of ['first', 'second']) {
    const remove = await define(api, round);
    assert.equal(countOf(KeyTable), tables + KINDS, 'each kind is watched, once');
    await remove();
    assert.deepEqual(countAll(), atFirst);
  }
  manager.stop();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { Disregard, NodeFilter, selectorOf } from './node-filter.ts';

const node = (annotations: JsonObject | null, labels: JsonObject = {}): JsonObject => ({
  kind: 'Node',
  metadata: { name: 'n', uid: 'u', labels, ...(annotations === null ? {} : { annotations }) },
  status: {},
});

test('a node that gains or loses the annotation comes and goes', () => {
  const seen: string[] = [];
  const selector = selectorOf('manage-nodes-with-annotation-selector', 'kwok.x-k8s.io/node=fake');
  const filter = new NodeFilter(
    { selector },
    {
      onUpsert: (id, isNew) => seen.push(`${isNew ? 'new' : 'changed'} ${id}`),
      onDelete: (id) => seen.push(`gone ${id}`),
    },
  );
  const tell = (isNew: boolean, object: JsonObject): void => {
    const bytes = Buffer.from(JSON.stringify(object));
    filter.handler.onUpsert(3, isNew, bytes, 0, bytes.length);
  };
  const ours = node({ 'kwok.x-k8s.io/node': 'fake' });
  tell(true, node(null));
  assert(!filter.holds(3));
  tell(false, ours);
  assert(filter.holds(3));
  tell(false, ours);
  tell(false, node({ 'kwok.x-k8s.io/node': 'real' }));
  tell(false, ours);
  filter.handler.onDelete(3, Buffer.alloc(0), 0, 0);
  filter.handler.onDelete(3, Buffer.alloc(0), 0, 0);
  assert.deepEqual(seen, ['new 3', 'changed 3', 'gone 3', 'new 3', 'gone 3']);
});

test('objects are disregarded by annotations or by labels; by nothing without selectors', () => {
  const none = new Disregard('', '');
  assert(none.isEmpty);
  assert(!none.covers(node({ a: 'b' }, { a: 'b' })));
  const some = new Disregard('mine', 'a in (b, c)');
  assert(some.covers(node({ mine: '' })));
  assert(some.covers(node(null, { a: 'c' })));
  assert(!some.covers(node({ other: '' }, { a: 'd' })));
  assert.throws(() => new Disregard('a in', ''), /--disregard-status-with-annotation-selector: /);
});

test('a node that a machine keeps is let go, unless it was asked for by name', () => {
  const object = (bootID: string | null): JsonObject => ({
    ...node(null, { 'megaplane.dev/simulated': 'true' }),
    status: bootID === null ? {} : { nodeInfo: { machineID: '', bootID } },
  });
  for (const takesMachines of [false, true]) {
    const seen: string[] = [];
    const filter = new NodeFilter(
      {
        selector: selectorOf('manage-nodes-with-annotation-selector', ''),
        takesMachines,
        onMachine: (id) => seen.push(`machine ${id}`),
      },
      {
        onUpsert: (id, isNew) => seen.push(`${isNew ? 'new' : 'changed'} ${id}`),
        onDelete: (id) => seen.push(`gone ${id}`),
      },
    );
    const tell = (isNew: boolean, bootID: string | null): void => {
      const bytes = Buffer.from(JSON.stringify(object(bootID)));
      filter.handler.onUpsert(1, isNew, bytes, 0, bytes.length);
    };
    tell(true, null);
    tell(false, '');
    tell(false, '0c9d');
    assert.equal(filter.holds(1), takesMachines);
    tell(false, '0c9d');
    tell(false, '');
    const others = ['new 1', 'changed 1', 'gone 1', 'machine 1', 'new 1'];
    const all = ['new 1', ...Array.from({ length: 4 }, () => 'changed 1')];
    assert.deepEqual(seen, takesMachines ? all : others);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeNews } from './node-news.ts';

function nodeOf(more: object, beat = '1', status: object = {}): object {
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: `00:00:0${beat}Z` }];
  return {
    metadata: { name: 'n', uid: 'u', resourceVersion: beat, labels: { a: 'b' } },
    spec: {},
    status: { capacity: { cpu: '1' }, conditions, allocatable: { cpu: '1' }, ...status },
    ...more,
  };
}

test('a heartbeat is no news; whatever a plugin may look at is', () => {
  const news = new NodeNews();
  const tell = (node: object, row = 3, isNew = false): boolean => {
    const bytes = Buffer.from(`..${JSON.stringify(node)}`);
    return news.isNews(row, isNew, bytes, 2, bytes.length);
  };
  assert(tell(nodeOf({}), 3, true));
  assert(!tell(nodeOf({}, '2')));
  const metadata = { name: 'n', uid: 'u', labels: { a: 'b' } };
  const changes = [
    nodeOf({ spec: { unschedulable: true } }),
    nodeOf({ spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }),
    nodeOf({ metadata: { ...metadata, labels: { a: 'c' } } }),
    nodeOf({ metadata: { ...metadata, labels: { a: 'b', c: '' } } }),
    nodeOf({ metadata: { ...metadata, annotations: { a: 'b' } } }),
    nodeOf({ metadata: { ...metadata, uid: 'v' } }),
    nodeOf({}, '1', { allocatable: { cpu: '2' } }),
    nodeOf({}, '1', { capacity: { cpu: '2' } }),
    nodeOf({}, '1', { images: [{ names: ['i'], sizeBytes: 1 }] }),
    nodeOf({}, '1', { declaredFeatures: ['x'] }),
    nodeOf({ status: {} }),
    { metadata },
  ];
  for (const change of changes) {
    assert(tell(change), JSON.stringify(change));
    assert(!tell(change), JSON.stringify(change));
    assert(tell(nodeOf({})), `${JSON.stringify(change)} undone`);
  }
  assert(tell(nodeOf({}), 3, true), 'another node has the row');
  assert(tell(nodeOf({}), 4));
});

test('hashes of nodes that differ little differ', () => {
  const news = new NodeNews();
  const seen = new Set<boolean>();
  for (let cpu = 0; cpu < 20_000; cpu++) {
    const node = nodeOf({}, '1', { allocatable: { cpu: `${cpu}` } });
    const bytes = Buffer.from(JSON.stringify(node));
    seen.add(news.isNews(0, cpu === 0, bytes, 0, bytes.length));
  }
  assert.deepEqual([...seen], [true]);
});

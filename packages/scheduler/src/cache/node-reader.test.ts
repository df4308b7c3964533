import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { factsOf, HOSTNAME_KEY } from './node-facts.ts';
import { NodeReader } from './node-reader.ts';
import type { NodeObject } from '../api/objects.ts';

function read(reader: NodeReader, node: object): unknown {
  const bytes = Buffer.from(`..${JSON.stringify(node)}..`);
  return reader.read(bytes, 2, bytes.length - 2);
}

/** All but the object itself, of which only the amounts count. */
function comparable(facts: unknown): unknown {
  const { object, ...rest } = facts as ReturnType<typeof factsOf>;
  return { ...rest, allocatable: object.status?.allocatable };
}

function nodeOf(random: Random, index: number): NodeObject {
  const pick = <T>(...choices: T[]): T => choices[random.below(choices.length)] as T;
  const name = pick(`node-${index}`, `node-${index}.example.com`, `n${index % 3}`, 'nöde', 'a"b');
  const zone = `zone-${random.below(3)}`;
  const labels = pick<Record<string, string> | undefined>(
    undefined,
    {},
    { [HOSTNAME_KEY]: name, zone },
    { zone, [HOSTNAME_KEY]: name },
    { [HOSTNAME_KEY]: 'another', zone },
    { [HOSTNAME_KEY]: '', zone, name },
  );
  const taints = pick<object[] | undefined>(undefined, [], [{ key: 'k', effect: 'NoSchedule' }]);
  const spec = pick<object | undefined>(
    undefined,
    { podCIDR: `10.0.${index}.0/24` },
    { podCIDR: `10.0.${index}.0/24`, unschedulable: random.below(2) === 1, taints },
  );
  const names = [`image-${random.below(2)}:1`, 'image:2'];
  const status = pick<object | undefined>(
    undefined,
    { conditions: [{ type: 'Ready', lastHeartbeatTime: String(index) }] },
    {
      addresses: [{ type: 'InternalIP', address: `10.1.0.${index}` }],
      allocatable: { cpu: String(1 + random.below(2)), memory: '1Gi' },
      images: pick([], [{ names, sizeBytes: 7 }], [{ names }, { names, sizeBytes: 9 }]),
      declaredFeatures: pick([], ['x']),
    },
  );
  return {
    metadata: { name, annotations: { n: String(index) }, ...(labels && { labels }) },
    ...(spec && { spec }),
    ...(status && { status }),
  };
}

test('a node that is read has the facts of its object', () => {
  const random = new Random(7);
  const reader = new NodeReader(random.fork('reader'));
  for (let index = 0; index < 5000; index++) {
    const node = nodeOf(random, index);
    assert.deepEqual(comparable(read(reader, node)), comparable(factsOf(node)), String(index));
  }
});

test('nodes that are alike but for name, address and times share what is known of them', () => {
  const reader = new NodeReader(new Random(1));
  const kinds = new Set<unknown>();
  for (let index = 0; index < 9; index++) {
    const name = `node-${index}`;
    const labels = { [HOSTNAME_KEY]: name, zone: 'a' };
    const status = { addresses: [{ address: `10.0.0.${index}` }], allocatable: { cpu: '1' } };
    const node = { metadata: { name, labels, uid: name }, spec: { podCIDR: name }, status };
    const facts = read(reader, node) as ReturnType<typeof factsOf>;
    assert.equal(facts.name, name);
    kinds.add(facts.kind);
  }
  assert.equal(kinds.size, 1);
});

test('what is no object, or says more than is remembered, is decoded', () => {
  const reader = new NodeReader(new Random(1));
  assert.throws(() => reader.read(Buffer.from('[}'), 0, 2), SyntaxError);
  const images = Array.from({ length: 400 }, (_, n) => ({ names: [`registry/image-${n}:tag`] }));
  const node = { metadata: { name: 'n' }, status: { images } };
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(comparable(read(reader, node)), comparable(factsOf(node)));
  }
});

test('when more kinds of nodes come than are remembered, all are forgotten and read again', () => {
  const reader = new NodeReader(new Random(1));
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 5000; index++) {
      const node = { metadata: { name: 'n', labels: { a: String(index) } } };
      assert.deepEqual(comparable(read(reader, node)), comparable(factsOf(node)));
    }
  }
});

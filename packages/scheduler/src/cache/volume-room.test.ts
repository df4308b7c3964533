import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { factsOf } from './node-facts.ts';
import { NodeTable } from './node-table.ts';
import { ObjectStore } from './object-store.ts';
import { VolumeRoom } from './volume-room.ts';

const ROOM_WATCHED = 3;

test('what is kept up to date is what a look at everything finds', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const below = (count: number): number => random.below(count);
    const nodes = new NodeTable(random);
    const objects = new ObjectStore();
    const room = new VolumeRoom(nodes, objects, ROOM_WATCHED);
    const disks = new Map<number, number>();
    let watched = 0;
    for (let step = 0; step < 300; step++) {
      const name = `n${below(6)}`;
      const metadata = { name, resourceVersion: String(step) };
      const kind = below(8);
      if (kind < 2) nodes.set(factsOf({ metadata }));
      else if (kind === 2 && nodes.find(name) >= 0) nodes.remove(nodes.find(name));
      else if (kind === 3) {
        const drivers = [{ name: 'd', allocatable: { count: below(9) } }];
        const spec = below(4) === 0 ? {} : { drivers };
        objects.set('CSINode', Object.assign({ metadata }, { spec }));
      } else if (kind === 4) objects.delete('CSINode', name);
      else if (kind === 5) {
        const spec = { attacher: 'd', nodeName: name };
        const attachment = { name: `a${below(9)}`, resourceVersion: String(step) };
        objects.set('VolumeAttachment', Object.assign({ metadata: attachment }, { spec }));
      } else if (kind === 6) objects.delete('VolumeAttachment', `a${below(9)}`);
      else if (nodes.isPresent(Math.max(0, nodes.find(name))) && nodes.find(name) >= 0) {
        const node = nodes.find(name);
        const delta = Math.max(-(disks.get(node) ?? 0), below(5) - 2);
        disks.set(node, (disks.get(node) ?? 0) + delta);
        if (delta !== 0) room.count(node, delta);
      }
      if (below(3) > 0) continue;
      room.catchUp();
      const fresh = new VolumeRoom(nodes, objects, ROOM_WATCHED);
      for (const [node, count] of disks) if (count > 0) fresh.count(node, count);
      fresh.catchUp();
      assert.deepEqual(room.near, fresh.near, `seed ${seed}`);
      watched += room.near.size;
    }
    assert.ok(watched > 0, 'some nodes are about full');
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { applyPatch, parsePatch } from '@megaplane/machinery/patch';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { conditionsPatch } from './conditions.ts';

test('a patch of conditions is taken in any order, changes in place and appends', () => {
  const types = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;
  const shuffled = fc.shuffledSubarray([...types]);
  fc.assert(
    fc.property(shuffled, fc.shuffledSubarray([...types], { minLength: 1 }), (before, changed) => {
      const was = before.map((type) => ({ type, status: 'True' }));
      const status = conditionsPatch(
        was,
        changed.map((type) => ({ type, status: 'Unknown' })),
      );
      const patch = parsePatch('strategic', JSON.stringify({ status }));
      assert(patch.ok);
      const node = { apiVersion: 'v1', kind: 'Node', metadata: {}, status: { conditions: was } };
      const result = applyPatch(patch.value, node, findTypeOfKind('v1', 'Node'));
      assert(result.ok, result.ok ? '' : (result.status.message ?? ''));
      const after = listAt(result.value, 'status', 'conditions');
      const fresh = changed.filter((type) => !before.includes(type));
      assert.deepEqual(
        after.map((one) => stringAt(one, 'type')),
        [...before, ...fresh],
      );
      for (const one of after) {
        const type = types.find((name) => name === stringAt(one, 'type'))!;
        assert.equal(stringAt(one, 'status'), changed.includes(type) ? 'Unknown' : 'True');
      }
    }),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { UidColumn } from './uid-column.ts';

test('whatever was put in comes out again', () => {
  const odd = fc.string({ minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.uuid(),
          odd,
          fc.uuid().map((uid) => uid.toUpperCase()),
        ),
      ),
      (uids) => {
        const column = new UidColumn();
        for (const [id, uid] of uids.entries()) {
          const bytes = Buffer.from(`"${uid}"`);
          column.set(id, bytes, 1, bytes.length - 1);
        }
        for (const [id, uid] of uids.entries()) assert.equal(column.text(id), uid);
      },
    ),
  );
});

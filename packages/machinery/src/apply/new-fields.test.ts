import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { emptyObject } from '../normal-form.ts';
import { findTypeOfKind } from '../schema.ts';
import { trackNewObject, trackUpdate, type FieldScope } from './field-manager.ts';
import { FieldSet } from './field-set.ts';
import { holedFields } from './holed-fields.ts';
import { emptyManaged } from './managed-fields.ts';
import { kindOf, KINDS, objectsOf } from './objects.sim.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 300 : 20_000;

test('the fields of a new object are written as comparing with the empty one finds them', () => {
  for (const one of KINDS.map(kindOf)) {
    const { apiVersion, kind, schema } = one;
    const type = findTypeOfKind(apiVersion, kind);
    assert(type !== undefined);
    const scope: FieldScope = {
      versions: {
        apiVersion,
        schema,
        convert: () => null,
        convertBack: (value) => value,
        ignored: FieldSet.of(['f:status']),
      },
      manager: { name: 'm', operation: 'Update', apiVersion, subresource: '' },
      nowSeconds: 1,
      empty: { kind, apiVersion, ...emptyObject(type) },
    };
    fc.assert(
      fc.property(objectsOf(one, 1), ([object = {}]) => {
        const { owners } = trackUpdate(scope, null, object, emptyManaged());
        const [owned] = owners.values();
        const wanted = owned === undefined ? null : holedFields(owned.fields);
        assert.deepEqual(trackNewObject(scope, object), wanted);
      }),
      { numRuns: Math.ceil(RUNS / KINDS.length) },
    );
  }
});

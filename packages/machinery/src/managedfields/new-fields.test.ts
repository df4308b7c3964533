import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { emptyObject } from '../scheme/normal-form.ts';
import { findTypeOfKind } from '../scheme/schema.ts';
import { trackNewObject, trackUpdate, type FieldScope } from './field-manager.ts';
import { FieldSet } from './field-set.ts';
import { holedFields } from './field-placeholders.ts';
import { emptyManaged } from './managed-fields.ts';
import type { JsonObject } from '../json/json-value.ts';
import { kindOf, KINDS, objectsOf, type Kind } from './objects.sim.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 300 : 20_000;

/** Of a writer who makes an object of a kind. */
function scopeOf({ apiVersion, kind, schema }: Kind): FieldScope {
  const type = findTypeOfKind(apiVersion, kind);
  assert(type !== undefined);
  return {
    versions: {
      apiVersion,
      schema,
      schemaOf: (version) => (version === apiVersion ? schema : null),
      convert: () => null,
      convertBack: (value) => value,
      ignored: FieldSet.of(['f:status']),
      ignoredElsewhere: new FieldSet(),
    },
    manager: { name: 'm', operation: 'Update', apiVersion, subresource: '' },
    nowSeconds: 1,
    formedSince: -1,
    empty: { kind, apiVersion, ...emptyObject(type) },
  };
}

function general(scope: FieldScope, object: JsonObject): unknown {
  const { owners } = trackUpdate(scope, null, object, emptyManaged());
  const [owned] = owners.values();
  return owned === undefined ? null : holedFields(owned.fields);
}

test('the fields of a new object are written as comparing with the empty one finds them', () => {
  for (const one of KINDS.map(kindOf)) {
    const scope = scopeOf(one);
    fc.assert(
      fc.property(objectsOf(one, 1), ([object = {}]) => {
        assert.deepEqual(trackNewObject(scope, object), general(scope, object));
      }),
      { numRuns: Math.ceil(RUNS / KINDS.length) },
    );
  }
});

test('the items of sets are written alike, whatever they are made of', () => {
  const scope = scopeOf(kindOf(['v1', 'ConfigMap']));
  const sets = [
    ['b', 'a'],
    ['a', 'a', 'a'],
    ['b/x.y', 'a<b'],
    ['é', 'z', '\u{1f600}'],
    ['', 'A', 'a'],
  ];
  for (const finalizers of [...sets, ['-', '.', '/', ':', '_', '0']]) {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', finalizers } };
    const found = trackNewObject(scope, object);
    assert.deepEqual(found, general(scope, object), JSON.stringify(finalizers));
    assert.equal(found?.fills.length, new Set(finalizers).size);
  }
});

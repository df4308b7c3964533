import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../json/json-value.ts';
import type { FieldPath } from './field-set.ts';
import { FieldSet } from './field-set.ts';
import { fieldsOf } from './field-walk.ts';
import { builtinSchema } from './builtin-schema.ts';
import { filled, kindOf, KINDS, objectsOf, type Kind } from './objects.sim.ts';
import { applyConfig, ownersAfterUpdate, type Owners, type Versions } from './ownership.ts';
import { typedFaults } from './typed-faults.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 60 : 5_000;
const NOTHING = new FieldSet();

function versionsOf({ apiVersion, schema }: Kind): Versions {
  return {
    apiVersion,
    schema,
    schemaOf: (version) => (version === apiVersion ? schema : null),
    convert: () => null,
    convertBack: (value) => value,
    ignored: NOTHING,
    ignoredElsewhere: NOTHING,
  };
}

interface State {
  readonly object: JsonObject;
  readonly owners: Owners;
}

/** Applies by force; the state after it. */
function forced(versions: Versions, state: State, config: JsonObject, manager: string): State {
  const done = applyConfig(versions, state.object, config, state.owners, manager, true);
  assert.equal(done.kind, 'done');
  if (done.kind !== 'done') throw new Error('conflicts although forced');
  return { object: (done.value as JsonObject | null) ?? state.object, owners: done.owners };
}

/** Runs `law` on random objects of every kind, all with the same head. */
function forObjects(count: number, law: (kind: Kind, objects: JsonObject[]) => void): void {
  for (const kind of KINDS.map(kindOf)) {
    fc.assert(
      fc.property(objectsOf(kind, count), (objects) => {
        law(
          kind,
          objects.map((object) => filled(object) as JsonObject),
        );
      }),
      { numRuns: RUNS },
    );
  }
}

function start({ apiVersion, kind }: Kind): State {
  return { object: { apiVersion, kind }, owners: new Map() };
}

test('random objects fit the types that they are of', () => {
  let leaves = 0;
  forObjects(1, ({ schema }, [object = {}]) => {
    assert.deepEqual(typedFaults(schema, object, false), []);
    leaves += fieldsOf(schema, object).size;
  });
  assert.ok(leaves > RUNS * KINDS.length * 2);
});

test('to apply the same again changes nothing', () => {
  forObjects(3, (kind, [live = {}, first = {}, config = {}]) => {
    const versions = versionsOf(kind);
    let state = forced(versions, start(kind), live, 'a');
    state = forced(versions, state, first, 'b');
    const once = forced(versions, state, config, 'b');
    const again = applyConfig(versions, once.object, config, once.owners, 'b', false);
    assert.equal(again.kind, 'done');
    if (again.kind !== 'done') return;
    assert.equal(again.value, null);
    assertSameOwners(again.owners, once.owners);
  });
});

test('what a manager applies is there, and its own', () => {
  forObjects(2, (kind, [live = {}, config = {}]) => {
    const versions = versionsOf(kind);
    const state = forced(versions, forced(versions, start(kind), live, 'a'), config, 'b');
    const wanted = fieldsOf(kind.schema, config);
    assert.ok((state.owners.get('b')?.fields ?? NOTHING).equals(wanted));
    const there = fieldsOf(kind.schema, state.object);
    for (const path of wanted.paths()) {
      // a container that somebody else has filled is not a leaf any more
      assert.ok(there.has(path) || isInside(there, path), path.join(' '));
    }
  });
});

test('an apply of nothing takes away what only its manager applied, and nothing else', () => {
  forObjects(2, (kind, [live = {}, config = {}]) => {
    const versions = versionsOf(kind);
    const bare = { apiVersion: kind.apiVersion, kind: kind.kind };
    const before = forced(versions, start(kind), live, 'a');
    const both = forced(versions, before, config, 'b');
    const after = forced(versions, both, bare, 'b');
    const left = fieldsOf(kind.schema, after.object);
    const ofOther = both.owners.get('a')?.fields ?? NOTHING;
    for (const path of fieldsOf(kind.schema, both.object).paths()) {
      const isOwned = ofOther.has(path) || isInside(ofOther, path);
      if (isOwned) assert.ok(left.has(path) || isInside(left, path), `lost ${path.join(' ')}`);
    }
    for (const path of left.paths()) {
      const wasMine = both.owners.get('b')?.fields.has(path) === true;
      const isHead = path.length === 1 && (path[0] === 'f:kind' || path[0] === 'f:apiVersion');
      const isOthers = ofOther.has(path) || isInside(ofOther, path) || isAbove(ofOther, path);
      assert.ok(!wasMine || isHead || isOthers, `kept ${path.join(' ')}`);
    }
  });
});

test('conflicts are the fields of others that an apply would change, whoever comes first', () => {
  forObjects(2, (kind, [one = {}, other = {}]) => {
    const versions = versionsOf(kind);
    const conflictsOf = (first: JsonObject, second: JsonObject): string[] => {
      const state = forced(versions, start(kind), first, 'a');
      const tried = applyConfig(versions, state.object, second, state.owners, 'b', false);
      if (tried.kind === 'done') return [];
      return tried.conflicts
        .filter(isScalarPath(kind, first, second))
        .map(({ path }) => path.join(' '));
    };
    assert.deepEqual(conflictsOf(one, other).sort(), conflictsOf(other, one).sort());
  });
});

test('with force the fields in conflict change hands', () => {
  forObjects(2, (kind, [one = {}, other = {}]) => {
    const versions = versionsOf(kind);
    const state = forced(versions, start(kind), one, 'a');
    const tried = applyConfig(versions, state.object, other, state.owners, 'b', false);
    const after = forced(versions, state, other, 'b');
    const left = after.owners.get('a')?.fields ?? NOTHING;
    if (tried.kind === 'done') {
      assert.ok(left.equals(state.owners.get('a')?.fields ?? NOTHING));
      return;
    }
    for (const { manager, path } of tried.conflicts) {
      assert.equal(manager, 'a');
      assert.ok(!left.has(path), path.join(' '));
    }
  });
});

test('an update owns what it changed, and nobody owns what is gone', () => {
  forObjects(2, (kind, [live = {}, next = {}]) => {
    const versions = versionsOf(kind);
    const state = forced(versions, start(kind), live, 'a');
    const owners = ownersAfterUpdate(versions, state.object, next, state.owners, 'u');
    const there = fieldsOf(kind.schema, next);
    for (const [manager, { fields }] of owners) {
      for (const path of fields.paths()) {
        assert.ok(there.has(path) || isInside(there, path), `${manager} owns ${path.join(' ')}`);
      }
    }
    const same = ownersAfterUpdate(versions, next, next, owners, 'u');
    assertSameOwners(same, owners);
  });
});

/**
 * Maps of strings alone, by a model of plain maps: what upstream's algorithm comes down to where
 * there are no lists and no defaults.
 */
test('data of config maps goes the way of a plain model', () => {
  const kind = kindOf(['v1', 'ConfigMap']);
  const versions = versionsOf(kind);
  const data = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'), {
    noNullPrototype: true,
  });
  const steps = fc.array(
    fc.record({ data, manager: fc.constantFrom('m', 'n', 'o'), force: fc.boolean() }),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(steps, (list) => {
      let state = start(kind);
      const model = new PlainModel();
      for (const { data: wanted, manager, force } of list) {
        const config = { apiVersion: 'v1', kind: 'ConfigMap', data: wanted };
        const done = applyConfig(versions, state.object, config, state.owners, manager, force);
        const conflicts = model.apply(wanted, manager, force);
        if (done.kind === 'conflicts') {
          assert.deepEqual(
            done.conflicts.map((one) => `${one.manager} ${one.path.join(' ')}`).sort(),
            conflicts,
          );
          continue;
        }
        assert.deepEqual(conflicts, []);
        state = { object: (done.value as JsonObject | null) ?? state.object, owners: done.owners };
        const found = (state.object['data'] ?? {}) as Record<string, string>;
        assert.deepEqual(new Map(Object.entries(found)), model.values);
      }
    }),
    { numRuns: RUNS * 10 },
  );
});

class PlainModel {
  readonly values = new Map<string, string>();
  readonly #owned = new Map<string, Set<string>>();

  apply(wanted: Record<string, string>, manager: string, force: boolean): string[] {
    const changed = Object.entries(wanted).filter(([key, value]) => this.values.get(key) !== value);
    const conflicts: string[] = [];
    for (const [other, keys] of this.#owned) {
      if (other === manager) continue;
      for (const [key] of changed) if (keys.has(key)) conflicts.push(`${other} f:data f:${key}`);
    }
    if (conflicts.length > 0 && !force) return conflicts.sort();
    const before = this.#owned.get(manager) ?? new Set();
    this.#owned.set(manager, new Set(Object.keys(wanted)));
    for (const [key, value] of changed) {
      this.values.set(key, value);
      for (const [other, keys] of this.#owned) if (other !== manager) keys.delete(key);
    }
    for (const key of before) {
      if (![...this.#owned.values()].some((keys) => keys.has(key))) this.values.delete(key);
    }
    return [];
  }
}

function assertSameOwners(left: Owners, right: Owners): void {
  assert.deepEqual([...left.keys()].sort(), [...right.keys()].sort());
  for (const [manager, { fields }] of left) {
    assert.ok(fields.equals(right.get(manager)?.fields ?? NOTHING), manager);
  }
}

/** Some field of the set lies below the path. */
function isInside(set: FieldSet, path: FieldPath): boolean {
  let at: FieldSet | null = set;
  for (const step of path) at = at?.below(step) ?? null;
  return at !== null && !at.isEmpty;
}

/** The path lies below some field of the set. */
function isAbove(set: FieldSet, path: FieldPath): boolean {
  return path.some((_, at) => set.has(path.slice(0, at)));
}

/** Leaves of both sides: a container of one that is a leaf of the other is changed one way only. */
function isScalarPath(kind: Kind, first: JsonObject, second: JsonObject) {
  const [a, b] = [fieldsOf(kind.schema, first), fieldsOf(kind.schema, second)];
  return ({ path }: { readonly path: FieldPath }): boolean => {
    return [a, b].every((set) => set.has(path) && !isInside(set, path));
  };
}

test('a quantity is a scalar, not a map or a list', () => {
  const schema = builtinSchema('v1', 'ResourceQuota');
  assert.ok(schema !== undefined);
  const faults = typedFaults(schema, { spec: { hard: { pods: {}, cpu: '1', memory: 2 } } }, false);
  const text = 'expected any scalar, got &{map[]}';
  assert.deepEqual(faults, [{ path: '.spec.hard.pods', text }]);
});

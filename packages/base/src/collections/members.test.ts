import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addToMember, bareOf, ownMember, putMember, putMembers } from './members.ts';

const NAMES = ['a', 'constructor', '__proto__', 'toString', 'hasOwnProperty', ''];

test('an object has none of the names that it inherits, until they are put in', () => {
  for (const name of NAMES) {
    const object: Record<string, number> = {};
    assert.equal(ownMember(object, name), undefined);
    putMember(object, name, 1);
    assert.equal(ownMember(object, name), 1);
    assert.equal(JSON.stringify(object), `{${JSON.stringify(name)}:1}`);
    assert.equal(Object.getPrototypeOf(object), Object.prototype);
    putMember(object, name, 2);
    assert.deepEqual(Object.entries(object), [[name, 2]]);
  }
  assert.equal(ownMember(undefined, 'a'), undefined);
  assert.equal(ownMember(null, 'a'), undefined);
});

test('members are put from one object into another, each by its name', () => {
  const from = JSON.parse('{"__proto__":{"x":1},"constructor":2,"a":3}') as Record<string, unknown>;
  const into: Record<string, unknown> = { a: 0 };
  putMembers(into, from);
  assert.equal(JSON.stringify(into), '{"a":3,"__proto__":{"x":1},"constructor":2}');
  putMembers(into, undefined);
  assert.equal(Object.keys(into).length, 3);
});

test('lists are begun and added to by any name', () => {
  for (const name of NAMES) {
    const lists: Record<string, string[]> = {};
    addToMember(lists, name, 'x');
    addToMember(lists, name, 'y');
    assert.deepEqual(Object.entries(lists), [[name, ['x', 'y']]]);
  }
});

test('a bare object inherits nothing', () => {
  const bare = bareOf<Record<string, string>>({ a: 'b' });
  assert.equal(bare['constructor'], undefined);
  assert.equal(bare['a'], 'b');
});

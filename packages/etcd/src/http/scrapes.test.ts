import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Scrapes } from './scrapes.ts';

test('a scrape is one part a turn, and who asks meanwhile gets the next one', async () => {
  let texts = 0;
  let parts = 0;
  const scrapes = new Scrapes(function* (): Generator<void, string> {
    const text = `text ${++texts}`;
    for (let part = 0; part < 3; part++) {
      parts++;
      yield;
    }
    return text;
  });
  const found: string[] = [];
  const ask = (name: string): void => scrapes.ask((text) => found.push(`${name}: ${text}`));
  ask('a');
  assert.equal(parts, 1);
  await turn();
  assert.equal(parts, 2);
  ask('b');
  ask('c');
  for (let turns = 0; turns < 10; turns++) await turn();
  assert.deepEqual(found, ['a: text 1', 'b: text 2', 'c: text 2']);
  ask('d');
  for (let turns = 0; turns < 10; turns++) await turn();
  assert.equal(found.at(-1), 'd: text 3');
});

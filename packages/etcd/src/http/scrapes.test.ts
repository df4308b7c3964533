import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { tellErrors } from '@megaplane/base/deferred';
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

test('what fails for one scrape or in its text ends no other', async () => {
  const told: string[] = [];
  tellErrors((error) => told.push((error as Error).message));
  try {
    let texts = 0;
    const scrapes = new Scrapes(function* (): Generator<void, string> {
      const text = `text ${++texts}`;
      yield;
      if (texts === 2) throw new Error('no number');
      return text;
    });
    const found: string[] = [];
    const ask = (name: string): void => scrapes.ask((text) => found.push(`${name}: ${text}`));
    const turns = async (): Promise<void> => {
      for (let count = 0; count < 10; count++) await turn();
    };
    scrapes.ask(() => {
      throw new Error('gone');
    });
    scrapes.ask(() => {
      throw new Error('gone, too');
    });
    ask('a');
    await turns();
    assert.deepEqual(found, ['a: null']);
    ask('b');
    await turns();
    assert.deepEqual(found, ['a: null', 'b: text 3']);
    assert.deepEqual(told, ['gone', 'gone, too', 'no number']);
  } finally {
    tellErrors((error) => console.error(error));
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../../test/fake-client.ts';
import { BackPressure } from './back-pressure.ts';

test('who has stopped is not called any more', () => {
  const client = new FakeClient(1);
  let calls = 0;
  const room = new BackPressure(client, () => calls++);
  const ask = (): void => {
    client.send('GET', '/', '', null, () => {});
    client.answer(200);
  };
  ask();
  assert.equal(calls, 1);
  room.stop();
  ask();
  assert.equal(calls, 1);
});

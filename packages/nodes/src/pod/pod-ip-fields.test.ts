import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podIps } from './pod-ip-fields.ts';

test('addresses of a pod: all of them, or the one of old objects', () => {
  const of = (value: object): string[] => {
    const bytes = Buffer.from(JSON.stringify(value));
    return podIps(bytes, 0, bytes.length);
  };
  assert.deepEqual(of({ podIP: 'a', podIPs: [{ ip: 'a' }, { ip: 'b' }] }), ['a', 'b']);
  assert.deepEqual(of({ podIP: 'a', podIPs: [] }), ['a']);
  assert.deepEqual(podIps(Buffer.from('{}'), -1, -1), []);
});

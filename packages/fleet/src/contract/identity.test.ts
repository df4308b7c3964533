import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayRead, uriIdentity } from './identity.ts';

test('a certificate names one of ours, or nobody', () => {
  const one = 'bigfleet://cluster/c1';
  assert.equal(uriIdentity(`URI:${one}`), one);
  assert.equal(uriIdentity(`DNS:a, URI:${one}, URI:spiffe://x`), one);
  for (const names of ['', 'DNS:bigfleet://admin', `URI:${one}, URI:bigfleet://admin`]) {
    assert.equal(uriIdentity(names), '', names);
  }
  assert.equal(uriIdentity('DNS:"a, URI:bigfleet://admin"'), '');
});

test('readers and admins may read, and everybody where no certificates are asked for', () => {
  assert.ok(mayRead(undefined) && mayRead('bigfleet://readonly') && mayRead('bigfleet://admin'));
  assert.ok(!mayRead('') && !mayRead('bigfleet://cluster/c1') && !mayRead('bigfleet://shard/s'));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMember, unsafeWay } from './member-tls.ts';

const TLS = { cert: Buffer.alloc(0), key: Buffer.alloc(0), ca: Buffer.alloc(0) };

test('without certificates only this machine is spoken with', () => {
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    assert.equal(unsafeWay('--join', host, undefined), '');
  }
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'root', '127.0.0.1.example.com']) {
    assert.match(unsafeWay('--join', host, undefined), /--join .*certificates only/);
    assert.equal(unsafeWay('--join', host, TLS), '');
  }
});

test('of those that the authority has vouched for, schedulers are members', () => {
  assert.ok(isMember({ subject: 'CN=system:kube-scheduler' }));
  assert.ok(isMember({ subject: 'O=a\nCN=system:kube-scheduler' }));
  assert.ok(!isMember({ subject: 'O=system:nodes\nCN=system:node:n1' }));
  assert.ok(!isMember({ subject: 'CN=system:kube-scheduler-2' }));
  assert.ok(!isMember({ subject: 'O=CN=system:kube-scheduler\nCN=x' }));
});

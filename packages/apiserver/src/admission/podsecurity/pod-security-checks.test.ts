import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violationsOf } from './pod-security-checks.ts';

test('a sysctl is safe by its name in the list, and not by a name that every object has', () => {
  const sysctls = (name: string): string =>
    violationsOf(
      { metadata: {}, spec: { securityContext: { sysctls: [{ name, value: '1' }] } } },
      'baseline',
      36,
    );
  assert.equal(sysctls('kernel.shm_rmid_forced'), '');
  for (const name of ['constructor', '__proto__', 'toString', 'kernel.msgmax']) {
    assert.equal(sysctls(name), `forbidden sysctls (${name})`);
  }
});

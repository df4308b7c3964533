import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openAuthentication, type AuthenticationFlags } from './authentication-flags.ts';

test('where everybody may do everything, nobody comes without a credential', () => {
  const logged: string[] = [];
  const isOpen = (flags: AuthenticationFlags): boolean => {
    const edge = {
      log: (message: string) => void logged.push(message),
      nowMs: () => 0,
      later: () => {},
      caller: { call: () => {} },
    };
    const { anonymous, stop } = openAuthentication(flags, edge);
    stop();
    return anonymous.isEnabled;
  };
  assert.equal(isOpen({}), true);
  assert.equal(isOpen({ authorizationMode: 'Node,RBAC' }), true);
  assert.deepEqual(logged, []);
  assert.equal(isOpen({ authorizationMode: 'AlwaysAllow' }), false);
  assert.equal(isOpen({ authorizationMode: 'RBAC,AlwaysAllow', anonymousAuth: true }), false);
  assert.equal(logged.length, 2);
  assert.match(logged[0] ?? '', /AlwaysAllow/);
  assert.equal(isOpen({ authorizationMode: 'AlwaysAllow', anonymousAuth: false }), false);
  assert.equal(logged.length, 2, 'nobody asked for it');
});

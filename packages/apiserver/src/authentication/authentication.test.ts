import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PeerCertificate } from '@megaplane/wire/exchange';
import { authenticate, isUnknown, parseTokenFile } from './authentication.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { ANONYMOUS, identityOf } from '../request/identity.ts';

const BOT = identityOf('bot', []);

function certificate(trusted: boolean, uids: readonly string[] = []): PeerCertificate {
  return {
    raw: Buffer.alloc(0),
    commonName: 'jane',
    organizations: ['ops'],
    uids,
    trusted,
    failure: trusted ? '' : 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    validFromMs: 0,
    validToMs: 1,
  };
}

function ask(connection: ConnectionModel, headers: Record<string, string> = {}, nowMs = 0) {
  const exchange = new ExchangeModel('GET', '/api', undefined, headers, connection);
  const readToken = (token: string) => (token === 'good' ? BOT : null);
  const found = authenticate(exchange, readToken, null, () => nowMs);
  assert.ok(!isUnknown(found));
  return found;
}

test('a client certificate of this cluster is its user, one of another cluster nobody', () => {
  const own = ask(new ConnectionModel(false, certificate(true)));
  assert.deepEqual([own?.user, own?.groups], ['jane', ['ops', 'system:authenticated']]);
  assert.equal(ask(new ConnectionModel(false, certificate(false))), null);
});

test('a certificate proves nothing from the moment on that it has expired', () => {
  const connection = new ConnectionModel(false, certificate(true));
  assert.equal(ask(connection, {}, 1)?.user, 'jane');
  assert.equal(ask(connection, {}, 2), null);
  assert.equal(ask(connection, { authorization: 'Bearer good' }, 2)?.user, 'bot');
});

test('a client certificate tells which it is, and the uid of its user', () => {
  const own = ask(new ConnectionModel(false, certificate(true, ['u-1'])));
  const id = 'X509SHA256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  assert.deepEqual(own?.extra, { 'authentication.kubernetes.io/credential-id': [id] });
  assert.equal(own.uid, 'u-1');
  for (const uids of [[''], ['u-1', 'u-2']]) {
    assert.equal(ask(new ConnectionModel(false, certificate(true, uids))), null);
  }
});

test('tokens are read, wrong ones refused, and nothing at all is anonymous', () => {
  const plain = new ConnectionModel(false);
  assert.equal(ask(plain, { authorization: 'Bearer good' })?.user, 'bot');
  assert.equal(ask(plain, { authorization: 'Bearer bad' }), null);
  // upstream looks at the first word after the scheme, and at no other scheme
  assert.equal(ask(plain, { authorization: 'bearer good night' })?.user, 'bot');
  for (const authorization of ['', 'Basic eDp5', 'Bearer', 'Bearer  good']) {
    assert.equal(ask(plain, { authorization }), ANONYMOUS);
  }
  assert.equal(ask(plain), ANONYMOUS);
  assert.equal(ask(new ConnectionModel(true))?.isMaster, true);
});

test('a token file has a user, a uid and groups per line', () => {
  const tokens = parseTokenFile('t1,ann,,"system:masters,dev"\n\nt2,bob,7\n');
  assert.deepEqual(tokens.get('t1')?.groups, ['system:masters', 'dev', 'system:authenticated']);
  assert.equal(tokens.get('t1')?.isMaster, true);
  assert.equal(tokens.get('t2')?.uid, '7');
  assert.throws(() => parseTokenFile('t1,ann\n'), /line 1 has 2 columns/);
});

test('who is called anonymous, or unauthenticated, is not among the authenticated', () => {
  assert.deepEqual(identityOf('system:anonymous', ['a']).groups, ['a']);
  const groups = ['system:unauthenticated'];
  assert.deepEqual(identityOf('ann', groups).groups, groups);
});

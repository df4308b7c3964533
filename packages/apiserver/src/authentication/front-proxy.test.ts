import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { issueCertificate } from '../pki/certificates.ts';
import { FrontProxy } from './front-proxy.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

test('a certificate counts by the authority that its chain ends in, and by its uses', () => {
  const about = {
    notBeforeMs: NOW_MS,
    notAfterMs: NOW_MS + 60_000,
    serial: Buffer.from('12345678'),
  };
  const root = { ...about, commonName: 'users', use: 'authority' } as const;
  const users = issueCertificate(root, null);
  const proxies = issueCertificate({ ...root, commonName: 'proxies' }, null);
  const between = issueCertificate({ ...root, commonName: 'between' }, users);
  const rawOf = (pem: string): Buffer => new X509Certificate(pem).raw;
  const judge = new FrontProxy({
    authorities: [proxies.certificate],
    userAuthorities: [users.certificate],
    names: ['front'],
    ...{ userFields: [], uidFields: [], groupFields: [], extraPrefixes: [] },
  });
  const isUser = (
    use: 'client' | 'server',
    issuer: typeof users,
    more: { failure?: string; issuers?: readonly string[] } = {},
  ): boolean => {
    const leaf = issueCertificate({ ...about, commonName: 'ann', use, names: ['a'] }, issuer);
    const { failure = '', issuers = [] } = more;
    const names = { commonName: 'ann', organizations: [], uids: [] };
    return judge.judge({
      ...{ ...names, raw: rawOf(leaf.certificate), trusted: failure === '', failure },
      ...{ issuers: () => issuers.map(rawOf), validFromMs: 0, validToMs: 1 },
    }).isUser;
  };
  assert.ok(isUser('client', between, { issuers: [between.certificate, users.certificate] }));
  assert.ok(!isUser('client', between, { issuers: [proxies.certificate] }));
  const failure = 'INVALID_PURPOSE';
  assert.ok(isUser('client', users, { failure }), 'OpenSSL wants more of it');
  assert.ok(!isUser('server', users, { failure }));
  assert.ok(!isUser('client', proxies, { failure }));
  assert.ok(!isUser('client', users, { failure: 'CERT_HAS_EXPIRED' }));
  judge.trust([users.certificate], [proxies.certificate]);
  assert.ok(isUser('client', proxies));
  assert.ok(!isUser('client', users));
});

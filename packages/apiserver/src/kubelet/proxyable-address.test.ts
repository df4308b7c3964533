import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isProxyable, NOT_ALLOWED, resolveProxyable } from './proxyable-address.ts';

test('addresses of this machine and of its link are no goal of a proxy', () => {
  const goals = ['10.0.0.1', '128.0.0.1', '192.168.1.1', '2001:db8::1', '::ffff:10.0.0.1'];
  for (const address of goals) assert(isProxyable(address), address);
  for (const address of [
    ...['127.0.0.1', '127.255.0.9', '0.0.0.0', '169.254.169.254', '224.0.0.1', '239.1.1.1'],
    ...['255.255.255.255', '::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::FFFF:7F00:1'],
    ...['fe80::1%eth0', 'febf::1', 'ff02::1', '::ffff:169.254.1.1', 'localhost', ''],
  ]) {
    assert(!isProxyable(address), address);
  }
});

test('a name is looked up before it is judged', async () => {
  const found = (host: string): Promise<unknown> =>
    new Promise((resolve) => resolveProxyable(host, resolve));
  assert.deepEqual(await found('10.0.0.1'), { address: '10.0.0.1' });
  for (const name of ['localhost', 'LOCALHOST', '2130706433', '0x7f000001', '127.1']) {
    assert.deepEqual(await found(name), { why: NOT_ALLOWED }, name);
  }
});

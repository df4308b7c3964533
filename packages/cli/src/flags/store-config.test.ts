import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configTextArguments } from './store-config.ts';

test('a configuration file of etcd becomes flags', () => {
  const text = `
name: one
data-dir: /var/lib/etcd
listen-client-urls: https://127.0.0.1:2379,https://10.0.0.1:2379
quota-backend-bytes: 0
wal-dir:
auto-tls: false
client-transport-security:
  cert-file: a.crt
  client-cert-auth: true
peer-transport-security:
  cert-file: b.crt
cors: [https://a.example, https://b.example]
`;
  assert.deepEqual(configTextArguments('x.yaml', text), [
    '--name=one',
    '--data-dir=/var/lib/etcd',
    '--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379',
    '--quota-backend-bytes=0',
    '--auto-tls=false',
    '--cert-file=a.crt',
    '--client-cert-auth=true',
    '--peer-cert-file=b.crt',
    '--cors=https://a.example,https://b.example',
  ]);
  assert.deepEqual(configTextArguments('x.json', '{"name":"j"}'), ['--name=j']);
  assert.deepEqual(configTextArguments('x.yaml', ''), []);
});

test('names and numbers that are others in the file become those of flags', () => {
  const text = `
watch-progress-notify-interval: 600000000000
heartbeat-interval: 100
client-transport-security: { allowed-cn: a }
peer-transport-security: { allowed-hostname: h, skip-client-san-verification: true }
socket-options: { reuse-port: true }
`;
  assert.deepEqual(configTextArguments('x.yaml', text), [
    '--watch-progress-notify-interval=600000000000ns',
    '--heartbeat-interval=100',
    '--client-cert-allowed-cn=a',
    '--peer-cert-allowed-hostname=h',
    '--peer-skip-client-san-verification=true',
    '--socket-reuse-port=true',
  ]);
});

test('what is no configuration is told with its file', () => {
  assert.throws(() => configTextArguments('x.yaml', '- a'), /x.yaml is no list of "flag: value"/);
  assert.throws(() => configTextArguments('x.yaml', 'a: [}'), /--config-file: x.yaml: /);
  assert.throws(() => configTextArguments('x.yaml', 'a: {b: c}'), /a is a section that no flag/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseKubeconfig, unixEndpoint, type Endpoint } from './kubeconfig.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const FILES: Readonly<Record<string, string>> = { '/etc/k/ca.pem': 'file ca', '/key.pem': 'a key' };

function parse(text: string, context?: string): ReturnType<typeof parseKubeconfig> {
  const readFile = (path: string): string => {
    const found = FILES[path];
    if (found === undefined) throw new Error(`ENOENT: ${path}`);
    return found;
  };
  const more = context === undefined ? {} : { context };
  return parseKubeconfig({ text, name: 'config', directory: '/etc/k', readFile, ...more });
}

function endpointOf(text: string, context?: string): Endpoint {
  const result = parse(text, context);
  assert.ok(result.ok, result.ok ? '' : result.message);
  return result.endpoint;
}

function config(cluster: string, user: string): string {
  return `
apiVersion: v1
kind: Config
current-context: one
contexts:
- name: one
  context: {cluster: c, user: u, namespace: team}
- name: bare
  context: {cluster: c}
- name: broken
  context: {cluster: missing}
clusters:
- name: c
  cluster: ${cluster}
users:
- name: u
  user: ${user}
`;
}

test('a kubeconfig with everything in files and inline is read', () => {
  const data = Buffer.from(PEM).toString('base64');
  const endpoint = endpointOf(
    config(
      '{server: "https://10.0.0.1:6443/prefix/", certificate-authority: ca.pem, tls-server-name: k}',
      `{client-certificate-data: ${data}, client-key: /key.pem, tokenFile: t}`,
    ),
  );
  assert.deepEqual(endpoint, {
    server: 'https://10.0.0.1:6443/prefix/',
    address: { kind: 'tcp', host: '10.0.0.1', port: 6443 },
    pathPrefix: '/prefix',
    tls: { ca: 'file ca', cert: PEM, key: 'a key', isVerified: true, serverName: 'k' },
    token: '',
    tokenFile: '/etc/k/t',
    namespace: 'team',
  });
});

test('another context can be chosen, and a context needs no user', () => {
  const text = config('{server: "https://[::1]", insecure-skip-tls-verify: true}', '{token: abc}');
  assert.equal(endpointOf(text).token, 'abc');
  const bare = endpointOf(text, 'bare');
  assert.equal(bare.token, '');
  assert.equal(bare.namespace, 'default');
  assert.deepEqual(bare.address, { kind: 'tcp', host: '::1', port: 443 });
  assert.equal(bare.tls?.isVerified, false);
});

test('a server may be a Unix socket or cleartext', () => {
  const unix = endpointOf(config('{server: "unix:///run/megaplane.sock"}', '{}'));
  assert.deepEqual({ ...unix, namespace: 'default' }, unixEndpoint('/run/megaplane.sock'));
  assert.equal(endpointOf(config('{server: "http://localhost:8080"}', '{}')).tls, null);
});

test('what is wrong is said with the place', () => {
  const good = '{server: "https://a"}';
  const cases: [string, string | undefined, RegExp][] = [
    ['a: [', undefined, /^config: is no YAML/],
    ['hello', undefined, /no mapping/],
    ['{}', undefined, /no current-context/],
    [config(good, '{}'), 'none', /no context is called "none"; there are: one, bare, broken/],
    [config(good, '{}'), 'broken', /no cluster is called "missing"; there are: c/],
    [config('{}', '{}'), undefined, /has no server/],
    [config('{server: "ftp://a"}', '{}'), undefined, /ftp:\/\/a is no https/],
    [config(good, '{exec: {command: x}}'), undefined, /credentials by exec are not supported/],
    [config(good, '{client-certificate: x.pem}'), undefined, /cannot read x.pem .*\/etc\/k\/x.pem/],
    [config(good, '{client-key: /key.pem}'), undefined, /must be given together/],
    [config(good, '{client-key-data: "!"}'), undefined, /client-key-data is no base64/],
    [config('{server: a, proxy-url: "http://p"}', '{}'), undefined, /proxy-url/],
  ];
  for (const [text, context, expected] of cases) {
    const result = parse(text, context);
    assert.match(result.ok ? 'it was read' : result.message, expected);
  }
});

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect as connectPlain } from 'node:net';
import { request } from 'node:https';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { type OpenStore, openStore } from '@megaplane/store/open';
import type { AuthOptions } from '../auth/service/auth.ts';
import { has } from '../testing/peer.sim.ts';
import { revokedSerials } from './revoked.ts';
import { type EtcdServer, serveEtcd } from './run-store.ts';
import { type TlsFlags, cipherList, openTls } from './tls-files.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const SKIP = hasOpenssl ? false : 'needs openssl: apt-get install openssl';

let dir = '';
const at = (name: string): string => join(dir, name);

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
}

function issue(
  name: string,
  subject: string,
  hosts: string,
  { authority = 'ca', days = 30, usage = '' } = {},
): void {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-new',
    ...curve,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.csr`,
    '-subj',
    subject,
  );
  writeFileSync(at(`${name}.ext`), `subjectAltName=${hosts}\n${usage}`);
  const signer = ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`, '-CAcreateserial'];
  const extra = ['-days', String(days), '-extfile', `${name}.ext`];
  openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signer, ...extra);
}

function makeAuthority(name: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
  openssl('req', '-x509', ...key, ...files, '-days', '30', '-subj', `/CN=${name}`);
}

/** A list of the authority with the given certificates on it. */
function makeList(revoked: readonly string[]): void {
  writeFileSync(at('index.txt'), '');
  writeFileSync(at('crlnumber'), '01\n');
  const body = 'database=index.txt\ncrlnumber=crlnumber\ndefault_md=sha256\ndefault_crl_days=30\n';
  writeFileSync(at('ca.cnf'), `[ca]\ndefault_ca=d\n[d]\n${body}`);
  const signer = ['ca', '-config', 'ca.cnf', '-keyfile', 'ca.key', '-cert', 'ca.crt'];
  for (const name of revoked) openssl(...signer, '-revoke', `${name}.crt`);
  openssl(...signer, '-gencrl', '-out', 'list.pem');
}

before(() => {
  if (!hasOpenssl) return;
  dir = mkdtempSync(join(tmpdir(), 'megaplane-tls-'));
  makeAuthority('ca');
  makeAuthority('other');
  issue('server', '/CN=server', 'DNS:localhost,IP:127.0.0.1');
  issue('renewed', '/CN=renewed', 'DNS:localhost,IP:127.0.0.1');
  issue('client', '/CN=client', 'DNS:client.example');
  issue('second', '/CN=second', 'DNS:second.example');
  issue('foreign', '/CN=client', 'DNS:client.example', { authority: 'other' });
  issue('expired', '/CN=client', 'DNS:client.example', { days: -1 });
  issue('serving', '/CN=client', 'DNS:client.example', { usage: 'extendedKeyUsage=serverAuth\n' });
  copyFileSync(at('server.crt'), at('tls.crt'));
  copyFileSync(at('server.key'), at('tls.key'));
  makeList([]);
});

after(() => rmSync(dir, { recursive: true, force: true }));

interface Served {
  readonly opened: OpenStore;
  readonly server: EtcdServer;
  readonly warnings: string[];
  close(): Promise<void>;
}

async function serve(more: Partial<TlsFlags>, auth: AuthOptions = {}): Promise<Served> {
  const warnings: string[] = [];
  const flags = { certFile: at('tls.crt'), keyFile: at('tls.key'), ...more };
  const source = openTls(flags, (message) => warnings.push(message));
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const currentTls = (): ReturnType<typeof source.current> => source.current();
  const listen = [{ port: 0, tls: currentTls(), currentTls }];
  const server = await serveEtcd(opened, { listen, auth });
  const close = async (): Promise<void> => {
    await server.close();
    await opened.close();
  };
  return { opened, server, warnings, close };
}

/** The answer to GET /health over a new connection, or `refused`; and who answered. */
async function health(served: Served, client: string, more: ConnectionOptions = {}) {
  const port = served.server.addresses[0]?.port ?? 0;
  const own = { cert: readFileSync(at(`${client}.crt`)), key: readFileSync(at(`${client}.key`)) };
  const ca = readFileSync(at('ca.crt'));
  const options = { host: '127.0.0.1', port, ca, ...(client === 'ca' ? {} : own), ...more };
  return await new Promise<string>((resolve) => {
    let text = '';
    let name = '';
    const socket: TLSSocket = connect(options, () => {
      name = String(socket.getPeerCertificate().subject.CN);
      socket.write('GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    });
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () =>
      resolve(text.startsWith('HTTP/1.1 200') ? `200 from ${name}` : 'refused'),
    );
  });
}

test(
  'clients need a certificate of the authority, for clients, in its time',
  { skip: SKIP },
  async () => {
    const served = await serve({ trustedCaFile: at('ca.crt') });
    try {
      assert.equal(await health(served, 'client'), '200 from server');
      for (const wrong of ['foreign', 'expired', 'serving', 'other', 'ca']) {
        assert.equal(await health(served, wrong), 'refused', wrong);
      }
      assert.equal(await health(served, 'client'), '200 from server');
    } finally {
      await served.close();
    }
  },
);

test('clients notice a server of another authority or name', { skip: SKIP }, async () => {
  const served = await serve({});
  try {
    const other = { ca: readFileSync(at('other.crt')) };
    assert.equal(await health(served, 'client', other), 'refused');
    assert.equal(await health(served, 'client', { servername: 'bad.example' }), 'refused');
    assert.equal(await health(served, 'client', { servername: 'localhost' }), '200 from server');
  } finally {
    await served.close();
  }
});

/** What a port says to bytes of its own choice, until it closes the connection. */
async function rawAnswer(port: number, bytes: string): Promise<string> {
  return await new Promise((resolve) => {
    let text = '';
    const socket = connectPlain(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
  });
}

test(
  'plain requests to a TLS port, and TLS to a plain one, get nothing',
  { skip: SKIP },
  async () => {
    const served = await serve({ trustedCaFile: at('ca.crt') });
    const plain = await serveEtcd(served.opened, { listen: [{ port: 0 }] });
    const secure = served.server.addresses[0]?.port ?? 0;
    const open = plain.addresses[0]?.port ?? 0;
    try {
      const requests = [
        'GET /health HTTP/1.1\r\nhost: x\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      ];
      for (const request of requests) {
        assert.equal(await rawAnswer(secure, request), '');
      }
      const hello = '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00';
      assert.doesNotMatch(await rawAnswer(open, hello), / 200 /);
      assert.equal(await health(served, 'client'), '200 from server');
      assert.match(
        await rawAnswer(
          open,
          `${requests[0]?.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')}`,
        ),
        / 200 /,
      );
    } finally {
      await plain.close();
      await served.close();
    }
  },
);

test('changed files count from the next connection on', { skip: SKIP }, async () => {
  const flags = { trustedCaFile: at('ca.crt'), clientCrlFile: at('list.pem') };
  const served = await serve(flags);
  try {
    assert.equal(await health(served, 'client'), '200 from server');
    writeFileSync(at('tls.crt'), '-----BEGIN half');
    assert.equal(await health(served, 'client'), '200 from server');
    assert.match(
      served.warnings[0] ?? '',
      /certificates stay as they were: --cert-file: .*tls.crt/,
    );
    copyFileSync(at('renewed.crt'), at('tls.crt'));
    copyFileSync(at('renewed.key'), at('tls.key'));
    assert.equal(await health(served, 'client'), '200 from renewed');
    makeList(['client']);
    assert.equal(await health(served, 'client'), 'refused');
    assert.equal(await health(served, 'second'), '200 from renewed');
  } finally {
    await served.close();
    copyFileSync(at('server.crt'), at('tls.crt'));
    copyFileSync(at('server.key'), at('tls.key'));
    makeList([]);
  }
});

test('common names and hosts of clients can be listed', { skip: SKIP }, async () => {
  const byName = await serve({ trustedCaFile: at('ca.crt'), allowedNames: ['a', 'second'] });
  const byHost = await serve({ trustedCaFile: at('ca.crt'), allowedHosts: ['client.example'] });
  try {
    assert.equal(await health(byName, 'client'), 'refused');
    assert.equal(await health(byName, 'second'), '200 from server');
    assert.equal(await health(byHost, 'client'), '200 from server');
    assert.equal(await health(byHost, 'second'), 'refused');
  } finally {
    await byName.close();
    await byHost.close();
  }
});

const SKIP_CTL =
  SKIP !== false || has('etcdctl') ? SKIP : 'needs etcdctl: apt-get install etcd-client';

/** Status and body of a call as JSON, with the certificate of `client`. */
function json(port: number, path: string, body: object, token = ''): Promise<string> {
  const files = { ca: readFileSync(at('ca.crt')), cert: readFileSync(at('client.crt')) };
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        ...{ host: '127.0.0.1', port, path: `/v3/${path}`, method: 'POST' },
        ...{ ...files, key: readFileSync(at('client.key')), rejectUnauthorized: false },
        headers: token === '' ? {} : { authorization: token },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(`${response.statusCode} ${text}`));
      },
    );
    asked.on('error', reject).end(JSON.stringify(body));
  });
}

test('the common name of a certificate is a user', { skip: SKIP_CTL }, async () => {
  const auth = { usesCertificates: true, bcryptCost: 4 };
  const served = await serve({ trustedCaFile: at('ca.crt') }, auth);
  const etcdctl = (client: string, line: string): Promise<string> => {
    const endpoint = `https://127.0.0.1:${served.server.addresses[0]?.port}`;
    const tls = ['--cacert', at('ca.crt'), '--cert', at(`${client}.crt`)];
    const args = [...tls, '--key', at(`${client}.key`), '--endpoints', endpoint];
    const env = { ...process.env, ETCDCTL_API: '3' };
    return new Promise((resolve) => {
      execFile('etcdctl', [...args, ...line.split(' ')], { env }, (_error, stdout, stderr) => {
        resolve(`${stdout}${stderr}`.trim());
      });
    });
  };
  try {
    for (const line of [
      'user add root:secret',
      'user add client --no-password',
      'role add r',
      'role grant-permission r readwrite k',
      'user grant-role client r',
      'auth enable',
    ]) {
      assert.doesNotMatch(await etcdctl('second', line), /Error/, line);
    }
    assert.equal(await etcdctl('client', 'put k v'), 'OK');
    assert.equal(await etcdctl('client', 'get k'), 'k\nv');
    assert.match(await etcdctl('client', 'put other v'), /permission denied/);
    // A name that is no user may do nothing; a token counts before the certificate.
    assert.match(await etcdctl('second', 'get k'), /permission denied/);
    assert.equal(await etcdctl('second', '--user root:secret get k'), 'k\nv');
    // But not of what comes as JSON: there only a token counts, as with etcd.
    const port = served.server.addresses[0]?.port ?? 0;
    const text = '"etcdserver: user name is empty"';
    const refused = `400 {"error":${text},"message":${text},"code":3}`;
    const put = { key: 'aw==', value: 'dg==' };
    assert.equal(await json(port, 'kv/range', { key: 'aw==' }), refused);
    assert.equal(await json(port, 'kv/put', put), refused);
    const login = await json(port, 'auth/authenticate', { name: 'root', password: 'secret' });
    const token = /"token":"([^"]+)"/.exec(login)?.[1] ?? '';
    assert.match(await json(port, 'kv/range', { key: 'aw==' }, token), /^200 .*"dg=="/);
    assert.match(await json(port, 'kv/range', { key: 'aw==' }, `Bearer ${token}`), /^200 .*"dg=="/);
  } finally {
    await served.close();
  }
});

test('versions and suites of TLS can be limited', { skip: SKIP }, async () => {
  const newest = await serve({ minVersion: 'TLSv1.3' });
  const suite = 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384';
  const one = await serve({ maxVersion: 'TLSv1.2', ciphers: cipherList([suite]) });
  try {
    assert.equal(await health(newest, 'client', { maxVersion: 'TLSv1.2' }), 'refused');
    assert.equal(await health(newest, 'client'), '200 from server');
    const other = { ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' };
    assert.equal(await health(one, 'client', { maxVersion: 'TLSv1.2', ...other }), 'refused');
    assert.equal(await health(one, 'client'), '200 from server');
  } finally {
    await newest.close();
    await one.close();
  }
});

test('wrong files are told by flag, path and reason', { skip: SKIP }, () => {
  const warn = (): void => {};
  const good = { certFile: at('tls.crt'), keyFile: at('tls.key') };
  const wrong: readonly (readonly [Partial<TlsFlags>, RegExp])[] = [
    [{ certFile: at('none') }, /^--cert-file: ENOENT/],
    [{ certFile: at('ca.cnf') }, /^--cert-file: .*ca.cnf cannot be used/],
    [{ keyFile: at('client.key') }, /^--key-file: .*client.key is not the key of .*tls.crt/],
    [{ trustedCaFile: at('ca.key') }, /^--trusted-ca-file: .*ca.key cannot be used/],
    [
      { trustedCaFile: at('ca.crt'), clientCrlFile: at('ca.crt') },
      /^--client-crl-file: .*ca.crt is no certificate revocation list/,
    ],
  ];
  for (const [more, pattern] of wrong) {
    assert.throws(() => openTls({ ...good, ...more }, warn), { message: pattern });
  }
  assert.throws(() => cipherList(['TLS_NOTHING']), /--cipher-suites: TLS_NOTHING is not known/);
});

test('bytes that are no revocation list give none, whatever they are', { skip: SKIP }, () => {
  makeList(['client', 'second']);
  const list = readFileSync(at('list.pem'));
  assert.equal(revokedSerials(list)?.size, 2);
  const body = /-----BEGIN X509 CRL-----([^-]+)/.exec(list.toString())?.[1] ?? '';
  const der = Buffer.from(body, 'base64');
  assert.equal(revokedSerials(der)?.size, 2);
  for (let size = 0; size < der.length; size++) {
    assert.equal(revokedSerials(der.subarray(0, size)), null);
  }
});

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { AUTH_DOCUMENT } from '@megaplane/etcd/auth/auth-state';
import { openStore } from '@megaplane/store/open';
import { startStore } from './store-program.ts';
import type { StoreProgramOptions } from './store-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-store-tls-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const warnings: string[] = [];
const OPTIONS = {
  ...{ name: 'default', listenClientUrls: 'http://127.0.0.1:0', quotaBackendBytes: 0 },
  ...{ maxRequestBytes: 1_572_864, maxTxnOps: 128, watchProgressNotifyInterval: 600_000 },
  ...{ base: 'fsync', prefixes: [], cors: [], metrics: 'basic', maxConcurrentStreams: 10 },
  ...{ maxConnections: 10, grpcKeepaliveInterval: 7_200_000, grpcKeepaliveTimeout: 20_000 },
  ...{ authToken: 'simple', authTokenTtl: 300, bcryptCost: 10, selfSignedCertValidity: 1 },
  ...{ autoCompactionMode: 'periodic', autoCompactionRetention: '0' },
  warn: (message: string) => void warnings.push(message),
};

let count = 0;
function options(more: object): StoreProgramOptions {
  const dataDir = join(folder, `data${count++}`);
  return { ...OPTIONS, dataDir, ...more } as unknown as StoreProgramOptions;
}

test('what a network could use without a certificate is refused, and why', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, 'no certificate');
  const both = { certFile: file, keyFile: file };
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ listenClientUrls: 'http://0.0.0.0:0' }, /a plain port is open to everybody/],
    [{ listenClientUrls: 'http://[::]:0' }, /a plain port is open to everybody/],
    [
      { listenClientUrls: 'https://0.0.0.0:0', autoTls: true },
      /https without client certificates is open to everybody.*--client-cert-auth/,
    ],
    [{ listenClientUrls: 'https://127.0.0.1:0' }, /https needs --cert-file and --key-file/],
    [{ clientCertAuth: true }, /--client-cert-auth: needs --trusted-ca-file/],
    [{ clientCrlFile: file }, /--client-crl-file: needs --trusted-ca-file/],
    [{ clientCertAllowedCn: ['a'] }, /--client-cert-allowed-cn: needs --trusted-ca-file/],
    [
      { tlsMinVersion: 'TLSv1.3', tlsMaxVersion: 'TLSv1.2' },
      /--tls-min-version: TLS1.3 is above --tls-max-version/,
    ],
    [
      { tlsMinVersion: 'TLSv1.3', cipherSuites: ['TLS_AES_128_GCM_SHA256'] },
      /--cipher-suites: has no meaning/,
    ],
    [
      { listenClientUrls: 'https://127.0.0.1:0', ...both, cipherSuites: ['X'] },
      /--cipher-suites: X is not known/,
    ],
    [{ listenClientUrls: 'https://127.0.0.1:0', ...both }, /--cert-file: .* cannot be used/],
    [
      { listenClientUrls: 'https://127.0.0.1:0', certFile: file },
      /--cert-file and --key-file: both are needed/,
    ],
    [{ authToken: 'magic' }, /--auth-token: magic is neither simple nor jwt/],
    [{ authToken: 'jwt,sign-method=XX' }, /sign-method=XX is not known/],
    [{ authToken: 'jwt,sign-method=RS256' }, /priv-key, or pub-key to verify only, is needed/],
    [{ listenClientUrls: 'ftp://127.0.0.1' }, /--listen-client-urls: ftp:.* is no URL/],
  ];
  for (const [more, pattern] of wrong) {
    await assert.rejects(startStore(options(more)), { message: pattern }, JSON.stringify(more));
  }
});

test('a certificate of its own making is private, and kept over restarts', async () => {
  const own = options({ listenClientUrls: 'https://127.0.0.1:0', autoTls: true });
  const path = join(own.dataDir, 'fixtures', 'client', 'cert.pem');
  const serials: string[] = [];
  for (let round = 0; round < 2; round++) {
    const store = await startStore(own);
    assert.match(store.listens, /^https:\/\/127\.0\.0\.1:\d+$/);
    const certificate = new X509Certificate(readFileSync(path));
    assert.equal(certificate.checkIP('127.0.0.1'), '127.0.0.1');
    assert.equal(certificate.checkHost('localhost'), 'localhost');
    serials.push(certificate.serialNumber);
    await store.stop();
  }
  assert.equal(serials[0], serials[1]);
  assert.equal(statSync(join(own.dataDir, 'fixtures', 'client', 'key.pem')).mode & 0o777, 0o600);
});

test('https with passwords may be open to a network once users are enabled', async () => {
  const network = { listenClientUrls: 'https://0.0.0.0:0', autoTls: true };
  const own = options(network);
  const opened = openStore({ dataDir: own.dataDir, durability: 'fsync', prefixes: [] });
  const users = [{ name: 'root', hash: '', noPassword: true, roles: ['root'] }];
  const state = { enabled: true, revision: 2, users, roles: [] };
  opened.store.setDocument(AUTH_DOCUMENT, Buffer.from(JSON.stringify(state)));
  await opened.close();
  const store = await startStore(own);
  await store.stop();
});

test('metrics may be open to a network, with a warning', async () => {
  const store = await startStore(options({ listenMetricsUrls: 'http://0.0.0.0:0' }));
  await store.stop();
  assert.match(warnings.join('\n'), /http:\/\/0\.0\.0\.0:0: everybody .* may read metrics/);
});

test('plain HTTP and https of one address are served on one port', async () => {
  const where = `127.0.0.1:${await freePort()}`;
  const listenClientUrls = `http://${where},https://${where}`;
  const store = await startStore(options({ listenClientUrls, autoTls: true }));
  try {
    assert.equal(store.listens, `http://${where}, https://${where}`);
    const [host = '', port = ''] = where.split(':');
    for (const ca of [undefined, false] as const) {
      const tls = ca === undefined ? {} : { tls: { insecure: true } };
      const client = grpcClient(connect({ host, port: Number(port), ...tls }));
      const answered = new Promise<string>((resolve) => {
        client.unary('/etcdserverpb.Maintenance/Status', Buffer.alloc(0), {
          onMessage: (_call, bytes, start, end) => resolve(bytes.latin1Slice(start, end)),
          onStatus: (_call, { code, message }) => resolve(`${code} ${message}`),
        });
      });
      assert.match(await answered, /3\.6\.\d+/);
      client.connection.destroy();
    }
    const health = await fetch(`http://${where}/health`);
    assert.match(await health.text(), /"health":"true"/);
    const secure = await new Promise<string>((resolve, reject) => {
      get(`https://${where}/health`, { rejectUnauthorized: false }, (response) => {
        response.setEncoding('utf8').on('data', resolve);
      }).on('error', reject);
    });
    assert.match(secure, /"health":"true"/);
  } finally {
    await store.stop();
  }
});

test('a client that says nothing on such a port, or leaves, harms nobody', async () => {
  const where = `127.0.0.1:${await freePort()}`;
  const listenClientUrls = `https://${where},http://${where}`;
  const store = await startStore(options({ listenClientUrls, autoTls: true }));
  const port = Number(where.split(':')[1]);
  try {
    const silent = connectSocket(port, '127.0.0.1');
    const left = connectSocket(port, '127.0.0.1', () => left.end());
    const reset = connectSocket(port, '127.0.0.1', () => reset.resetAndDestroy());
    await once(left, 'close');
    const nonsense = connectSocket(port, '127.0.0.1', () => nonsense.write('\x16nonsense'));
    nonsense.on('error', () => undefined).resume();
    await once(nonsense, 'close');
    assert.equal((await fetch(`http://${where}/health`)).status, 200);
    silent.destroy();
  } finally {
    await store.stop();
  }
});

test('a port that is the usual one of its scheme is listened on, as it is written', async () => {
  for (const url of ['http://127.0.0.1:80', 'http://127.0.0.1:080/']) {
    try {
      const service = await startStore(options({ listenClientUrls: url }));
      const { listens } = service;
      await service.stop();
      assert.equal(listens, 'http://127.0.0.1:80');
    } catch (error) {
      // another listens there, or only root may
      assert.match(String(error), /EACCES|EADDRINUSE/);
      assert.equal((error as { readonly port?: number }).port, 80);
    }
  }
});

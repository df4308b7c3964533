import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connect, type ConnectionOptions } from 'node:tls';
import { listen } from '@megaplane/wire/listener';
import { issueCertificate, type KeyAndCertificate } from '../pki/certificates.ts';
import { servingFiles, tlsRules, type ServingFlags } from './serving-flags.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-serving-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function pair(name: string): KeyAndCertificate {
  const nowMs = Date.now();
  const made = issueCertificate(
    {
      commonName: name,
      use: 'server',
      names: [name],
      serial: Buffer.alloc(16, 7),
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3_600_000,
    },
    null,
  );
  writeFileSync(join(folder, `${name}.crt`), made.certificate);
  writeFileSync(join(folder, `${name}.key`), made.key);
  return made;
}

const usual = pair('usual.example');
pair('other.example');
pair('*.wild.example');

/** What clients see of a server with these flags. */
async function seen(
  flags: ServingFlags,
  ...clients: readonly ConnectionOptions[]
): Promise<readonly string[]> {
  const tls = { ...tlsRules(flags), cert: usual.certificate, key: usual.key };
  const listener = await listen({ port: 0, tls, handler: () => {} });
  try {
    const { port } = listener.address;
    return await Promise.all(clients.map((options) => shown(port, options)));
  } finally {
    await listener.close();
  }
}

function shown(port: number, options: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    socket.on('error', () => resolve('refused'));
    socket.on('secureConnect', () => {
      const cipher = socket.getCipher().standardName;
      const name = String(socket.getPeerX509Certificate()?.subject);
      resolve(`${socket.getProtocol()} ${cipher} ${name}`);
      socket.destroy();
    });
  });
}

test('versions and suites are those of the flags, and TLS 1.3 keeps its own', async () => {
  const old = { maxVersion: 'TLSv1.2' } as const;
  assert.deepEqual(await seen({ tlsMinVersion: 'TLSv1.3' }, old), ['refused']);
  const suite = 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384';
  const found = await seen(
    { tlsCipherSuites: [suite] },
    old,
    { ...old, ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    {},
  );
  assert.equal(found[0], `TLSv1.2 ${suite} CN=usual.example`);
  assert.equal(found[1], 'refused');
  assert.match(found[2] ?? '', /^TLSv1\.3 TLS_AES/);
});

test('curves are those of the flag', async () => {
  const flags = { tlsCurvePreferences: ['P-384'] };
  const found = await seen(flags, { ecdhCurve: 'P-256' }, { ecdhCurve: 'P-384' });
  assert.equal(found[0], 'refused');
  assert.match(found[1] ?? '', /CN=usual\.example/);
});

test('a client that asks for a name is shown the certificate of that name', async () => {
  const files = (name: string): string => `${join(folder, name)}.crt,${join(folder, name)}.key`;
  const tlsSniCertKey = [
    files('other.example'),
    files('*.wild.example'),
    `${files('other.example')}:Named.Example`,
  ];
  const names = ['OTHER.example', 'a.wild.example', 'named.example', 'a.b.wild.example'];
  const found = await seen({ tlsSniCertKey }, ...names.map((servername) => ({ servername })), {});
  assert.deepEqual(
    found.map((text) => text.split(' ')[2]),
    ['CN=other.example', 'CN=*.wild.example', ...['other', 'usual', 'usual'].map(cn)],
  );
});

test('clients of an intermediate authority are known under every name of the server', async () => {
  const nowMs = Date.now();
  const times = { notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 3_600_000 };
  const issue = (
    commonName: string,
    use: 'authority' | 'client',
    issuer: KeyAndCertificate | null,
  ): KeyAndCertificate =>
    issueCertificate({ commonName, use, serial: Buffer.from(commonName), ...times }, issuer);
  const root = issue('a root', 'authority', null);
  const between = issue('between', 'authority', root);
  const client = issue('a client', 'client', between);
  const stranger = issue('a client', 'client', root);
  const file = join(folder, 'other.example');
  const flags = { tlsSniCertKey: [`${file}.crt,${file}.key`] };
  const tls = {
    ...{ ...tlsRules(flags), cert: usual.certificate, key: usual.key },
    // without its root: an anchor of its own, as in Go
    clientCa: between.certificate,
  };
  const listener = await listen({
    ...{ port: 0, tls },
    handler: (exchange) => {
      const peer = exchange.connection.peerCertificate();
      exchange.respond(200, 'text/plain', peer?.trusted === true ? 'somebody' : 'nobody');
    },
  });
  const askedAs = async ({ key, certificate: cert }: KeyAndCertificate, servername?: string) => {
    const name = servername === undefined ? {} : { servername };
    const socket = connect({
      ...{ port: listener.address.port, host: '127.0.0.1', rejectUnauthorized: false },
      ...{ key, cert, ...name },
    });
    socket.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    let text = '';
    for await (const piece of socket) text += String(piece);
    return text.split('\r\n\r\n')[1];
  };
  try {
    for (const turn of ['as it began', 'with new files']) {
      for (const name of [undefined, 'other.example', 'unknown.example']) {
        assert.equal(await askedAs(client, name), 'somebody', `${name} ${turn}`);
        assert.equal(await askedAs(stranger, name), 'nobody', `${name} ${turn}`);
      }
      listener.reloadTls({ ...tls });
    }
  } finally {
    await listener.close();
  }
});

function cn(name: string): string {
  return `CN=${name}.example`;
}

test('the pair of --cert-dir is shown where no files are named', () => {
  assert.deepEqual(servingFiles({ certDir: folder }), {});
  for (const end of ['crt', 'key']) writeFileSync(join(folder, `apiserver.${end}`), 'x');
  const found = { certificate: join(folder, 'apiserver.crt'), key: join(folder, 'apiserver.key') };
  assert.deepEqual(servingFiles({ certDir: folder }), found);
  const named = { certDir: folder, tlsCertFile: 'a.crt', tlsPrivateKeyFile: 'a.key' };
  assert.deepEqual(servingFiles(named), { certificate: 'a.crt', key: 'a.key' });
});

test('files and names that make no sense are told with their flag', () => {
  const key = (name: string): string => join(folder, `${name}.key`);
  const mixed = `${join(folder, 'usual.example.crt')},${key('other.example')}`;
  assert.throws(() => tlsRules({ tlsSniCertKey: [mixed] }), /--tls-sni-cert-key: .*is not the key/);
  assert.throws(() => tlsRules({ tlsSniCertKey: ['no,no'] }), /--tls-sni-cert-key: no,no: ENOENT/);
  const suites = { tlsCipherSuites: ['TLS_NOTHING'] };
  assert.throws(() => tlsRules(suites), /--tls-cipher-suites: TLS_NOTHING is not known/);
});

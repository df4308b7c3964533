/** Journals behind TLS, passwords, keys and credentials, asked with them and without. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import type { Journal } from '@megaplane/store/journal';
import { nkeys } from '@nats-io/transport-node';
import { type JournalAccess, openJournal } from '../journal/open-journal.ts';
import { has } from './peer.sim.ts';

const START_MS_MAX = 20_000;
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const missing = (program: string, how: string): false | string =>
  hasOpenssl && has(program) ? false : `needs openssl and ${program} (apt install ${how})`;

const dir = mkdtempSync(join(tmpdir(), 'megaplane-journal-access-'));
const at = (name: string): string => join(dir, name);
const children: ChildProcess[] = [];
const opened: Journal[] = [];

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
}

function authority(name: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
  openssl('req', '-x509', ...key, ...files, '-days', '30', '-subj', `/CN=${name}`);
}

function issue(name: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-new',
    ...key,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.csr`,
    '-subj',
    `/CN=${name}`,
  );
  writeFileSync(
    at(`${name}.ext`),
    'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n',
  );
  const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30'];
  openssl(
    'x509',
    '-req',
    '-in',
    `${name}.csr`,
    '-out',
    `${name}.crt`,
    ...signer,
    '-extfile',
    `${name}.ext`,
  );
}

/** Opens a journal, again while nobody listens yet. */
async function open(url: string, access: JournalAccess): Promise<Journal> {
  const endMs = performance.now() + START_MS_MAX;
  for (;;) {
    try {
      const journal = await openJournal(url, access, () => {});
      opened.push(journal);
      return journal;
    } catch (error) {
      const isStarting = /REFUSED|JetStream|no responders/i.test((error as Error).message);
      if (!isStarting || performance.now() > endMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Writes an entry behind the last one, as often as it takes, and reads it. */
async function assertWorks(journal: Journal, text: string): Promise<void> {
  const endMs = performance.now() + START_MS_MAX;
  for (;;) {
    const end = await journal.end();
    const last = end.kind === 'end' ? end.last : 0;
    const outcome = await journal.append(Buffer.from(text), last);
    if (outcome.kind === 'appended') {
      const read = await journal.read(last + 1, 5000);
      assert(read.kind === 'entries');
      assert.equal(read.entries[0]?.bytes.toString(), text);
      return;
    }
    assert(performance.now() < endMs, 'why' in outcome ? outcome.why : outcome.kind);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function start(program: string, args: readonly string[]): void {
  const stderr = process.env['MEGAPLANE_VERBOSE'] === '1' ? 'inherit' : 'ignore';
  children.push(spawn(program, args, { stdio: ['ignore', 'ignore', stderr] }));
}

async function startNats(name: string, config: string): Promise<number> {
  const port = await freePort();
  const all = `listen: 127.0.0.1:${port}\njetstream { store_dir: "${at(name)}" }\n${config}`;
  writeFileSync(at(`${name}.conf`), all);
  start('nats-server', ['-c', at(`${name}.conf`)]);
  return port;
}

before(() => {
  if (!hasOpenssl) return;
  authority('ca');
  authority('other');
  for (const name of ['server', 'client']) issue(name);
});

after(async () => {
  for (const journal of opened) await journal.close();
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }
  rmSync(dir, { recursive: true, force: true });
});

const client = { ca: at('ca.crt'), cert: at('client.crt'), key: at('client.key') };

void describe('a journal in NATS', { skip: missing('nats-server', 'nats-server') }, () => {
  test('over TLS with a user and a password, and not without', async () => {
    const files = `cert_file: "${at('server.crt')}", key_file: "${at('server.key')}"`;
    const port = await startNats(
      'password',
      `tls { ${files} }\nauthorization { user: mega, password: "pl@ne" }\n`,
    );
    const url = (user: string): string => `tls://${user}127.0.0.1:${port}/group`;
    await assertWorks(await open(url('mega:pl%40ne@'), { ca: at('ca.crt') }), 'secret');
    await assert.rejects(
      open(url('mega:wrong@'), { ca: at('ca.crt') }),
      /^Error: --journal: .*uthoriz/,
    );
    await assert.rejects(open(url(''), { ca: at('ca.crt') }), /^Error: --journal: .*uthoriz/);
    const foreign = open(url('mega:pl%40ne@'), { ca: at('other.crt') });
    await assert.rejects(foreign, (error: Error) => {
      assert.match(error.message, /^--journal: 127.*certificate/);
      assert.doesNotMatch(error.message, /pl@ne/);
      return true;
    });
  });

  test('over TLS with a certificate of the client, and not without', async () => {
    const files = `cert_file: "${at('server.crt')}", key_file: "${at('server.key')}"`;
    const port = await startNats(
      'mutual',
      `tls { ${files}, ca_file: "${at('ca.crt')}", verify: true }\n`,
    );
    const url = `tls://127.0.0.1:${port}/group`;
    await assertWorks(await open(url, client), 'mutual');
    await assert.rejects(open(url, { ca: at('ca.crt') }), /^Error: --journal: /);
  });

  test('with an nkey, and not with another', async () => {
    const [known, unknown] = [nkeys.createUser(), nkeys.createUser()];
    writeFileSync(at('known.nk'), known.getSeed());
    writeFileSync(at('unknown.nk'), unknown.getSeed());
    const users = `authorization { users: [ { nkey: ${known.getPublicKey()} } ] }\n`;
    const url = `nats://127.0.0.1:${await startNats('nkey', users)}/group`;
    await assertWorks(await open(url, { nkey: at('known.nk') }), 'nkey');
    await assert.rejects(open(url, { nkey: at('unknown.nk') }), /^Error: --journal: .*uthoriz/);
  });

  test('with credentials that run out: it waits for new ones, and goes on with them', async () => {
    const operator = nkeys.createOperator();
    const account = nkeys.createAccount();
    writeFileSync(at('operator.jwt'), token(operator, operator, { type: 'operator' }));
    const limits = {
      subs: -1,
      data: -1,
      payload: -1,
      conn: -1,
      leaf: -1,
      imports: -1,
      exports: -1,
    };
    const storage = {
      mem_storage: -1,
      disk_storage: -1,
      streams: -1,
      consumer: -1,
      wildcards: true,
    };
    const plain = { type: 'account', limits };
    const claims = { type: 'account', limits: { ...limits, ...storage } };
    const system = nkeys.createAccount();
    const preload = [system, account]
      .map(
        (one) => `${one.getPublicKey()}: ${token(operator, one, one === system ? plain : claims)}`,
      )
      .join('\n');
    const port = await startNats(
      'credentials',
      `operator: "${at('operator.jwt')}"\nresolver: MEMORY\n` +
        `system_account: ${system.getPublicKey()}\nresolver_preload: {\n${preload}\n}\n`,
    );
    const renew = (seconds: number): void => {
      const user = nkeys.createUser();
      const claim = { type: 'user', subs: -1, data: -1, payload: -1 };
      writeFileSync(at('user.creds'), credentials(token(account, user, claim, seconds), user));
    };
    const url = `nats://127.0.0.1:${port}/group`;
    // on a slow machine some run out before they are used
    const first = async (): Promise<Journal> => {
      for (let tries = 0; ; tries++) {
        renew(3);
        try {
          return await open(url, { credentials: at('user.creds') });
        } catch (error) {
          if (tries > 5 || !/uthoriz|expired/i.test((error as Error).message)) throw error;
        }
      }
    };
    const journal = await first();
    const endMs = performance.now() + START_MS_MAX;
    let outcome = await journal.end();
    while (outcome.kind === 'end' && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      outcome = await journal.end();
    }
    assert.equal(outcome.kind, 'unavailable');
    // longer than a client tries that gives up at the second refusal
    await new Promise((resolve) => setTimeout(resolve, 1000));
    renew(3600);
    await assertWorks(journal, 'after');
  });
});

void test(
  'a journal in etcd over TLS with a certificate of the client, and not without',
  { skip: missing('etcd', 'etcd-server etcd-client') },
  async () => {
    const [port, peers] = [await freePort(), await freePort()];
    const url = `https://127.0.0.1:${port}`;
    const args = ['--data-dir', at('etcd'), '--listen-client-urls', url];
    args.push('--advertise-client-urls', url, '--listen-peer-urls', `http://127.0.0.1:${peers}`);
    args.push('--initial-advertise-peer-urls', `http://127.0.0.1:${peers}`);
    args.push('--initial-cluster', `default=http://127.0.0.1:${peers}`, '--client-cert-auth');
    args.push('--cert-file', at('server.crt'), '--key-file', at('server.key'));
    start('etcd', [...args, '--trusted-ca-file', at('ca.crt')]);
    const journal = `etcds://127.0.0.1:${port}/group`;
    await assertWorks(await open(journal, client), 'mutual');
    for (const wrong of [{ ca: at('ca.crt') }, { ...client, ca: at('other.crt') }]) {
      const outcome = await (await open(journal, wrong)).end();
      assert(outcome.kind === 'unavailable', outcome.kind);
      assert.match(outcome.why, /certificate|alert|closed/);
    }
    const absent = open(journal, { ...client, cert: at('none.crt') });
    await assert.rejects(absent, /^Error: --journal-cert: .*none\.crt/);
  },
);

type KeyPair = ReturnType<typeof nkeys.createUser>;

/** A token as nats-server reads them: https://docs.nats.io, JWT of version 2. */
function token(issuer: KeyPair, subject: KeyPair, claims: object, seconds = 3600): string {
  const now = Math.floor(Date.now() / 1000);
  const text = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const ids = { iss: issuer.getPublicKey(), sub: subject.getPublicKey() };
  const times = { jti: `${now}`, iat: now, exp: now + seconds };
  const body = { ...ids, ...times, name: 'test', nats: { ...claims, version: 2 } };
  const signed = `${text({ typ: 'JWT', alg: 'ed25519-nkey' })}.${text(body)}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`;
}

function credentials(jwt: string, user: KeyPair): string {
  const part = (name: string, text: string): string =>
    `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n`;
  const seed = Buffer.from(user.getSeed()).toString();
  return `${part('NATS USER JWT', jwt)}\n${part('USER NKEY SEED', seed)}`;
}

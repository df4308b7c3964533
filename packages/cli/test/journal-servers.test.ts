/** Stores on a journal and API servers that follow it, each a process. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import { ENGINES } from '@megaplane/etcd/engines.sim';
import { ENTRY, eventually } from './cluster.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const TOKENS = 'admin-token,root,1,"system:masters"\nreader-token,jane,2\n';
const AUDIT = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n';

interface Program {
  readonly child: ChildProcess;
  readonly port: number;
  readonly dir: string;
  end(signal: NodeJS.Signals): Promise<void>;
}

interface Answer {
  readonly status: number;
  text: string;
}

async function start(dir: string, args: readonly string[]): Promise<Program> {
  const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const found = /^ready in .*?:(\d+)/m.exec(chunk.toString());
      if (found !== null) resolve(Number(found[1]));
    });
    child.once('exit', () => reject(new Error(said)));
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return { child, port, dir, end };
}

/** Resolves with the whole answer; a watch as it begins, its text then grows. */
function ask(port: number, token: string, path: string, body?: object): Promise<Answer> {
  const method = body === undefined ? 'GET' : 'POST';
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const isWatch = path.includes('watch=');
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers, agent: false };
    const sent = request({ ...options, rejectUnauthorized: false }, (answer) => {
      const all = { status: answer.statusCode ?? 0, text: '' };
      answer.on('data', (chunk: Buffer) => (all.text += chunk.toString()));
      answer.on('error', () => {});
      answer.on('end', () => resolve(all));
      if (isWatch) resolve(all);
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const kind = ENGINES.find(({ name, missing }) => name !== 'simulated' && missing === false);

void test(
  'API servers on a journal serve what was written at others, while the leader is killed',
  { skip: kind === undefined ? 'needs nats-server or etcd: apt-get install nats-server' : false },
  async () => {
    assert(kind !== undefined);
    const engine = await kind.start();
    const dir = mkdtempSync(join(tmpdir(), 'megaplane-journal-'));
    writeFileSync(join(dir, 'tokens'), TOKENS);
    writeFileSync(join(dir, 'audit'), AUDIT);
    const started: Program[] = [];
    const begin = async (name: string, ...args: string[]): Promise<Program> => {
      const program = await start(join(dir, name), args);
      started.push(program);
      return program;
    };
    const group = ['--journal', engine.url, '--leader-lease', '1s'];
    const store = async (name: string): Promise<Program> => {
      const url = `http://127.0.0.1:${await freePort()}`;
      return begin(name, 'store', ...group, '--member-name', name, '--listen-client-urls', url);
    };
    const server = (name: string): Promise<Program> => {
      const place = ['--data-dir', join(dir, name), '--secure-port', '0'];
      const access = ['--token-auth-file', join(dir, 'tokens')];
      const audit = ['--audit-policy-file', join(dir, 'audit')];
      const log = ['--audit-log-path', join(dir, `${name}.audit`)];
      return begin(name, 'apiserver', ...group, ...place, ...access, ...audit, ...log);
    };
    try {
      const stores = [await store('a'), await store('b')];
      const [left, right] = [await server('left'), await server('right')];
      const made = await ask(left.port, 'admin-token', MAPS, {
        metadata: { name: 'one' },
        data: { k: 'v' },
      });
      assert.equal(made.status, 201, made.text);
      assert.match(made.text, /"managedFields":\[/);
      const found = await ask(right.port, 'admin-token', `${MAPS}/one`);
      assert.equal(found.text, made.text);
      // who may do what, and who did it, is known where it was asked for
      const refused = await ask(right.port, 'reader-token', MAPS, { metadata: { name: 'no' } });
      assert.equal(refused.status, 403, refused.text);
      assert.match(refused.text, /jane/);
      const audited = await eventually('the audit log', () => {
        const text = readFileSync(join(dir, 'left.audit'), 'utf8');
        return text.includes('configmaps/one') || text.includes('"name":"one"') ? text : undefined;
      });
      assert.match(audited, /"username":"root"/);
      assert.doesNotMatch(
        readFileSync(join(dir, 'right.audit'), 'utf8'),
        /"verb":"create".*"name":"one"/,
      );
      const watch = await ask(right.port, 'admin-token', `${MAPS}?watch=1&resourceVersion=0`);
      await stores[0]?.end('SIGKILL');
      await eventually('a write behind the failover', async () => {
        const done = await ask(left.port, 'admin-token', MAPS, {
          metadata: { name: 'two' },
          data: {},
        });
        return done.status === 201 || done.status === 409 || undefined;
      });
      await eventually(
        'the watch at the other',
        () => watch.text.includes('"name":"two"') || undefined,
      );
      await left.end('SIGTERM');
      await right.end('SIGTERM');
      assert.equal(left.child.exitCode, 0);
    } finally {
      for (const program of started) await program.end('SIGKILL');
      await engine.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  },
);

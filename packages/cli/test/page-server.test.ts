import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { issueCertificate } from '@megaplane/apiserver/certificates';
import { freePort } from '@megaplane/base/free-port.sim';
import { ENTRY, megaplane, SERVER_ONLY, startCluster } from './cluster.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-page-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const port = await freePort();
const flags = [...SERVER_ONLY, '--secure-port', `${port}`];
let cluster = await startCluster(flags, join(folder, 'data'));
after(() => cluster.remove());

interface Page {
  readonly child: ChildProcess;
  readonly link: URL;
  stop(): Promise<void>;
}

/** `megaplane page` as a child, on a port of its own. */
async function openPage(...more: readonly string[]): Promise<Page> {
  const args = [ENTRY, 'page', '--kubeconfig', cluster.kubeconfig, ...more];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  while (!said.includes('\n')) {
    const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
    said += chunk.toString();
  }
  const [link = ''] = /https?:\S+/.exec(said) ?? [];
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill();
    await ended;
  };
  return { child, link: new URL(link), stop };
}

/** Status and cookie of a file of the page; the server must show `authority`'s certificate. */
function fileOver(link: URL, authority: string): Promise<readonly [number, string]> {
  return new Promise((resolve, reject) => {
    const asked = request(link, { ca: authority, agent: false }, (answer) => {
      answer.resume();
      resolve([answer.statusCode ?? 0, `${answer.headers['set-cookie']?.join()}`]);
    });
    asked.once('error', reject).end();
  });
}

test('with a certificate the page is served over TLS alone', async () => {
  const times = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const about = { ...times, serial: Buffer.alloc(16, 1) };
  const ca = issueCertificate({ ...about, use: 'authority', commonName: 'of the test' }, null);
  const names = ['127.0.0.1'];
  const own = issueCertificate({ ...about, use: 'server', commonName: 'page', names }, ca);
  writeFileSync(join(folder, 'page.crt'), own.certificate);
  writeFileSync(join(folder, 'page.key'), own.key);
  const files = ['--tls-cert-file', join(folder, 'page.crt')];
  files.push('--tls-private-key-file', join(folder, 'page.key'));
  const page = await openPage('--listen-address', '127.0.0.1:0', ...files);
  try {
    assert.equal(page.link.protocol, 'https:');
    const [status, cookie] = await fileOver(page.link, ca.certificate);
    assert.equal(status, 200);
    assert.match(cookie, /; Secure$/);
    await assert.rejects(fetch(`http://${page.link.host}/`));
  } finally {
    await page.stop();
  }
});

test('beyond the loopback the token crosses no network in the clear', async () => {
  const page = await openPage('--listen-address', '0.0.0.0:0');
  assert.equal(page.link.protocol, 'https:');
  await page.stop();
});

test('a certificate without a key, and a file that is none, are refused by their flags', () => {
  const args = ['page', '--kubeconfig', cluster.kubeconfig, '--listen-address', '127.0.0.1:0'];
  const half = megaplane(...args, '--tls-cert-file', join(folder, 'page.crt'));
  assert.match(half.stderr, /--tls-cert-file and --tls-private-key-file: one is of no use/);
  assert.equal(half.status, 1);
  writeFileSync(join(folder, 'none'), 'no certificate');
  const files = ['--tls-cert-file', join(folder, 'none')];
  files.push('--tls-private-key-file', join(folder, 'none'));
  const wrong = megaplane(...args, ...files);
  assert.match(wrong.stderr, /--tls-cert-file/);
  assert.equal(wrong.status, 1);
});

interface Sample {
  readonly troubles: readonly string[];
}

test('a cluster that goes away is named, and the page goes on when it is back', async () => {
  const page = await openPage('--listen-address', '127.0.0.1:0');
  try {
    const headers = { authorization: `Bearer ${page.link.searchParams.get('token')}` };
    const stream = await fetch(new URL('/api/stream', page.link), { headers });
    const samples = samplesOf(stream);
    const until = async (isWanted: (sample: Sample) => boolean): Promise<void> => {
      for (;;) {
        const { value } = await samples.next();
        assert(value !== undefined, 'the stream ended');
        if (isWanted(value)) return;
      }
    };
    await until(({ troubles }) => troubles.length === 0);
    await cluster.stop();
    await until(({ troubles }) => troubles.some((text) => text.includes('apiserver')));
    cluster = await startCluster(flags, cluster.dataDir);
    await until(({ troubles }) => troubles.length === 0);
    assert.equal((await fetch(new URL('/api/kinds', page.link), { headers })).status, 200);
  } finally {
    await page.stop();
  }
});

async function* samplesOf(stream: Response): AsyncGenerator<Sample, undefined> {
  let text = '';
  const body = stream.body ?? new ReadableStream<Uint8Array>();
  for await (const piece of body) {
    text += Buffer.from(piece).toString();
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, data] = /^event: sample\ndata: (.*)$/.exec(event) ?? [];
      if (data !== undefined) yield JSON.parse(data) as Sample;
    }
  }
  return undefined;
}

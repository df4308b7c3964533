/** Answers of many megabytes, to clients that stop reading while what they read is replaced. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { connect, type ClientHttp2Session } from 'node:http2';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { runApiserver } from '@megaplane/apiserver/run';

const MAPS = '/api/v1/namespaces/default/configmaps';
const COUNT = 900;
const TEXT: string = 'x'.repeat(25_000);
const WHOLE_BYTES: number = COUNT * TEXT.length;
/** Where the client stops reading, for as long as everything is replaced. */
const STOP_BYTES = 500_000;

const dir: string = mkdtempSync(join(tmpdir(), 'megaplane-slow-'));
const socket: string = join(dir, 'socket');
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
let service: { stop(): Promise<void> } | null = null;

before(async () => {
  service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket: socket,
    // a tenth of what is read: nothing would be left of it
    historyLimit: '2MiB',
    log: () => {},
  });
});

after(async () => {
  agent.destroy();
  await service?.stop();
  rmSync(dir, { recursive: true });
});

function write(method: string, path: string, body: object): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ socketPath: socket, agent, method, path, headers }, (answer) => {
      answer.on('end', () => resolve(answer.statusCode ?? 0)).resume();
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

function mapOf(at: number): object {
  return { metadata: { name: `m${at}` }, data: { text: TEXT } };
}

/** Writes every object once, eight at a time. */
async function writeAll(method: 'POST' | 'PUT'): Promise<void> {
  for (let from = 0; from < COUNT; from += 8) {
    const some = Array.from({ length: Math.min(8, COUNT - from) }, (_, at) => from + at);
    const codes = await Promise.all(
      some.map((at) => write(method, method === 'PUT' ? `${MAPS}/m${at}` : MAPS, mapOf(at))),
    );
    for (const code of codes) assert.ok(code === 200 || code === 201, `${code}`);
  }
}

/** The whole of a body, with a pause in which `meanwhile` happens. */
async function readSlowly(body: Readable, meanwhile: () => Promise<void>): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isStopped = false;
  for await (const piece of body as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (isStopped || bytes < STOP_BYTES) continue;
    isStopped = true;
    await meanwhile();
  }
  return Buffer.concat(pieces).toString();
}

type Ask = (method: string, path: string) => Promise<Readable>;

const askHttp1: Ask = (method, path) =>
  new Promise((resolve, reject) => {
    const sent = request({ socketPath: socket, method, path }, (answer: IncomingMessage) => {
      resolve(answer);
    });
    sent.on('error', reject).end();
  });

const sessions: ClientHttp2Session[] = [];
after(() => {
  for (const session of sessions) session.destroy();
});

const askHttp2: Ask = async (method, path) => {
  const session = connect('http://localhost', {
    createConnection: () => createConnection(socket),
  });
  sessions.push(session);
  const stream = session.request({ ':method': method, ':path': path });
  stream.end();
  await turn();
  return stream;
};

/** Everything that is there when a list is asked for is in it, and it is JSON to its end. */
function assertWhole(text: string): void {
  assert.ok(text.length > WHOLE_BYTES, `${text.length} of ${WHOLE_BYTES}`);
  const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
  assert.equal(new Set(items.map(({ metadata }) => metadata.name)).size, COUNT);
}

for (const [protocol, ask] of [
  ['HTTP/1.1', askHttp1],
  ['HTTP/2', askHttp2],
] as const) {
  test(`a list of 22 MB is whole over ${protocol} although all of it is replaced`, async () => {
    await writeAll('POST');
    const body = await ask('GET', MAPS);
    assertWhole(await readSlowly(body, () => writeAll('PUT')));
  });

  test(`the answer to a deletion of 22 MB is whole over ${protocol}`, async () => {
    const body = await ask('DELETE', MAPS);
    assertWhole(
      await readSlowly(body, async () => {
        await writeAll('POST');
        await writeAll('PUT');
      }),
    );
    const again = await ask('DELETE', MAPS);
    assertWhole(await readSlowly(again, async () => {}));
    const left = await ask('GET', MAPS);
    const text = await readSlowly(left, async () => {});
    const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ['kube-root-ca.crt'].slice(0, items.length),
    );
  });
}

/**
 * Whatever comes to a port, in whatever order, the server answers others afterwards, and counts
 * nothing as going on: no seat, no place in a queue, no request, no connection.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import {
  ask,
  besiege,
  comesToRest,
  framed,
  plainDoor,
  tlsDoor,
  type HostilePort,
} from '@megaplane/base/hostile-client.sim';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { runApiserver, type ApiserverService } from '../src/server/run.ts';

const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-hostile-'));
const unixSocket = join(dir, 'api.sock');
const errors: string[] = [];
let service: ApiserverService | null = null;
const ports: HostilePort[] = [];

/** As the administrator, on a socket that only this user reaches. */
const atSocket: HostilePort = {
  name: 'socket',
  port: 0,
  open: () => connect(unixSocket),
  answers: () => answersAt(() => connect(unixSocket), '/livez'),
  held,
};

async function answersAt(open: HostilePort['open'], path: string): Promise<void> {
  assert.match(await ask(open, path), /^HTTP\/1\.1 200 /);
}

before(async () => {
  const etcdPort = await freePort();
  service = await runApiserver({
    dataDir: join(dir, 'data'),
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket,
    listenClientUrls: `http://127.0.0.1:${etcdPort}`,
    // few seats: most of what comes at once has to wait, or is refused
    maxRequestsInflight: 8,
    maxMutatingRequestsInflight: 4,
    log: (level, message) => {
      if (level === 'error') errors.push(message);
    },
  });
  const securePort = Number(new URL(service.url).port);
  const [secure, plain] = [tlsDoor(securePort), plainDoor(etcdPort)];
  ports.push(
    atSocket,
    {
      ...{ name: 'TLS', port: securePort, open: secure, held },
      answers: () => answersAt(secure, '/livez'),
    },
    {
      ...{ name: 'etcd', port: etcdPort, open: plain },
      answers: () => answersAt(plain, '/health'),
    },
    {
      // what is no handshake
      ...{ name: 'plain to TLS', port: securePort, open: plainDoor(securePort), held },
      answers: () => answersAt(secure, '/livez'),
    },
  );
});

after(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** What still goes on, by the server's own counts; the scrape itself is left out. */
async function held(): Promise<string[]> {
  const text = await ask(atSocket.open, '/metrics');
  const counts = /^apiserver_(flowcontrol_current_(inqueue|executing)_(requests|seats))\{/;
  return text
    .split('\n')
    .filter((line) => counts.test(line) && !line.includes('"exempt"') && !line.endsWith(' 0'));
}

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** A field of HPACK as it stands, kept by nobody (RFC 7541 6.2.2). */
function literal(name: string, said: string): Buffer {
  const text = (one: string): Buffer =>
    Buffer.concat([Buffer.from([one.length]), Buffer.from(one, 'latin1')]);
  return Buffer.concat([Buffer.from([0]), text(name), text(said)]);
}

const [HEADERS, RST_STREAM, SETTINGS] = [1, 3, 4];
const PROTOCOL_ERROR = 1;

test('values with control characters over HTTP/2 reset their stream, and no other', async () => {
  const controls = Array.from({ length: 33 }, (_, code) => (code === 32 ? 127 : code));
  const values = controls.map((code) => `a${String.fromCharCode(code)}b`);
  const frames = values.flatMap((said, index) => {
    const pseudo: [string, string][] = [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/livez'],
      [':authority', 'a'],
    ];
    const block = [...pseudo, ['x-said', said] as const].map(([name, text]) => literal(name, text));
    return [framed([HEADERS, 5, 2 * index + 1, Buffer.concat(block)])];
  });
  const socket = connect(unixSocket);
  const pieces: Buffer[] = [];
  socket.on('data', (piece: Buffer) => pieces.push(piece));
  socket.write(Buffer.concat([Buffer.from(PREFACE), framed([SETTINGS, 0, 0, Buffer.alloc(0)])]));
  socket.write(Buffer.concat(frames));
  // HEADERS of an answer, or a reset, by the stream's number
  const ended = new Map<number, string>();
  while (ended.size < values.length) {
    await once(socket, 'data');
    const all = Buffer.concat(pieces);
    for (let at = 0; at + 9 <= all.length; at += 9 + all.readUIntBE(at, 3)) {
      const stream = all.readUInt32BE(at + 5);
      if (all[at + 3] === HEADERS) ended.set(stream, 'answered');
      if (all[at + 3] !== RST_STREAM || at + 13 > all.length) continue;
      ended.set(stream, `reset by ${all.readUInt32BE(at + 9)}`);
    }
  }
  socket.destroy();
  for (const [index, code] of controls.entries()) {
    const wanted = code === 9 ? 'answered' : `reset by ${PROTOCOL_ERROR}`;
    assert.equal(ended.get(2 * index + 1), wanted, `character ${code}`);
  }
  await atSocket.answers();
  await comesToRest(atSocket);
  assert.deepEqual(errors, []);
});

const runs = isLong ? 2000 : 40;
const timeout = FUZZ_SECONDS > 0 || isLong ? 36_000_000 : 110_000;

test(
  'nothing that comes to a port ends the server, or goes on in its counts',
  { timeout },
  async () => {
    await besiege(ports, { runs, errors });
  },
);

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { runApiserver } from '../server/run.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

/** One connection over the socket file; collects what comes. */
class Peer {
  received: Buffer = Buffer.alloc(0);
  isEnded = false;
  readonly socket: Socket;

  constructor(path: string) {
    this.socket = connect(path);
    this.socket.on(
      'data',
      (bytes: Buffer) => (this.received = Buffer.concat([this.received, bytes])),
    );
    this.socket.on('end', () => (this.isEnded = true));
    this.socket.on('error', () => (this.isEnded = true));
  }

  async until(holds: () => boolean): Promise<void> {
    for (let tries = 0; tries < 2000 && !holds(); tries++) await sleep(20);
    assert.ok(holds(), this.received.toString('latin1'));
  }

  upgrade(query: string, more: readonly string[]): void {
    const lines = [
      `GET ${MAPS}?watch=1&${query} HTTP/1.1`,
      'host: localhost',
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      ...more,
    ];
    this.socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  }

  /** Opcodes and data of the frames behind the head of the answer. */
  frames(): { opcode: number; data: Buffer }[] {
    const found: { opcode: number; data: Buffer }[] = [];
    let at = this.received.indexOf('\r\n\r\n') + 4;
    while (at >= 4 && at + 2 <= this.received.length) {
      const opcode = (this.received[at] ?? 0) & 15;
      let length = (this.received[at + 1] ?? 0) & 127;
      at += 2;
      if (length === 126) {
        length = this.received.readUInt16BE(at);
        at += 2;
      } else if (length === 127) {
        length = this.received.readUInt32BE(at + 4);
        at += 8;
      }
      found.push({ opcode, data: this.received.subarray(at, at + length) });
      at += length;
    }
    return found;
  }
}

async function post(path: string, name: string, size: number): Promise<void> {
  const peer = new Peer(path);
  const body = JSON.stringify({ metadata: { name }, data: { k: 'x'.repeat(size) } });
  const head = `POST ${MAPS} HTTP/1.1\r\nhost: l\r\ncontent-type: application/json`;
  peer.socket.write(
    `${head}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
  await peer.until(() => peer.received.includes('HTTP/1.1 201'));
  peer.socket.destroy();
}

test('a watch over WebSocket is a message for each event, and ends with a close', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-websocket-'));
  const unixSocket = join(dir, 'api.sock');
  const service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket,
    log: (level, message) => console.error(level, message),
  });
  const usual = ['sec-websocket-version: 13', 'origin: http://localhost'];
  try {
    await post(unixSocket, 'a', 10);
    const text = new Peer(unixSocket);
    text.upgrade('timeoutSeconds=2', usual);
    const binary = new Peer(unixSocket);
    const accept = 'accept: application/vnd.kubernetes.protobuf;stream=watch';
    binary.upgrade('timeoutSeconds=2', [...usual, accept]);
    await text.until(() => text.frames().length >= 1);
    assert.match(text.received.toString('latin1'), /^HTTP\/1.1 101 /);
    assert.ok(text.received.includes('sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='));
    text.socket.write(Buffer.from([0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
    await text.until(() => text.frames().some(({ opcode }) => opcode === 10));
    await post(unixSocket, 'b', 70_000);
    await text.until(() => text.frames().filter(({ opcode }) => opcode === 1).length >= 2);
    const told = text.frames().filter(({ opcode }) => opcode === 1);
    const names = told.map(({ data }) => {
      const event = JSON.parse(data.toString()) as { object: { metadata: { name: string } } };
      return event.object.metadata.name;
    });
    assert.ok(names.join().endsWith('a,b'), names.join());
    await binary.until(() => binary.frames().filter(({ opcode }) => opcode === 2).length >= 2);
    assert.equal(binary.frames().at(0)?.data[0], 0x0a, 'a WatchEvent without its length');
    await text.until(() => text.isEnded);
    assert.equal(text.frames().at(-1)?.opcode, 8);
    const bad = new Peer(unixSocket);
    bad.upgrade('', ['sec-websocket-version: 8', 'origin: http://localhost']);
    await bad.until(() => bad.received.includes('sec-websocket-version: 13'));
    assert.match(bad.received.toString('latin1'), /^HTTP\/1.1 400 /);
    const strange = new Peer(unixSocket);
    strange.upgrade('', ['sec-websocket-version: 13']);
    await strange.until(() => strange.received.includes('null origin'));
    for (const peer of [text, binary, bad, strange]) peer.socket.destroy();
  } finally {
    await service.stop();
    rmSync(dir, { recursive: true });
  }
});

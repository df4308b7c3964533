import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTransport, frame, get, HELLO, number } from '../../test/scripted-peer.ts';
import { BodyBudget } from './body-budget.ts';
import { FRAMES } from '../http2/frames.ts';
import { Http2Server } from '../server/http2-server.ts';
import { SERVER_LIMITS, BLOCK_BYTES } from '../limits.ts';
import { countOutstanding, isCrowded } from './outstanding.ts';

const MANY_BYTES = 65 * 1024 * 1024;
const PIECE = Buffer.alloc(4000, 'x');

/** A socket that takes one write, and is busy with it until the test says otherwise. */
class BusyTransport extends FakeTransport {
  override readonly secure: boolean = true;
  isBusy = false;
  /** Of each write. */
  readonly memory: ArrayBufferLike[] = [];

  override writing(): boolean {
    return this.isBusy;
  }

  override write(bytes: Buffer, start: number, end: number): boolean {
    this.isBusy = true;
    this.memory.push(bytes.buffer);
    return super.write(bytes, start, end);
  }
}

/** A connection with an endless answer, of which the last write is over. */
function endless(isHastened: boolean): BusyTransport {
  const peer = new BusyTransport();
  peer.protocol = new Http2Server(peer, {
    handler: (exchange) => {
      const pump = (): void => {
        while (exchange.writable() > 0) exchange.write(PIECE);
      };
      exchange.open(200, null);
      if (isHastened) exchange.hasten?.();
      exchange.onWritable = pump;
      pump();
    },
    streamsBody: () => false,
    limits: SERVER_LIMITS,
    onError: (error) => assert.fail(String(error)),
    grpc: null,
    bodies: new BodyBudget(Infinity),
  });
  const windows = [0, 1].map((id) => frame(FRAMES.windowUpdate, 0, id, number(1 << 28)));
  peer.send(Buffer.concat([HELLO, get(1), ...windows]));
  peer.received = [];
  peer.isBusy = false;
  return peer;
}

/** Octets of an endless answer that leave with one turn of a connection that is free. */
function sentInTurn(isHastened: boolean): number {
  const peer = endless(isHastened);
  peer.protocol?.drained();
  peer.protocol?.flush();
  return Buffer.concat(peer.received).length;
}

test('a turn of a secure connection sends several blocks of what is hastened', () => {
  assert(!isCrowded());
  const alone = sentInTurn(true);
  assert(alone > 3 * BLOCK_BYTES, `${alone} octets`);
  assert(alone <= 4 * BLOCK_BYTES, `${alone} octets`);
  const usual = sentInTurn(false);
  assert(usual > BLOCK_BYTES / 2 && usual <= BLOCK_BYTES, `${usual} octets`);
  countOutstanding(MANY_BYTES);
  assert(isCrowded());
  const crowded = sentInTurn(true);
  countOutstanding(-MANY_BYTES);
  assert(crowded > BLOCK_BYTES / 2, `${crowded} octets`);
  assert(crowded <= BLOCK_BYTES, `${crowded} octets`);
  assert(!isCrowded());
});

test('connections whose writes are over in one turn fill the same memory one after another', () => {
  const peers = Array.from({ length: 8 }, () => endless(false));
  for (const peer of peers) peer.memory.splice(0);
  for (const peer of peers) peer.protocol?.drained();
  for (const peer of peers) peer.protocol?.flush();
  assert.deepEqual(
    peers.map((peer) => peer.memory.length),
    peers.map(() => 1),
  );
  assert.equal(new Set(peers.flatMap((peer) => peer.memory)).size, 1);
});

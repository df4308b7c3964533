/** Many peers that do not read, each within its own bound, must not fill the memory together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ACK,
  FakeTransport,
  HELLO,
  frame,
  get,
  number,
  setting,
} from '../../test/scripted-peer.ts';
import { AnswerBudget } from './answer-budget.ts';
import { BodyBudget } from './body-budget.ts';
import { ERRORS, FRAMES } from '../http2/frames.ts';
import { Http2Server } from '../server/http2-server.ts';
import { SERVER_LIMITS } from '../limits.ts';

const ANSWER = Buffer.alloc(100_000, 'q');
const BYTES_MAX = 1_000_000;

class Peer extends FakeTransport {
  readonly server: Http2Server;

  constructor(answers: AnswerBudget) {
    super();
    this.server = new Http2Server(this, {
      handler: (exchange) => exchange.respond(200, null, ANSWER),
      streamsBody: () => false,
      limits: SERVER_LIMITS,
      onError: (error) => assert.fail(String(error)),
      grpc: null,
      bodies: new BodyBudget(Infinity),
      answers,
    });
    this.protocol = this.server;
    this.send(Buffer.concat([HELLO, ACK, frame(FRAMES.settings, 0, 0, setting(4, 0))]));
    this.send(frame(FRAMES.windowUpdate, 0, 0, number(1 << 30)));
  }

  /** Takes so much of a stream. */
  take(id: number, count: number): void {
    this.send(frame(FRAMES.windowUpdate, 0, id, number(count)));
  }

  get taken(): number {
    const found = this.frames().filter(({ type }) => type === FRAMES.data);
    return found.reduce((sum, { payload }) => sum + payload.length, 0);
  }
}

test('who takes nothing is let go for others, the stillest first', () => {
  const answers = new AnswerBudget(BYTES_MAX);
  const still = Array.from({ length: 11 }, (_, n) => {
    const peer = new Peer(answers);
    peer.timeMs = n;
    peer.send(get(1));
    return peer;
  });
  assert.equal(answers.used, 1_100_000);
  const reader = new Peer(answers);
  reader.timeMs = 1005;
  reader.send(get(1));
  for (const peer of still) peer.settle();
  assert.deepEqual(
    still.map((peer) => peer.resets().join()),
    [`1:${ERRORS.enhanceYourCalm}`, ...Array.from({ length: 10 }, () => '')],
  );
  reader.take(1, ANSWER.length);
  assert.equal(reader.taken, ANSWER.length);
  assert.equal(answers.used, 1_000_000);
});

test('who reads slowly is left alone, and who waits already is refused more', () => {
  const answers = new AnswerBudget(BYTES_MAX);
  const slow = Array.from({ length: 12 }, () => new Peer(answers));
  for (const peer of slow) peer.send(get(1));
  for (let second = 1; second <= 5; second++) {
    for (const peer of slow) {
      peer.timeMs = second * 900;
      peer.take(1, 1000);
    }
    const late = new Peer(answers);
    late.timeMs = second * 900;
    late.send(get(1));
    assert.deepEqual(late.resets(), []);
    late.send(get(3));
    assert.deepEqual(late.resets(), [`3:${ERRORS.refusedStream}`]);
  }
  assert.deepEqual(
    slow.flatMap((peer) => peer.resets()),
    [],
  );
});

test('memory is bounded however many wait, and answers that need not wait are sent', () => {
  const answers = new AnswerBudget(BYTES_MAX);
  const peers = Array.from({ length: 200 }, () => new Peer(answers));
  let most = 0;
  for (const peer of peers) {
    peer.send(get(1));
    most = Math.max(most, answers.used);
  }
  assert(most > 2 * BYTES_MAX && most <= 2 * BYTES_MAX + ANSWER.length, String(most));
  const reader = new Peer(answers);
  reader.send(frame(FRAMES.settings, 0, 0, setting(4, 1 << 20)));
  reader.send(get(1));
  assert.equal(reader.taken, ANSWER.length);
  for (const peer of peers) peer.server.closed();
  assert.equal(answers.used, 0);
});

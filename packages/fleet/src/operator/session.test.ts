import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { OperatorMessageSchema, ShardMessageSchema } from '../contract/tables/shard.ts';
import { needsMessage } from '../rollup/needs-message.ts';
import { ANSWERS_MAX, Session } from './session.ts';

const calm = (): number => 0;

function sent(session: Session): string[] {
  const shown: string[] = [];
  for (let frame = session.next(); frame !== undefined; frame = session.next()) {
    const { payload } = fromBinary(OperatorMessageSchema, frame);
    const { value } = payload;
    if (payload.case === 'hello') shown.push(`hello ${payload.value.clusterId}`);
    else if (payload.case === 'rollup') shown.push(`rollup ${payload.value.timestampUnixNanos}`);
    else if (payload.case === 'reclaimAck') shown.push(`ack ${payload.value.instructionId}`);
    else shown.push(`${payload.case} ${JSON.stringify(value)}`);
  }
  return shown;
}

function rollUp(session: Session, time: bigint): void {
  session.offerRollUp(needsMessage('c1', time, []));
}

function ack(session: Session, instructionId: string): boolean {
  return session.answer({ case: 'reclaimAck', value: { instructionId, nodesStarted: 1 } });
}

test('Hello goes first, then answers, then the newest roll-up', () => {
  const session = new Session('c1', calm);
  rollUp(session, 1n);
  assert.equal(session.dial(0), 1);
  assert.equal(session.dial(0), 0);
  assert.deepEqual(sent(session), []);
  session.opened(1);
  rollUp(session, 2n);
  rollUp(session, 3n);
  assert.ok(ack(session, 'i1'));
  assert.deepEqual(sent(session), ['hello c1', 'ack i1', 'rollup 3']);
  assert.equal(session.metrics.dropped, 2);
});

test('pauses between sessions double to half a minute, and begin anew after a good time', () => {
  const session = new Session('c1', calm);
  const pauses: number[] = [];
  let nowMs = 0;
  for (let tries = 0; tries < 8; tries++) {
    session.ended(session.dial(nowMs), nowMs);
    pauses.push(session.wakeMs - nowMs);
    assert.equal(session.dial(session.wakeMs - 1), 0);
    nowMs = session.wakeMs;
  }
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  const stream = session.dial(nowMs);
  session.opened(stream);
  session.ended(stream, nowMs + 600_000);
  assert.equal(session.wakeMs, nowMs + 600_500);
});

test('what a stream says that was replaced counts for nothing', () => {
  const session = new Session('c1', calm);
  const first = session.dial(0);
  session.opened(first);
  session.ended(first, 0);
  const second = session.dial(500);
  const bytes = toBinary(
    ShardMessageSchema,
    create(ShardMessageSchema, { payload: { case: 'ack', value: { shardEpoch: 3n } } }),
  );
  session.opened(first);
  assert.equal(session.isOpen, false);
  session.opened(second);
  assert.equal(session.received(first, bytes), undefined);
  assert.equal(session.received(second, bytes)?.payload.case, 'ack');
  session.ended(first, 600);
  assert.equal(session.isOpen, true);
  assert.equal(session.received(second, Buffer.from('ff', 'hex')), undefined);
  assert.equal(session.metrics.malformed, 1);
});

test('answers beyond the limit are dropped, and none outlives its session', () => {
  const session = new Session('c1', calm);
  assert.equal(ack(session, 'nobody hears it'), false);
  session.opened(session.dial(0));
  for (let i = 0; i < ANSWERS_MAX; i++) assert.ok(ack(session, `i${i}`));
  assert.equal(ack(session, 'one more'), false);
  session.ended(1, 0);
  rollUp(session, 9n);
  session.opened(session.dial(500));
  assert.deepEqual(sent(session), ['hello c1', 'rollup 9']);
});

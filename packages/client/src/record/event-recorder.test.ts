import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FakeTimers } from '../../test/fake-timers.ts';
import type { Client, SendDone } from '../rest/client.ts';
import { createEventRecorder, type EventRecorder } from './event-recorder.ts';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly object: JsonObject;
  readonly done: SendDone;
}

const SUBJECT = {
  kind: 'Pod',
  apiVersion: 'v1',
  namespace: 'team',
  name: 'web',
  uid: 'u',
};

interface Bench {
  readonly timers: FakeTimers;
  readonly sent: Sent[];
  readonly recorder: EventRecorder;
  /** Answers all that was sent, also what the answers lead to. */
  readonly answer: (status: number) => void;
}

function bench(hasRoom: () => boolean = () => true): Bench {
  const timers = new FakeTimers();
  const sent: Sent[] = [];
  const send: Client['send'] = (method, path, _type, body, done) => {
    if (hasRoom()) sent.push({ method, path, object: JSON.parse(String(body)), done });
    return hasRoom();
  };
  let answered = 0;
  const answer = (status: number): void => {
    while (answered < sent.length) sent[answered++]?.done(status, Buffer.alloc(0), 0, 0, 0);
  };
  const client = { send, timers } as unknown as Client;
  return { timers, sent, answer, recorder: createEventRecorder({ client, component: 'tester' }) };
}

test('an event is posted as upstream writes it', () => {
  const { sent, recorder } = bench();
  recorder.event(SUBJECT, 'Warning', 'FailedScheduling', 'no room');
  assert.equal(sent[0]?.method, 'POST');
  assert.equal(sent[0].path, '/api/v1/namespaces/team/events');
  const { metadata, ...rest } = sent[0].object;
  assert.match(stringAt(metadata, 'name'), /^web\.[0-9a-f]+$/);
  assert.deepEqual(rest, {
    kind: 'Event',
    apiVersion: 'v1',
    involvedObject: SUBJECT,
    reason: 'FailedScheduling',
    message: 'no room',
    source: { component: 'tester' },
    firstTimestamp: '1970-01-01T00:16:40Z',
    lastTimestamp: '1970-01-01T00:16:40Z',
    count: 1,
    type: 'Warning',
    reportingComponent: 'tester',
    reportingInstance: '',
  });
});

test('events of cluster-scoped objects go to default', () => {
  const { sent, recorder } = bench();
  recorder.event({ ...SUBJECT, kind: 'Node', namespace: '' }, 'Normal', 'Ready', 'is ready');
  assert.equal(sent[0]?.path, '/api/v1/namespaces/default/events');
});

test('equal events raise a count; those that come meanwhile go in one patch', () => {
  const { timers, sent, answer, recorder } = bench();
  for (let i = 0; i < 5; i++) {
    recorder.event(SUBJECT, 'Normal', 'Pulled', 'image');
    timers.advance(1000);
  }
  assert.equal(sent.length, 1);
  answer(201);
  assert.deepEqual(
    sent.map(
      ({ method, object }) =>
        `${method} ${numberAt(object, 'count')} ${stringAt(object, 'lastTimestamp')}`,
    ),
    ['POST 1 1970-01-01T00:16:40Z', 'PATCH 5 1970-01-01T00:16:44Z'],
  );
  assert.equal(sent[1]?.path.split('/').at(-1), stringAt(sent[0]?.object, 'metadata', 'name'));
});

test('many different messages of one reason are combined from the tenth on', () => {
  const { sent, answer, recorder } = bench();
  for (let i = 1; i <= 12; i++) {
    recorder.event(SUBJECT, 'Warning', 'Failed', `message ${i}`);
    answer(200);
  }
  const messages = sent.map(({ object }) => object['message']);
  assert.equal(messages[8], 'message 9');
  assert.equal(messages[9], '(combined from similar events): message 10');
  assert.deepEqual(
    sent.slice(9).map(({ method }) => method),
    ['POST', 'PATCH', 'PATCH'],
  );
  const [first, combined] = [sent[0]?.object ?? {}, sent[9]?.object ?? {}];
  assert.notEqual(first['reportingComponent'], '');
  assert.equal(combined['reportingComponent'], '');
  assert.deepEqual(combined['source'], first['source']);
});

test('one object gets 25 at once, then one in five minutes', () => {
  const { timers, answer, recorder } = bench();
  const flood = (): number => {
    const before = recorder.metrics.dropped;
    for (let i = 0; i < 40; i++) {
      recorder.event(SUBJECT, 'Normal', `Reason${i}`, 'text');
      answer(200);
    }
    return 40 - (recorder.metrics.dropped - before);
  };
  assert.equal(flood(), 25);
  timers.advance(600_000);
  assert.equal(flood(), 2);
});

test('an Event that has expired on the server is posted anew', () => {
  const { sent, answer, recorder } = bench();
  recorder.event(SUBJECT, 'Normal', 'Pulled', 'image');
  answer(201);
  recorder.event(SUBJECT, 'Normal', 'Pulled', 'image');
  sent.at(-1)?.done(404, Buffer.alloc(0), 0, 0, 0);
  assert.deepEqual(
    sent.map(({ method }) => method),
    ['POST', 'PATCH', 'POST'],
  );
});

test('what cannot be posted is counted and hinders nobody', () => {
  let hasRoom = false;
  const { sent, answer, recorder } = bench(() => hasRoom);
  recorder.event(SUBJECT, 'Normal', 'Pulled', 'image');
  assert.equal(recorder.metrics.failed, 1);
  hasRoom = true;
  recorder.event(SUBJECT, 'Normal', 'Pulled', 'image');
  answer(500);
  assert.equal(recorder.metrics.failed, 2);
  recorder.event(SUBJECT, 'Normal', 'Pulled', 'image');
  answer(201);
  assert.deepEqual(
    sent.map(({ method, object }) => `${method} ${numberAt(object, 'count')}`),
    ['POST 2', 'POST 3'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '@megaplane/client/client';
import { EventWriter, type EventText, type Subject } from './event-writer.ts';

const POD: Subject = { kind: 'Pod', apiVersion: 'v1', namespace: 'a', name: 'p', uid: 'u' };
const FAILED: EventText = {
  type: 'Warning',
  reason: 'FailedScheduling',
  action: 'Scheduling',
  note: 'no nodes available to schedule pods',
};

function bench(eventsPerSecondMax = 50): {
  writer: EventWriter;
  sent: string[];
  bodies: string[];
  clock: { nowMs: number };
} {
  const sent: string[] = [];
  const bodies: string[] = [];
  const clock = { nowMs: Date.UTC(2026, 0, 1) };
  const client = {
    timers: { nowMs: () => clock.nowMs, wallMs: () => clock.nowMs },
    send: (method: string, path: string, _type: string, body: string) => {
      sent.push(`${method} ${path}`);
      bodies.push(body);
      return true;
    },
  };
  const options = { client: client as unknown as Client, host: 'here', eventsPerSecondMax };
  return { writer: new EventWriter(options), sent, bodies, clock };
}

test('an event says who did what to which pod', () => {
  const { writer, sent, bodies } = bench();
  const victim = { ...POD, name: 'v' };
  writer.write('default-scheduler', victim, { ...FAILED, reason: 'Preempted' }, POD);
  assert.match(sent.join(), /^POST \/apis\/events.k8s.io\/v1\/namespaces\/a\/events$/);
  const { metadata, ...event } = JSON.parse(bodies.join()) as Record<string, unknown>;
  assert.match(JSON.stringify(metadata), /"name":"v\./);
  assert.deepEqual(event, {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'default-scheduler',
    reportingInstance: 'default-scheduler-here',
    action: 'Scheduling',
    reason: 'Preempted',
    regarding: victim,
    related: POD,
    note: FAILED.note,
    type: 'Warning',
  });
});

test('an event that repeats becomes a series, told when its count doubles', () => {
  const { writer, sent, bodies, clock } = bench();
  for (let i = 0; i < 9; i++) {
    writer.write('default-scheduler', POD, FAILED);
    clock.nowMs += 60_000;
  }
  assert.deepEqual(
    sent.map((line) => line.slice(0, 5)),
    ['POST ', 'PATCH', 'PATCH', 'PATCH'],
  );
  assert.match(bodies.at(-1) ?? '', /"count":8/);
  clock.nowMs += 360_000;
  writer.write('default-scheduler', POD, FAILED);
  assert.equal(sent.length, 5);
  assert.match(sent.at(-1) ?? '', /^POST/);
});

test('what is noted of another version of a pod is another event, of the same it is not', () => {
  const { writer, sent } = bench();
  const version = { ...POD, resourceVersion: '7' };
  writer.write('default-scheduler', version, FAILED);
  writer.write('default-scheduler', version, { ...FAILED, note: 'another' });
  writer.write('default-scheduler', { ...POD, resourceVersion: '8' }, FAILED);
  assert.deepEqual(
    sent.map((line) => line.slice(0, 5)),
    ['POST ', 'PATCH', 'POST '],
  );
});

test('notes are cut, and events over the rate are counted and dropped', () => {
  const { writer, sent, bodies } = bench(1);
  for (let i = 0; i < 12; i++) {
    writer.write(
      'default-scheduler',
      { ...POD, name: `p${i}` },
      { ...FAILED, note: 'x'.repeat(2000) },
    );
  }
  assert.equal(sent.length, 10);
  assert.equal(writer.dropped, 2);
  // Who asks first need not make what would be dropped.
  assert.equal(writer.drops(), true);
  assert.equal(writer.dropped, 3);
  const { note } = JSON.parse(bodies[0] ?? '') as { note: string };
  assert.equal(note.length, 1024);
  assert(note.endsWith('x ...'));
});

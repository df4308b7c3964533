import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PodRequests } from './pod-requests.ts';
import type { Outcome, Task } from './pod-requests.ts';

const A = '11111111-2222-3333-4444-555555555555';
const B = '11111111-2222-3333-4444-555555555556';

/** Plays lines, and shows after each what was asked to be done: `make 0`, `remove 1`. */
function play(script: string): string {
  const pods = new PodRequests();
  const tasks = new Map<string, Task>();
  let nowMs = 0;
  const shown: string[] = [];
  for (const line of script
    .trim()
    .split('\n')
    .map((text) => text.trim())) {
    const [verb = '', row = '', ...rest] = line.split(' ');
    const at = Number(row);
    const uid = rest[0] === 'B' ? B : A;
    if (verb === 'pod') pods.podSeen(at, uid, rest.includes('ended'));
    else if (verb === 'gone') pods.podGone(at);
    else if (verb === 'request') pods.requestSeen(at, uid);
    else if (verb === 'request-gone') pods.requestGone(at, uid);
    else if (verb === 'list') pods.listBegan();
    else if (verb === 'listed') pods.listEnded();
    else if (verb === 'at') nowMs = at;
    else {
      const task = tasks.get(`${verb} ${row}`);
      assert.ok(task !== undefined, line);
      pods.ended(task, (rest[0] ?? 'done') as Outcome, nowMs);
    }
    shown.push(line);
    for (let task = pods.next(nowMs); task !== undefined; task = pods.next(nowMs)) {
      tasks.set(`${task.kind} ${task.row}`, task);
      shown.push(`  ${task.kind} ${task.row}`);
    }
  }
  shown.push(`held ${pods.held} wanting ${pods.wanting}`);
  return `\n${shown.join('\n')}\n`;
}

/** A transcript is the script with what is to be done below each line. */
function transcript(text: string): void {
  const script = text.split('\n').filter((line) => !/^ {6}|^ *held/.test(line));
  const expected = text.replaceAll(/^ {4}/gm, '').replace(/ *$/, '');
  assert.equal(play(script.join('\n')), expected);
}

test('a restart adopts what is there, and makes what lacks', () => {
  transcript(`
    pod 0 A
    pod 1 A
    list
    request 1 A
    listed
      make 0
    pod 2 A
      make 2
    make 0 done
    make 2 done
    held 3 wanting 0
`);
});

test('a pod that ends gives its request back; one that had none has nothing to give', () => {
  transcript(`
    list
    listed
    pod 0 A
      make 0
    make 0 done
    pod 0 A ended
      remove 0
    remove 0 done
    pod 1 A ended
    request 1 A
      remove 1
    remove 1 later
    at 4999
    at 5000
      remove 1
    request-gone 1 A
    held 0 wanting 0
`);
});

test('a pod that ends while its request is made has it removed when it is there', () => {
  transcript(`
    list
    listed
    pod 0 A
      make 0
    pod 0 A ended
    make 0 done
      remove 0
    held 0 wanting 0
`);
});

test('a request that somebody deletes is made again', () => {
  transcript(`
    pod 0 A
    list
    request 0 A
    listed
    request-gone 0 A
      make 0
    make 0 done
    list
    listed
      make 0
    held 0 wanting 1
`);
});

test('another pod of the same name is another pod', () => {
  transcript(`
    list
    listed
    pod 0 A
      make 0
    pod 0 B
      make 0
    request 0 A
    request-gone 0 A
    request 0 B
    make 0 done
    gone 0
    request 0 B
    held 0 wanting 0
`);
});

test('what failed is tried again after its pause, as long as the pod is there', () => {
  transcript(`
    list
    listed
    pod 0 A
      make 0
    pod 1 A
      make 1
    make 0 later
    make 1 refused
    at 5000
      make 0
    make 0 gone
    gone 0
    at 60000
      make 1
    held 0 wanting 1
`);
});

test('a pod is counted where it is told again, and a UID need not be a UUID', () => {
  const pods = new PodRequests();
  pods.podSeen(5, 'u1', false);
  pods.podSeen(5, 'u1', false);
  pods.listBegan();
  pods.listEnded();
  pods.podSeen(5, 'u1', false);
  assert.equal(pods.wanting, 1);
  const task = pods.next(0);
  assert.ok(task !== undefined && pods.isPodOf(task, 'u1') && !pods.isPodOf(task, 'u2'));
  assert.equal(pods.next(0), undefined);
});

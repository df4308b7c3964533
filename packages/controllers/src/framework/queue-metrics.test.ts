import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeApi } from '../../test/fake-api.ts';
import { QueueBoard } from './queue-metrics.ts';
import { Workers } from './workers.ts';

test('a queue tells what kube-controller-manager tells of its own', async () => {
  const { timers, advance } = ((api) => ({
    timers: api.timers,
    advance: (ms: number) => api.advance(ms),
  }))(new FakeApi());
  const board = new QueueBoard();
  const finish: (() => void)[] = [];
  let failures = 1;
  const workers = new Workers<string>(
    timers,
    1,
    async () => {
      await new Promise<void>((resolve) => finish.push(resolve));
      return failures-- > 0 ? 'retry' : 'done';
    },
    () => assert.fail(),
    board.queue('deployment'),
  );
  const line = (name: string): string =>
    board.lines(timers.nowMs()).find((one) => one.startsWith(`${name} `)) ?? '';
  const value = (metric: string, more = ''): number =>
    Number(line(`${metric}{name="deployment"${more}}`).split(' ').at(-1));
  for (const key of ['a', 'b', 'b']) workers.add(key);
  assert.equal(value('workqueue_adds_total'), 2);
  assert.equal(value('workqueue_depth'), 2);
  workers.start();
  await advance(3_000);
  assert.equal(value('workqueue_depth'), 1);
  assert.equal(value('workqueue_unfinished_work_seconds'), 3);
  assert.equal(value('workqueue_longest_running_processor_seconds'), 3);
  finish[0]?.();
  await advance(1);
  assert.equal(value('workqueue_retries_total'), 1);
  assert.equal(value('workqueue_work_duration_seconds_bucket', ',le="1"'), 0);
  assert.equal(value('workqueue_work_duration_seconds_bucket', ',le="10"'), 1);
  assert.equal(value('workqueue_queue_duration_seconds_sum'), 3);
  finish[1]?.();
  await advance(10_000);
  finish[2]?.();
  await advance(1);
  assert.equal(value('workqueue_adds_total'), 3, 'what comes again is added again');
  assert.equal(value('workqueue_work_duration_seconds_count'), 3);
  assert.equal(value('workqueue_unfinished_work_seconds'), 0);
  const bounds = board
    .lines(0)
    .filter((one) => one.startsWith('workqueue_queue_duration_seconds_bucket'))
    .map((one) => /le="([^"]+)"/.exec(one)?.[1]);
  assert.equal(
    bounds.join(' '),
    '1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 ' + '0.001 0.01 0.1 1 10 +Inf',
  );
});

test('queues of one name are told as one', () => {
  const board = new QueueBoard();
  const [signing, approving] = [board.queue('certificate'), board.queue('certificate')];
  signing.depth = () => 2;
  approving.depth = () => 3;
  signing.added('a', 0);
  signing.began('a', 1_000);
  approving.added('a', 0);
  approving.began('a', 4_000);
  approving.ended('a', true, 4_500);
  const lines = board.lines(6_000).filter((line) => /_total|_depth|_sum|_count/.test(line));
  assert.deepEqual(
    lines.filter((line) => !line.startsWith('#')),
    [
      'workqueue_adds_total{name="certificate"} 2',
      'workqueue_depth{name="certificate"} 5',
      'workqueue_queue_duration_seconds_sum{name="certificate"} 5',
      'workqueue_queue_duration_seconds_count{name="certificate"} 2',
      'workqueue_retries_total{name="certificate"} 1',
      'workqueue_work_duration_seconds_sum{name="certificate"} 0.5',
      'workqueue_work_duration_seconds_count{name="certificate"} 1',
    ],
  );
  assert.ok(board.lines(6_000).includes('workqueue_unfinished_work_seconds{name="certificate"} 5'));
});

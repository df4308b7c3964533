import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { JobPods, TRACKING } from './job-pods.ts';

const scan = new ObjectScan();

function put(pods: JobPods, row: number, metadata: JsonObject, status: JsonObject): void {
  const uid = '01234567-89ab-4cde-8f01-23456789abcd';
  const bytes = Buffer.from(JSON.stringify({ metadata: { uid, ...metadata }, status }));
  assert(scan.scan(bytes, 0, bytes.length));
  pods.upsert(row, bytes, scan);
}

const ended = (finishedAt: string, restartCount: number): JsonObject => ({
  restartCount,
  state: { terminated: { exitCode: 1, finishedAt } },
});

test('a pod has ended when its last container has, and began to go a grace before its end', () => {
  const pods = new JobPods();
  const metadata = { finalizers: [TRACKING] };
  const first = ended('2026-01-01T00:00:10Z', 1);
  const containerStatuses = [first, ended('2026-01-01T00:00:30Z', 2)];
  put(pods, 0, metadata, { containerStatuses, initContainerStatuses: [{ restartCount: 4 }] });
  assert.equal(pods.finishedS.get(0), Date.UTC(2026, 0, 1, 0, 0, 30) / 1000);
  assert.equal(pods.restarts.get(0), 7);
  put(pods, 0, metadata, { containerStatuses: [first, { state: { running: {} } }] });
  assert.equal(pods.finishedS.get(0), 0);
  const deletionTimestamp = '2026-01-01T00:01:00Z';
  put(pods, 0, { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 }, {});
  assert.equal(pods.goingS.get(0), Date.UTC(2026, 0, 1, 0, 0, 30) / 1000);
});

test('pods of no Job cost nothing beside their uid and index', () => {
  const pods = new JobPods();
  put(pods, 0, {}, { containerStatuses: [ended('2026-01-01T00:00:10Z', 9)] });
  const columns = [pods.failures, pods.ignored, pods.restarts, pods.finishedS, pods.goingS];
  assert(columns.every((column) => column.memoryBytes === 0));
});

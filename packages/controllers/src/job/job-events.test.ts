import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const JOBS = '/apis/batch/v1/namespaces/default/jobs';

test('what became of a Job is told after what became of its pods', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api, ['job-controller']);
  const suspend = async (isSuspended: boolean): Promise<void> => {
    const answer = await api.request({
      method: 'PATCH',
      path: `${JOBS}/j`,
      contentType: 'application/merge-patch+json',
      body: { metadata: { generation: isSuspended ? 3 : 2 }, spec: { suspend: isSuspended } },
    });
    assert(answer.ok);
    await api.advance(3_000);
  };
  const template: JsonObject = { metadata: { labels: { a: 'b' } }, spec: {} };
  const spec = { parallelism: 1, completions: 1, backoffLimit: 6, suspend: true, template };
  const body = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec };
  assert((await api.request({ method: 'POST', path: JOBS, body })).ok);
  await api.advance(3_000);
  await suspend(false);
  await suspend(true);
  const told = api.events.map((text) => / (\w+)(: \S+)?$/.exec(text)?.[1]);
  assert.deepEqual(told, ['suspended', 'pod', 'resumed', 'pod', 'suspended']);
  manager.stop();
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseConfiguration } from '../configuration.ts';
import { configz } from './configz.ts';

const RECORDED = join(import.meta.dirname, 'recorded-configz.json');

test('/configz shows what that of kube-scheduler v1.36.1 shows', () => {
  const parsed = parseConfiguration({
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: false },
  });
  assert(parsed.ok);
  const shown = configz(parsed.configuration.complete, '/kubeconfig');
  assert.deepEqual(shown, JSON.parse(readFileSync(RECORDED, 'utf8')));
});

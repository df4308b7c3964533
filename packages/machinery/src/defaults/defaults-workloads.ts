/** Defaults of the groups that run pods: apps, batch, autoscaling. */

import { listAt, objectAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import { isVoid } from '../scheme/empty-collections.ts';
import type { DefaultRules } from './default-rules.ts';

const INT32_MAX = 2147483647;

export const WORKLOAD_DEFAULTS: DefaultRules = {
  'apps.v1.DeploymentSpec': {
    values: { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
  },
  'apps.v1.DeploymentStrategy': {
    values: { type: 'RollingUpdate' },
    step: (strategy) => {
      defaultRolling(strategy, { maxUnavailable: '25%', maxSurge: '25%' });
    },
  },
  'apps.v1.DaemonSetSpec': { values: { revisionHistoryLimit: 10 } },
  'apps.v1.DaemonSetUpdateStrategy': {
    values: { type: 'RollingUpdate' },
    step: (strategy) => {
      defaultRolling(strategy, { maxUnavailable: 1, maxSurge: 0 });
      // upstream's own form has no way to leave them out
      const rolling = objectAt(strategy, 'rollingUpdate');
      if (rolling === undefined) return;
      strategy['rollingUpdate'] = { maxUnavailable: 0, maxSurge: 0, ...rolling };
    },
  },
  'apps.v1.StatefulSetSpec': {
    values: {
      podManagementPolicy: 'OrderedReady',
      replicas: 1,
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: {},
    },
    step: nameClaims,
  },
  'apps.v1.StatefulSetUpdateStrategy': { step: defaultStatefulStrategy },
  'apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy': {
    values: { whenDeleted: 'Retain', whenScaled: 'Retain' },
  },
  'apps.v1.ReplicaSetSpec': { values: { replicas: 1 } },
  'batch.v1.Job': { step: defaultJob },
  'batch.v1.PodFailurePolicyOnPodConditionsPattern': { values: { status: 'True' } },
  'batch.v1.CronJobSpec': {
    values: {
      concurrencyPolicy: 'Allow',
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
    },
  },
  'autoscaling.v1.HorizontalPodAutoscalerSpec': { values: { minReplicas: 1 } },
  'autoscaling.v2.HorizontalPodAutoscalerSpec': {
    values: { minReplicas: 1 },
    step: defaultAutoscaler,
  },
};

/** The parameters of a rolling update, where the strategy is one. */
function defaultRolling(strategy: JsonObject, values: JsonObject): void {
  if (strategy['type'] !== 'RollingUpdate') return;
  strategy['rollingUpdate'] = { ...values, ...objectAt(strategy, 'rollingUpdate') };
}

/** A stateful set that names the strategy but no parameters gets no partition. */
function defaultStatefulStrategy(strategy: JsonObject): void {
  if (stringAt(strategy, 'type') === '') {
    strategy['type'] = 'RollingUpdate';
    strategy['rollingUpdate'] ??= {};
  }
  const rolling = objectAt(strategy, 'rollingUpdate');
  if (rolling === undefined) return;
  if (strategy['type'] === 'RollingUpdate') rolling['partition'] ??= 0;
}

/** For jobs only: the spec in a cron job's template is defaulted when the job is made from it. */
function defaultJob(job: JsonObject): void {
  const labels = objectAt(job, 'spec', 'template', 'metadata', 'labels');
  const metadata = objectAt(job, 'metadata');
  if (labels !== undefined && metadata !== undefined && isVoid(metadata['labels'])) {
    metadata['labels'] = { ...labels };
  }
  const spec = objectAt(job, 'spec');
  if (spec === undefined) return;
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) {
    spec['completions'] = 1;
  }
  spec['parallelism'] ??= 1;
  spec['backoffLimit'] ??= spec['backoffLimitPerIndex'] === undefined ? 6 : INT32_MAX;
  spec['completionMode'] ??= 'NonIndexed';
  spec['suspend'] ??= false;
  const isFailure = spec['podFailurePolicy'] !== undefined;
  spec['podReplacementPolicy'] ??= isFailure ? 'Failed' : 'TerminatingOrFailed';
  spec['manualSelector'] ??= false;
}

const SCALE_UP: JsonObject = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
};
const SCALE_DOWN: JsonObject = {
  selectPolicy: 'Max',
  policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
};

function defaultAutoscaler(spec: JsonObject): void {
  if (listAt(spec, 'metrics').length === 0) {
    const target = { type: 'Utilization', averageUtilization: 80 };
    spec['metrics'] = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  }
  const behavior = objectAt(spec, 'behavior');
  if (behavior === undefined) return;
  behavior['scaleUp'] = { ...structuredClone(SCALE_UP), ...objectAt(behavior, 'scaleUp') };
  behavior['scaleDown'] = { ...structuredClone(SCALE_DOWN), ...objectAt(behavior, 'scaleDown') };
}

/** Templates of claims say what they are templates of. */
function nameClaims(spec: JsonObject): void {
  for (const claim of listAt(spec, 'volumeClaimTemplates')) {
    if (isObject(claim)) Object.assign(claim, { apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
  }
}

/** The controllers that keep pods: which of them are wanted, over one table of pods. */
import { ClusterRolePart } from '../clusterroleaggregation/cluster-role-part.ts';
import { CronJobPart } from '../cronjob/cron-job-part.ts';
import { DaemonSetPart } from '../daemonset/daemon-set-part.ts';
import { DeploymentPart } from '../deployment/deployment-part.ts';
import { DisruptionPart } from '../disruption/disruption-part.ts';
import { EndpointsPart } from '../endpointslice/endpoints-part.ts';
import { JobPart } from '../job/job-part.ts';
import { PacedClient } from '../framework/paced-client.ts';
import { PodRows } from '../framework/pod-rows.ts';
import { QuotaPart } from '../resourcequota/quota-part.ts';
import { REPLICA_SET, REPLICATION_CONTROLLER } from '../replicaset/replicaset.ts';
import { ReplicaSetPart, type Rolling } from '../replicaset/replicaset-part.ts';
import {
  simpleParts,
  type ForPart,
  type WorkloadPart,
  type WorkloadsOptions,
} from './simple-parts.ts';
import { StatefulSetPart } from '../statefulset/stateful-set-part.ts';
import { StorageProtectionPart } from '../volume/storage-protection-part.ts';
import { TtlPart } from '../job/ttl-part.ts';

function forPartOf(options: WorkloadsOptions): ForPart {
  const { concurrentSyncs = {}, requestRate } = options.options;
  return (...names) => {
    const counts = names.map((name) => concurrentSyncs[name]).filter((one) => one !== undefined);
    const client =
      requestRate === undefined ? options.client : new PacedClient(options.client, requestRate);
    return { ...options, client, workers: counts.length === 0 ? undefined : Math.max(...counts) };
  };
}

export function workloadParts(options: WorkloadsOptions): WorkloadPart[] {
  const { chosen, informers, announce } = options;
  const forPart = forPartOf(options);
  const parts: WorkloadPart[] = [];
  let rows: PodRows | undefined;
  const pods = (): PodRows => (rows ??= new PodRows(informers, options.random.fork('replicas')));
  parts.push(...replicaParts(options, forPart, pods));
  const isSlices = chosen.has('endpointslice-controller');
  const isEndpoints = chosen.has('endpoints-controller');
  if (isSlices || isEndpoints) {
    const own = {
      random: options.random.fork('zones'),
      announce: announce('endpoint-slice-controller'),
    };
    parts.push(
      new EndpointsPart({
        ...forPart('endpointslice-controller', 'endpoints-controller'),
        ...own,
        rules: options.options.slices,
        pods: pods(),
        isSlices,
        isEndpoints,
      }),
    );
  }
  parts.push(...batchParts(options, forPart, pods));
  if (chosen.has('daemonset-controller')) {
    parts.push(
      new DaemonSetPart({
        ...forPart('daemonset-controller'),
        pods: pods(),
        announce: announce('daemonset-controller'),
      }),
    );
  }
  if (chosen.has('statefulset-controller')) {
    parts.push(
      new StatefulSetPart({
        ...forPart('statefulset-controller'),
        pods: pods(),
        announce: announce('statefulset-controller'),
      }),
    );
  }
  parts.push(...countingParts(options, forPart, pods));
  const isClaims = chosen.has('persistentvolumeclaim-protection-controller');
  const isVolumes = chosen.has('persistentvolume-protection-controller');
  if (isClaims || isVolumes) {
    parts.push(new StorageProtectionPart({ ...forPart(), pods: pods(), isClaims, isVolumes }));
  }
  if (chosen.has('clusterrole-aggregation-controller')) parts.push(new ClusterRolePart(forPart()));
  parts.push(...simpleParts(options, forPart, pods));
  return parts;
}

/** Jobs, what makes them, and what ends them. */
function batchParts(
  options: WorkloadsOptions,
  forPart: ForPart,
  pods: () => PodRows,
): WorkloadPart[] {
  const { chosen, announce } = options;
  const parts: WorkloadPart[] = [];
  if (chosen.has('job-controller')) {
    parts.push(
      new JobPart({
        ...forPart('job-controller'),
        pods: pods(),
        announce: announce('job-controller'),
      }),
    );
  }
  if (chosen.has('ttl-after-finished-controller')) {
    parts.push(new TtlPart(forPart('ttl-after-finished-controller')));
  }
  if (chosen.has('cronjob-controller')) {
    parts.push(
      new CronJobPart({
        ...forPart('cronjob-controller'),
        announce: announce('cronjob-controller'),
      }),
    );
  }
  return parts;
}

/** Those that count: what may be evicted, and what a namespace uses. */
function countingParts(
  options: WorkloadsOptions,
  forPart: ForPart,
  pods: () => PodRows,
): WorkloadPart[] {
  const { chosen, announce } = options;
  const parts: WorkloadPart[] = [];
  if (chosen.has('disruption-controller')) {
    parts.push(
      new DisruptionPart({
        ...forPart('disruption-controller'),
        pods: pods(),
        announce: announce('controllermanager'),
      }),
    );
  }
  if (chosen.has('resourcequota-controller')) {
    const own = { pods: pods(), resyncMs: options.options.quotaSyncMs };
    parts.push(new QuotaPart({ ...forPart('resourcequota-controller'), ...own }));
  }
  return parts;
}

/** Deployments, and the sets that they tell how many pods to keep. */
function replicaParts(
  options: WorkloadsOptions,
  forPart: ForPart,
  pods: () => PodRows,
): WorkloadPart[] {
  const { chosen, announce } = options;
  const parts: WorkloadPart[] = [];
  const rolling: Rolling = { isAtWork: () => false };
  for (const [name, kind] of [
    ['replicaset-controller', REPLICA_SET],
    ['replicationcontroller-controller', REPLICATION_CONTROLLER],
  ] as const) {
    if (!chosen.has(name)) continue;
    const own = { kind, rolling, pods: pods(), announce: announce(kind.component) };
    parts.push(new ReplicaSetPart({ ...forPart(name), ...own }));
  }
  if (chosen.has('deployment-controller')) {
    const own = { rolling, pods: pods(), announce: announce('deployment-controller') };
    parts.push(new DeploymentPart({ ...forPart('deployment-controller'), ...own }));
  }
  return parts;
}

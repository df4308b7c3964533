/** The controllers that keep pods: which of them are wanted, over one table of pods. */
import { ClusterRoleController } from '../clusterroleaggregation/controller.ts';
import { CronJobController } from '../cronjob/controller.ts';
import { DaemonSetController } from '../daemonset/controller.ts';
import { DeploymentController } from '../deployment/controller.ts';
import { DisruptionController } from '../disruption/controller.ts';
import { EndpointsController } from '../endpointslice/controller.ts';
import { JobController } from '../job/controller.ts';
import { PacedClient } from '../framework/paced-client.ts';
import { PodRows } from '../framework/pod-rows.ts';
import { QuotaController } from '../resourcequota/controller.ts';
import { REPLICA_SET, REPLICATION_CONTROLLER } from '../replicaset/replicaset.ts';
import { ReplicaSetController } from '../replicaset/controller.ts';
import { Rolling } from '../replicaset/rolling.ts';
import {
  simpleControllers,
  type ForController,
  type WorkloadController,
  type WorkloadsOptions,
} from './controller-descriptors.ts';
import { StatefulSetController } from '../statefulset/controller.ts';
import { StorageProtectionController } from '../volume/storage-protection-controller.ts';
import { TtlController } from '../job/ttl-after-finished-controller.ts';

function forPartOf(options: WorkloadsOptions): ForController {
  const { concurrentSyncs = {}, requestRate } = options.options;
  return (...names) => {
    const counts = names.map((name) => concurrentSyncs[name]).filter((one) => one !== undefined);
    const client =
      requestRate === undefined ? options.client : new PacedClient(options.client, requestRate);
    return { ...options, client, workers: counts.length === 0 ? undefined : Math.max(...counts) };
  };
}

export function workloadParts(options: WorkloadsOptions): WorkloadController[] {
  const { chosen, informers, announce } = options;
  const forPart = forPartOf(options);
  const parts: WorkloadController[] = [];
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
      new EndpointsController({
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
      new DaemonSetController({
        ...forPart('daemonset-controller'),
        pods: pods(),
        announce: announce('daemonset-controller'),
      }),
    );
  }
  if (chosen.has('statefulset-controller')) {
    parts.push(
      new StatefulSetController({
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
    parts.push(
      new StorageProtectionController({ ...forPart(), pods: pods(), isClaims, isVolumes }),
    );
  }
  if (chosen.has('clusterrole-aggregation-controller'))
    parts.push(new ClusterRoleController(forPart()));
  parts.push(...simpleControllers(options, forPart, pods));
  return parts;
}

/** Jobs, what makes them, and what ends them. */
function batchParts(
  options: WorkloadsOptions,
  forPart: ForController,
  pods: () => PodRows,
): WorkloadController[] {
  const { chosen, announce } = options;
  const parts: WorkloadController[] = [];
  if (chosen.has('job-controller')) {
    parts.push(
      new JobController({
        ...forPart('job-controller'),
        pods: pods(),
        announce: announce('job-controller'),
      }),
    );
  }
  if (chosen.has('ttl-after-finished-controller')) {
    parts.push(new TtlController(forPart('ttl-after-finished-controller')));
  }
  if (chosen.has('cronjob-controller')) {
    parts.push(
      new CronJobController({
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
  forPart: ForController,
  pods: () => PodRows,
): WorkloadController[] {
  const { chosen, announce } = options;
  const parts: WorkloadController[] = [];
  if (chosen.has('disruption-controller')) {
    parts.push(
      new DisruptionController({
        ...forPart('disruption-controller'),
        pods: pods(),
        announce: announce('controllermanager'),
      }),
    );
  }
  if (chosen.has('resourcequota-controller')) {
    const own = { pods: pods(), resyncMs: options.options.quotaSyncMs };
    parts.push(new QuotaController({ ...forPart('resourcequota-controller'), ...own }));
  }
  return parts;
}

/** Deployments, and the sets that they tell how many pods to keep. */
function replicaParts(
  options: WorkloadsOptions,
  forPart: ForController,
  pods: () => PodRows,
): WorkloadController[] {
  const { chosen, announce } = options;
  const parts: WorkloadController[] = [];
  const rolling = new Rolling();
  for (const [name, kind] of [
    ['replicaset-controller', REPLICA_SET],
    ['replicationcontroller-controller', REPLICATION_CONTROLLER],
  ] as const) {
    if (!chosen.has(name)) continue;
    const own = { kind, rolling, pods: pods(), announce: announce(kind.component) };
    parts.push(new ReplicaSetController({ ...forPart(name), ...own }));
  }
  if (chosen.has('deployment-controller')) {
    const own = { rolling, pods: pods(), announce: announce('deployment-controller') };
    parts.push(new DeploymentController({ ...forPart('deployment-controller'), ...own }));
  }
  return parts;
}

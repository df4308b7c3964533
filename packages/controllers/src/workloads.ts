/** The controllers that keep pods: which of them are wanted, over one table of pods. */
import type { Random } from '@megaplane/base/random';
import type { PartOptions } from './part-options.ts';
import type { Announce } from './announce.ts';
import { ClusterRolePart } from './cluster-role-part.ts';
import { CronJobPart } from './cron-job-part.ts';
import { DaemonSetPart } from './daemon-set-part.ts';
import { DeploymentPart, type Rolling } from './deployment-part.ts';
import { DisruptionPart } from './disruption-part.ts';
import { EndpointsPart } from './endpoints-part.ts';
import { JobPart } from './job-part.ts';
import type { Authority } from './certificates/signing.ts';
import type { ControllerName, ControllersOptions } from './options.ts';
import { PodRows } from './pod-rows.ts';
import { QuotaPart } from './quota-part.ts';
import { REPLICA_SET, REPLICATION_CONTROLLER } from './replicaset.ts';
import { ReplicaSetPart } from './replicaset-part.ts';
import { simpleParts } from './simple-parts.ts';
import { StatefulSetPart } from './stateful-set-part.ts';
import { StorageProtectionPart } from './storage-protection-part.ts';
import { TtlPart } from './ttl-part.ts';

export interface WorkloadsOptions extends PartOptions {
  readonly chosen: ReadonlySet<ControllerName>;
  readonly random: Random;
  readonly options: ControllersOptions;
  readonly authority?: Authority | undefined;
  readonly announce: (component: string) => Announce;
  readonly now: () => string;
}

export interface WorkloadPart {
  start(): void;
  stop(): void;
}

export function workloadParts(options: WorkloadsOptions): WorkloadPart[] {
  const { chosen, informers, announce } = options;
  const parts: WorkloadPart[] = [];
  let rows: PodRows | undefined;
  const pods = (): PodRows => (rows ??= new PodRows(informers, options.random.fork('replicas')));
  parts.push(...replicaParts(options, pods));
  const isSlices = chosen.has('endpointslice-controller');
  const isEndpoints = chosen.has('endpoints-controller');
  if (isSlices || isEndpoints) {
    const own = {
      random: options.random.fork('zones'),
      announce: announce('endpoint-slice-controller'),
    };
    parts.push(new EndpointsPart({ ...options, ...own, pods: pods(), isSlices, isEndpoints }));
  }
  if (chosen.has('job-controller')) {
    parts.push(new JobPart({ ...options, pods: pods(), announce: announce('job-controller') }));
  }
  if (chosen.has('ttl-after-finished-controller')) parts.push(new TtlPart(options));
  if (chosen.has('cronjob-controller')) {
    parts.push(new CronJobPart({ ...options, announce: announce('cronjob-controller') }));
  }
  if (chosen.has('daemonset-controller')) {
    parts.push(
      new DaemonSetPart({ ...options, pods: pods(), announce: announce('daemonset-controller') }),
    );
  }
  if (chosen.has('statefulset-controller')) {
    parts.push(
      new StatefulSetPart({
        ...options,
        pods: pods(),
        announce: announce('statefulset-controller'),
      }),
    );
  }
  if (chosen.has('disruption-controller')) {
    parts.push(
      new DisruptionPart({ ...options, pods: pods(), announce: announce('controllermanager') }),
    );
  }
  if (chosen.has('resourcequota-controller')) {
    parts.push(new QuotaPart({ ...options, pods: pods() }));
  }
  const isClaims = chosen.has('persistentvolumeclaim-protection-controller');
  const isVolumes = chosen.has('persistentvolume-protection-controller');
  if (isClaims || isVolumes) {
    parts.push(new StorageProtectionPart({ ...options, pods: pods(), isClaims, isVolumes }));
  }
  if (chosen.has('clusterrole-aggregation-controller')) parts.push(new ClusterRolePart(options));
  parts.push(...simpleParts(options, pods));
  return parts;
}

/** Deployments, and the sets that they tell how many pods to keep. */
function replicaParts(options: WorkloadsOptions, pods: () => PodRows): WorkloadPart[] {
  const { chosen, announce } = options;
  const parts: WorkloadPart[] = [];
  const rolling: Rolling = { isAtWork: () => false };
  for (const [name, kind] of [
    ['replicaset-controller', REPLICA_SET],
    ['replicationcontroller-controller', REPLICATION_CONTROLLER],
  ] as const) {
    if (!chosen.has(name)) continue;
    const own = { kind, rolling, pods: pods(), announce: announce(kind.component) };
    parts.push(new ReplicaSetPart({ ...options, ...own }));
  }
  if (chosen.has('deployment-controller')) {
    const own = { rolling, pods: pods(), announce: announce('deployment-controller') };
    parts.push(new DeploymentPart({ ...options, ...own }));
  }
  return parts;
}

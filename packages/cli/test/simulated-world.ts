/** The simulator's world in the time of a simulated cluster. */
import assert from 'node:assert/strict';
import type { Client } from '@megaplane/client/client';
import { WHOLE } from '@megaplane/nodes/membership';
import { PortConfig } from '@megaplane/nodes/port/port-config';
import { SimulatedCluster } from '@megaplane/nodes/simulated-cluster';
import { SimulatorMetrics } from '@megaplane/nodes/simulator-metrics';
import type { ClusterSimulation } from './cluster-simulation.ts';
import type { NodesOptions } from '@megaplane/nodes/nodes-options';

export function simulatedWorld(
  cluster: ClusterSimulation,
  client: Client,
  more: Partial<NodesOptions>,
): SimulatedCluster {
  const nowMs = (): number => cluster.timers.nowMs();
  const endpoint = { port: 10_250, hostname: '', nodeIp: '' };
  return new SimulatedCluster({
    client,
    heartbeats: client,
    metrics: new SimulatorMetrics(),
    clock: { steadyMs: nowMs, wallMs: nowMs },
    endpoint,
    config: new PortConfig({ nowMs, random: () => 0.5, startedContainers: () => 0 }),
    identity: 'one',
    part: WHOLE,
    isFirst: true,
    takeOver: () => null,
    stages: [],
    onRefused: (stage, why) => assert.fail(`${stage}: ${why}`),
    options: { ...simulatedOptions(endpoint), ...more },
  });
}

export function simulatedOptions(endpoint: NodesOptions['endpoint']): NodesOptions {
  return {
    ...{ kubeconfig: '', create: 0, zones: [], labelSelector: '', annotationSelector: '' },
    ...{ singleNode: '', disregardAnnotations: '', disregardLabels: '', files: [], shard: '' },
    ...{ cidr: '10.0.0.0/9', leaseDurationSeconds: 40, connections: 1, serverAddress: '' },
    ...{ fidelity: 'lean', kubeletCalls: '', enableCrds: [], metricsApi: false, endpoint },
    tls: { certificate: '', key: '', clientCa: undefined },
    log: () => {},
  };
}

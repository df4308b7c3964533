/**
 * A kubelet's `/stats/summary` (stats/v1alpha1): what a node, its pods and their containers use of
 * processors and memory. Networks and disks are not simulated, and left out.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { quantityOf } from '../cel/go-struct.ts';
import type { Usage } from './usage.ts';

interface Used {
  readonly cores: number;
  readonly coreSeconds: number;
  readonly bytes: number;
}

/** The summary of a node and those of its pods that run. */
export function statsSummary(
  node: JsonObject,
  pods: readonly JsonObject[],
  usage: Usage,
  nowMs: number,
): JsonObject {
  const time = `${new Date(nowMs).toISOString().slice(0, -5)}Z`;
  const total = { cores: 0, coreSeconds: 0, bytes: 0 };
  const items = pods.map((pod) => {
    const of = (container: string): Used => ({
      cores: usage.ofPod(node, pod, 'cpu', container, false),
      coreSeconds: usage.ofPod(node, pod, 'cpu', container, true),
      bytes: usage.ofPod(node, pod, 'memory', container, false),
    });
    const startTime = stringAt(pod, 'status', 'startTime');
    const containers = listAt(pod, 'spec', 'containers')
      .filter((one) => isObject(one))
      .map((one) => {
        const name = stringAt(one, 'name');
        return { name, startTime, ...shown(of(name), time) };
      });
    const used = of('');
    total.cores += used.cores;
    total.coreSeconds += used.coreSeconds;
    total.bytes += used.bytes;
    const part = (name: string): string => stringAt(pod, 'metadata', name);
    const podRef = { name: part('name'), namespace: part('namespace'), uid: part('uid') };
    return { podRef, startTime, containers, ...shown(used, time) };
  });
  const capacity = quantityOf(stringAt(objectAt(node, 'status', 'capacity') ?? {}, 'memory'));
  const free = typeof capacity === 'number' ? Math.max(0, capacity - total.bytes) : 0;
  const { cpu, memory } = shown(total, time);
  return {
    node: {
      nodeName: stringAt(node, 'metadata', 'name'),
      startTime: stringAt(node, 'metadata', 'creationTimestamp'),
      cpu,
      memory: { ...memory, availableBytes: Math.round(free) },
    },
    pods: items,
  };
}

function shown({ cores, coreSeconds, bytes }: Used, time: string): Record<string, JsonObject> {
  const whole = Math.round(bytes);
  return {
    cpu: {
      time,
      usageNanoCores: Math.round(cores * 1e9),
      usageCoreNanoSeconds: Math.round(coreSeconds * 1e9),
    },
    memory: { time, usageBytes: whole, workingSetBytes: whole, rssBytes: whole },
  };
}

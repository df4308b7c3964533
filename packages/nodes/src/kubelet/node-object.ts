/**
 * The Node objects that simulated kubelets register, as request bodies.
 *
 * A template (one Node as JSON) is rendered once per shape with marks in the places that differ,
 * and a body is the pieces between the marks joined with the values of one node.
 */
import { ownMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { addressText } from '../columns/addresses.ts';

/** What differs between the nodes of one shape. */
export interface NodeShape {
  /** A Node; name, hostname label, zone and addresses are filled in. */
  readonly template: JsonObject;
  /** Zones that the nodes are dealt to in turn; at least one. */
  readonly zones: readonly string[];
  /** The port of all kubelets, and the name under which it is reached ('': that of the node). */
  readonly kubelet?: { readonly port: number; readonly hostname: string };
  /** The network of the pods of node `index`, where a plan tells it. */
  readonly podCidrOf?: (index: number) => string;
}

const MARKS = ['name', 'zone', 'address', 'now', 'cidr'] as const;

/** The first node's address: nodes live in 10.128.0.0/9, pods in the half below. */
export const NODE_ADDRESS_BASE: number = 10 * 2 ** 24 + 128 * 2 ** 16 + 1;

/** The label of nodes that a simulator has made: `up` plays those and no others. */
export const SIMULATED_LABEL = 'megaplane.dev/simulated';
/** The selector of them. */
export const SIMULATED_SELECTOR: string = `${SIMULATED_LABEL}=true`;

export const KUBELET_VERSION = 'v1.36.1-megaplane';

/** The version that `kubectl get nodes` shows, and what the kubelet says of its machine. */
export const NODE_INFO: JsonObject = {
  machineID: '',
  systemUUID: '',
  bootID: '',
  kernelVersion: '6.1.0',
  osImage: 'Simulated Linux',
  containerRuntimeVersion: 'simulated://1.0',
  kubeletVersion: KUBELET_VERSION,
  kubeProxyVersion: '',
  operatingSystem: 'linux',
  architecture: 'amd64',
};

/** Pods that a created node takes, as a kubelet's default. */
export const PODS_OF_NODE = 110;

/** 32 CPUs, 256 GiB, 110 pods, one region. */
export const DEFAULT_TEMPLATE: JsonObject = {
  metadata: {
    labels: {
      'beta.kubernetes.io/arch': 'amd64',
      'beta.kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/os': 'linux',
      'node.kubernetes.io/instance-type': 'simulated-32',
      'topology.kubernetes.io/region': 'region-1',
    },
  },
  status: {
    capacity: { cpu: '32', memory: '256Gi', pods: `${PODS_OF_NODE}`, 'ephemeral-storage': '1Ti' },
    allocatable: {
      cpu: '32',
      memory: '256Gi',
      pods: `${PODS_OF_NODE}`,
      'ephemeral-storage': '1Ti',
    },
  },
};

function mark(name: (typeof MARKS)[number]): string {
  return `\u0001${name}\u0001`;
}

/** The conditions of a healthy node, at the time in `now` (RFC 3339). */
export function healthyConditions(now: string): JsonValue[] {
  const condition = (
    type: string,
    status: string,
    reason: string,
    message: string,
  ): JsonObject => ({
    type,
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: now,
    reason,
    message,
  });
  return [
    condition(
      'MemoryPressure',
      'False',
      'KubeletHasSufficientMemory',
      'kubelet has sufficient memory available',
    ),
    condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
    condition(
      'PIDPressure',
      'False',
      'KubeletHasSufficientPID',
      'kubelet has sufficient PID available',
    ),
    condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'),
  ];
}

function member(object: JsonObject, name: string): JsonObject {
  const value = ownMember(object, name);
  return isObject(value) ? value : {};
}

/** Renders bodies of one shape. */
export class NodeBodies {
  readonly #pieces: readonly string[];
  readonly #marks: readonly string[];
  readonly #zones: readonly string[];
  readonly #podCidrOf: ((index: number) => string) | undefined;

  constructor(shape: NodeShape) {
    const { template, zones, kubelet = { port: 10_250, hostname: '' }, podCidrOf } = shape;
    this.#podCidrOf = podCidrOf;
    const metadata = member(template, 'metadata');
    const status = member(template, 'status');
    const whole: JsonObject = {
      kind: 'Node',
      apiVersion: 'v1',
      metadata: {
        ...metadata,
        name: mark('name'),
        labels: {
          ...member(metadata, 'labels'),
          'kubernetes.io/hostname': mark('name'),
          'topology.kubernetes.io/zone': mark('zone'),
          [SIMULATED_LABEL]: 'true',
        },
      },
      spec: {
        ...member(template, 'spec'),
        ...(podCidrOf === undefined ? {} : { podCIDR: mark('cidr'), podCIDRs: [mark('cidr')] }),
      },
      status: {
        ...status,
        conditions: healthyConditions(mark('now')),
        addresses: [
          { type: 'InternalIP', address: mark('address') },
          { type: 'Hostname', address: kubelet.hostname === '' ? mark('name') : kubelet.hostname },
        ],
        daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
        // a template may be the Node of a machine: the boot of its kernel says that it is one
        nodeInfo: { ...NODE_INFO, ...member(status, 'nodeInfo'), bootID: '' },
      },
    };
    // A mark is written as an escape by JSON, so it cannot be confused with the template's text.
    const parts = JSON.stringify(whole).split(/\\u0001(name|zone|address|now|cidr)\\u0001/);
    this.#pieces = parts.filter((_, index) => index % 2 === 0);
    this.#marks = parts.filter((_, index) => index % 2 === 1);
    this.#zones = zones;
  }

  /** The body that registers node number `index`, healthy at `now` (RFC 3339, seconds). */
  body(index: number, now: string): string {
    const values: Readonly<Record<string, string>> = {
      name: nodeName(index),
      zone: this.#zones[index % this.#zones.length] ?? '',
      address: addressText(NODE_ADDRESS_BASE + index),
      now,
      cidr: this.#podCidrOf?.(index) ?? '',
    };
    let text = this.#pieces[0] ?? '';
    for (const [at, name] of this.#marks.entries()) {
      text += `${ownMember(values, name) ?? ''}${this.#pieces[at + 1] ?? ''}`;
    }
    return text;
  }
}

/** `node-<index>`. */
export function nodeName(index: number): string {
  return `node-${index}`;
}

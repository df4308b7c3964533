/** What a simulator of nodes is told by its flags. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { KubeletEndpoint } from '../kubelet/node-status.ts';
import type { KwokFile } from '../stages/stage-sets.ts';

export interface NodesOptions {
  readonly kubeconfig: string;
  /** Nodes to register, `node-0` and on; those that exist already are taken over. */
  readonly create: number;
  /** A Node as JSON; name, zone label and addresses are filled in. */
  readonly template?: JsonObject;
  readonly zones: readonly string[];
  /** Only nodes that match are simulated; empty: all. */
  readonly labelSelector: string;
  readonly annotationSelector: string;
  /** Only the node of this name is simulated; empty: all. */
  readonly singleNode: string;
  /** Nodes and pods whose status is left alone; empty: none. */
  readonly disregardAnnotations: string;
  readonly disregardLabels: string;
  /** Addresses of pods. */
  readonly cidr: string;
  /** Files of stages and sets that come with the program; none: the compiled ones. */
  readonly files: readonly KwokFile[];
  /** 0: no leases. */
  readonly leaseDurationSeconds: number;
  /** Connections for nodes and pods, and as many again for heartbeats. */
  readonly connections: number;
  /** `host:port` of the kubelets, and of the metrics endpoint. */
  readonly serverAddress: string;
  /** PEM; `clientCa` undefined: the one that the API server publishes. */
  readonly tls: {
    readonly certificate: string;
    readonly key: string;
    readonly clientCa: string | undefined;
  };
  /** What a node does: as little as keeps it alive, what kwok does, or what a kubelet does. */
  readonly fidelity: Fidelity;
  /** Which calls of a kubelet, with `kubelet`: see `parseCalls`; '': all. */
  readonly kubeletCalls: string;
  /** `I/N`, or `auto`: which part of the nodes is ours. */
  readonly shard: string;
  /** kwok's kinds that are read from the server; empty: all that it has. */
  readonly enableCrds: readonly string[];
  /** Registers the metrics API of the port with the API server. */
  readonly metricsApi: boolean;
  /** How nodes say that they are reached; port 0: the one of `serverAddress`. */
  readonly endpoint: KubeletEndpoint;
  readonly log: Log;
}

export type Log = (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;

export type Fidelity = (typeof FIDELITIES)[number];

export const FIDELITIES = ['lean', 'kwok', 'kubelet'] as const;

/**
 * Where renewals of leases go, remembered for each identity: there are a hundred thousand of them
 * in a second, all alike.
 */
import type { Identity } from '../request/identity.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { FlowConfig } from './flow-config.ts';
import type { FlowHashes } from './flow-hashes.ts';
import type { Route } from './held-request.ts';

/** Namespaces remembered for each identity. */
const NAMESPACES_MAX = 64;

export interface LeaseFlow {
  readonly route: Route;
  readonly distinguisher: string;
  readonly hash: bigint;
}

export class LeaseFlows {
  readonly #config: FlowConfig;
  readonly #hashes: FlowHashes;
  #known = new WeakMap<Identity, Map<string, LeaseFlow>>();
  #generation: object | null = null;
  /** What was asked last is asked again, most often. */
  #lastIdentity: Identity | null = null;
  #lastNamespace = '';
  #last: LeaseFlow | null = null;

  constructor(config: FlowConfig, hashes: FlowHashes) {
    this.#config = config;
    this.#hashes = hashes;
  }

  of(identity: Identity, namespace: string): LeaseFlow {
    const generation = this.#config.generation();
    if (this.#generation !== generation) {
      this.#generation = generation;
      this.#known = new WeakMap();
      this.#last = null;
    }
    const isLast = identity === this.#lastIdentity && namespace === this.#lastNamespace;
    if (isLast && this.#last !== null) return this.#last;
    this.#lastIdentity = identity;
    this.#lastNamespace = namespace;
    this.#last = this.#lookUp(identity, namespace);
    return this.#last;
  }

  #lookUp(identity: Identity, namespace: string): LeaseFlow {
    let flows = this.#known.get(identity);
    if (flows === undefined) this.#known.set(identity, (flows = new Map()));
    let flow = flows.get(namespace);
    if (flow !== undefined) return flow;
    if (flows.size >= NAMESPACES_MAX) flows.clear();
    flow = this.#find(identity, namespace);
    flows.set(namespace, flow);
    return flow;
  }

  #find(identity: Identity, namespace: string): LeaseFlow {
    const info = updateIn(namespace);
    const route = this.#config.routeOf(identity, info, info.verb);
    const distinguisher = this.#config.distinguish(route.schema, { identity, info });
    return { route, distinguisher, hash: this.#hashes.of(route.schema.name, distinguisher) };
  }
}

function updateIn(namespace: string): RequestInfo {
  return {
    isResource: true,
    path: '',
    verb: 'update',
    group: 'coordination.k8s.io',
    version: 'v1',
    namespace,
    resource: 'leases',
    name: '',
    subresource: '',
    extra: false,
    isInside: true,
  };
}

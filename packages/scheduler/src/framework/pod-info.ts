/** A pod as the evaluator sees it: its object, and what is derived from it once. */
import { labelSelectorOf, matchesLabels, type LabelSelector } from '@megaplane/machinery/selectors';
import { NOTHING } from '@megaplane/machinery/selectors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type {
  ContainerPort,
  LabelSelectorObject,
  BareLabels,
  Labels,
  PodObject,
  PodTermObject,
} from '../api/objects.ts';
import { labelsOf, namespaceOf } from '../api/objects.ts';
import { podRequests, podRequestsNonZero, type Resources } from '../api/resources.ts';

/** A host port that a pod takes. */
export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

/** A term of inter-pod (anti-)affinity, ready to be matched. */
export interface PodTerm {
  readonly topologyKey: string;
  readonly selector: LabelSelector;
  readonly namespaces: ReadonlySet<string>;
  /** Null: no selector of namespaces. */
  readonly namespaceSelector: LabelSelector | null;
  /** 0 for required terms. */
  readonly weight: number;
}

/** Absent selects nothing, as does one that cannot be parsed. */
export function selectorOf(object: LabelSelectorObject | undefined): LabelSelector {
  const parsed = labelSelectorOf(object as JsonObject | undefined);
  return 'error' in parsed ? NOTHING : parsed.value;
}

export function selects(selector: LabelSelector, labels: Labels | undefined): boolean {
  return matchesLabels(selector, labels);
}

/** What is summed up over a pod's containers. */
export type PodSums = Partial<Pick<PodInfo, 'requests' | 'requestsNonZero' | 'ports'>>;

export class PodInfo {
  readonly pod: PodObject;
  readonly namespace: string;
  /** `namespace/name`. */
  readonly key: string;
  readonly labels: BareLabels;
  readonly priority: number;
  readonly requests: Resources;
  readonly requestsNonZero: Resources;
  readonly ports: readonly HostPort[];
  readonly requiredAffinity: readonly PodTerm[];
  readonly requiredAntiAffinity: readonly PodTerm[];
  readonly preferredAffinity: readonly PodTerm[];
  readonly preferredAntiAffinity: readonly PodTerm[];

  /** `sibling`: a pod of the same class, or what is known otherwise and need not be summed up. */
  constructor(pod: PodObject, sibling?: PodSums) {
    this.pod = pod;
    this.namespace = namespaceOf(pod);
    this.key = `${this.namespace}/${pod.metadata.name}`;
    this.labels = labelsOf(pod.metadata.labels);
    this.priority = pod.spec.priority ?? 0;
    this.requests = sibling?.requests ?? podRequests(pod);
    this.requestsNonZero = sibling?.requestsNonZero ?? podRequestsNonZero(pod);
    this.ports = sibling?.ports ?? hostPortsOf(pod);
    const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
    this.requiredAffinity = this.#required(
      podAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
    );
    this.requiredAntiAffinity = this.#required(
      podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
    );
    this.preferredAffinity = (
      podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    ).map(({ weight, podAffinityTerm }) => this.#term(podAffinityTerm, weight));
    this.preferredAntiAffinity = (
      podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    ).map(({ weight, podAffinityTerm }) => this.#term(podAffinityTerm, weight));
  }

  get nodeName(): string {
    return this.pod.spec.nodeName ?? '';
  }

  get hasAffinityTerms(): boolean {
    const preferred = this.preferredAffinity.length + this.preferredAntiAffinity.length;
    return preferred + this.requiredAffinity.length + this.requiredAntiAffinity.length > 0;
  }

  get isTerminating(): boolean {
    return this.pod.metadata.deletionTimestamp !== undefined;
  }

  #required(terms: readonly PodTermObject[] | undefined): readonly PodTerm[] {
    return (terms ?? []).map((term) => this.#term(term, 0));
  }

  #term(term: PodTermObject, weight: number): PodTerm {
    const isOwnNamespace =
      (term.namespaces ?? []).length === 0 && term.namespaceSelector === undefined;
    return {
      topologyKey: term.topologyKey,
      selector: selectorOf(term.labelSelector),
      namespaces: new Set(isOwnNamespace ? [this.namespace] : term.namespaces),
      namespaceSelector:
        term.namespaceSelector === undefined ? null : selectorOf(term.namespaceSelector),
      weight,
    };
  }
}

function hostPortsOf(pod: PodObject): HostPort[] {
  const sidecars = (pod.spec.initContainers ?? []).filter(
    ({ restartPolicy }) => restartPolicy === 'Always',
  );
  return [...(pod.spec.containers ?? []), ...sidecars]
    .flatMap((container): readonly ContainerPort[] => container.ports ?? [])
    .filter(({ hostPort }) => (hostPort ?? 0) > 0)
    .map(({ hostIP, protocol, hostPort }) => ({
      ip: hostIP === undefined || hostIP === '' ? '0.0.0.0' : hostIP,
      protocol: protocol === undefined || protocol === '' ? 'TCP' : protocol,
      port: hostPort ?? 0,
    }));
}

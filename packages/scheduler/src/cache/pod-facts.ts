/** What the scheduler takes from one version of a pod; reused from pod to pod. */
export interface PodFacts {
  /** Interned, with one user each that whoever takes the facts must release. */
  podClass: number;
  labels: number;
  namespace: number;
  owner: number;
  /** What the pod takes from its node. */
  usage: number;
  /** Row of spec.nodeName, -1 without. */
  node: number;
  isTerminating: number;
  /** status.startTime, 0 without. */
  startMs: number;
  /** metadata.generation, 0 without. */
  specGeneration: number;
  /** metadata.resourceVersion, 0 where it is no number. */
  version: number;
  /** status.nominatedNodeName. */
  nominated: string;
  /** JSON of status.resourceClaimStatuses, or empty. */
  claims: string;
  readonly uid: Uint32Array;
}

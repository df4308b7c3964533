/** The Lease of a simulated kubelet, as request bodies; sizes and fields are those of a kubelet. */

import { numberAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';

export const LEASE_PATH = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

/**
 * The Lease of `node` as of `renewTime` (MicroTime). `resourceVersion` 0 leaves it out, as a
 * creation must; `uid` is the Node's, which owns the Lease.
 */
export function leaseBody(
  node: string,
  uid: string,
  resourceVersion: number,
  durationSeconds: number,
  renewTime: string,
  holder: string = node,
  transitions: number = 0,
): string {
  const changes = transitions === 0 ? '' : `"leaseTransitions":${transitions},`;
  const version = resourceVersion === 0 ? '' : `"resourceVersion":"${resourceVersion}",`;
  return (
    `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"${node}",` +
    `"namespace":"kube-node-lease",${version}"ownerReferences":[{"apiVersion":"v1",` +
    `"kind":"Node","name":"${node}","uid":"${uid}"}]},"spec":{"holderIdentity":"${holder}",` +
    `"leaseDurationSeconds":${durationSeconds},${changes}"renewTime":"${renewTime}"}}`
  );
}

let lastMs = 0;
let lastText = '1970-01-01T00:00:00.000000Z';

/** Milliseconds since 1970 as MicroTime: RFC 3339 with six digits. */
export function microTime(timeMs: number): string {
  // Renewals go out in groups, and those of a millisecond have one time.
  const wholeMs = Math.floor(timeMs);
  if (wholeMs !== lastMs) lastText = `${new Date(wholeMs).toISOString().slice(0, -1)}000Z`;
  lastMs = wholeMs;
  return lastText;
}

/** Milliseconds since 1970 as Time: RFC 3339 in whole seconds. */
export function secondTime(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, -5)}Z`;
}

/** What a Lease (as JSON) says of who holds it. */
export function holderOf(lease: JsonObject): {
  readonly holder: string;
  readonly transitions: number;
  /** Milliseconds since 1970. */
  readonly untilMs: number;
} {
  const renewMs = Date.parse(stringAt(lease, 'spec', 'renewTime'));
  const lastsMs = numberAt(lease, 'spec', 'leaseDurationSeconds') * 1000;
  return {
    holder: stringAt(lease, 'spec', 'holderIdentity'),
    transitions: numberAt(lease, 'spec', 'leaseTransitions'),
    untilMs: Number.isNaN(renewMs) ? 0 : renewMs + lastsMs,
  };
}

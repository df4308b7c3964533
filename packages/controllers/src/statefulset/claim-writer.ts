/** The claims of a StatefulSet's pods: made before them, and owned as the retention policy says. */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectCache } from '../framework/object-cache.ts';
import { failureOf, type PodOwner } from '../framework/pod-control.ts';
import { goWithPods, judgeClaim, namesPod } from './claim-owners.ts';
import { claimsOfOrdinal } from './stateful-set.ts';

/** A pod whose claims are looked at, and whether its ordinal is still wanted. */
export interface ClaimedPod {
  readonly name: string;
  readonly ordinal: number;
  readonly isScaledAway: boolean;
  /** It has just been made or waits: only then people are told again of what is left as it is. */
  readonly isPending: boolean;
}

type Tell = (owner: PodOwner, type: 'Normal' | 'Warning', reason: string, message: string) => void;

/** What keeping the claims of a pod came to. */
export type Kept = 'unchanged' | 'written' | 'failed';

export class ClaimWriter {
  readonly #client: Client;
  readonly #claims: ObjectCache;
  readonly #tell: Tell;

  constructor(client: Client, claims: ObjectCache, tell: Tell) {
    this.#client = client;
    this.#claims = claims;
    this.#tell = tell;
  }

  /** Makes the claims of an ordinal that are missing; answers why the pod cannot have them all. */
  async make(set: JsonObject, owner: PodOwner, ordinal: number): Promise<string | undefined> {
    const errors: string[] = [];
    for (const wanted of claimsOfOrdinal(set, owner, ordinal)) {
      const name = stringAt(wanted, 'metadata', 'name');
      const claim = this.#claims.get(`${owner.namespace}/${name}`);
      if (claim === undefined) {
        const error = await this.#makeOne(owner, `${owner.name}-${ordinal}`, name, wanted);
        if (error !== undefined) errors.push(`failed to create PVC ${name}: ${error}`);
      } else if (stringAt(claim, 'metadata', 'deletionTimestamp') !== '') {
        errors.push(`pvc ${name} is being deleted`);
      }
    }
    if (errors.length === 0) return undefined;
    return errors.length === 1 ? errors[0] : `[${errors.join(', ')}]`;
  }

  async #makeOne(
    owner: PodOwner,
    pod: string,
    name: string,
    claim: JsonObject,
  ): Promise<string | undefined> {
    const path = `/api/v1/namespaces/${owner.namespace}/persistentvolumeclaims`;
    const answer = await this.#client.request({ method: 'POST', path, body: claim });
    // It was made before, and is not in view yet.
    if (!answer.ok && answer.code === 409) return undefined;
    if (answer.ok) {
      const text = `create Claim ${name} Pod ${pod} in StatefulSet ${owner.name} success`;
      this.#tell(owner, 'Normal', 'SuccessfulCreate', text);
      return undefined;
    }
    const error = failureOf(answer).text;
    const text = `create Claim ${name} for Pod ${pod} in StatefulSet ${owner.name}`;
    this.#tell(owner, 'Warning', 'FailedCreate', `${text} failed error: ${error}`);
    return error;
  }

  /**
   * Whether a claim of a pod that is to be made still names an earlier pod as its owner. It will
   * be collected, and the pod must not come before.
   */
  isStale(set: JsonObject, owner: PodOwner, ordinal: number): boolean {
    if (!goWithPods(set)) return false;
    const pod = `${owner.name}-${ordinal}`;
    return claimsOfOrdinal(set, owner, ordinal).some((wanted) => {
      const name = stringAt(wanted, 'metadata', 'name');
      const claim = this.#claims.get(`${owner.namespace}/${name}`);
      return claim !== undefined && namesPod(listAt(claim, 'metadata', 'ownerReferences'), pod);
    });
  }

  /** Writes the owner references of a pod's claims where they are not as the policy says. */
  async keep(set: JsonObject, owner: PodOwner, pod: ClaimedPod): Promise<Kept> {
    let kept: Kept = 'unchanged';
    for (const wanted of claimsOfOrdinal(set, owner, pod.ordinal)) {
      const name = stringAt(wanted, 'metadata', 'name');
      const claim = this.#claims.get(`${owner.namespace}/${name}`);
      if (claim === undefined) continue;
      const before = listAt(claim, 'metadata', 'ownerReferences');
      const guess = judgeClaim(before, set, owner, { ...pod, uid: '' });
      if (guess.owners === undefined && !(guess.hasConflict && pod.isPending)) continue;
      // Only now the pod's own uid matters: to name it, or to tell it from an earlier one.
      const needsUid = namesPod(before, pod.name) || namesPod(guess.owners ?? [], pod.name);
      const uid = needsUid ? await this.#uidOfPod(owner, pod.name) : '';
      if (uid === undefined) continue;
      const { owners, hasConflict } = judgeClaim(before, set, owner, { ...pod, uid });
      const isTold = hasConflict && (owners !== undefined || pod.isPending);
      if (isTold) this.#tellConflict(owner, name);
      if (owners === undefined) continue;
      const path = `/api/v1/namespaces/${owner.namespace}/persistentvolumeclaims/${name}`;
      const metadata = { ...objectAt(claim, 'metadata'), ownerReferences: [...owners] };
      const body = { ...claim, apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata };
      const answer = await this.#client.request({ method: 'PUT', path, body });
      if (!answer.ok && answer.code !== 404) return 'failed';
      if (answer.ok) kept = 'written';
    }
    return kept;
  }

  #tellConflict(owner: PodOwner, claim: string): void {
    const who = 'has a conflicting OwnerReference that acts as a manging controller';
    const text = `${claim} ${who}, the retention policy is ignored for this claim`;
    this.#tell(owner, 'Warning', 'ConflictingController', `PersistentVolumeClaim ${text}`);
  }

  /** Undefined for a pod that is gone. */
  async #uidOfPod({ namespace }: PodOwner, name: string): Promise<string | undefined> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const answer = await this.#client.request({ method: 'GET', path });
    return answer.ok ? stringAt(answer.object, 'metadata', 'uid') : undefined;
  }
}

/**
 * The pods of a Job by its selector: those that match and belong to nobody are taken, with the
 * finalizer that keeps them until they are counted; those that match no more are let go.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { labelSelectorOf } from '@megaplane/machinery/selectors';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import { TRACKING } from './job-pods.ts';
import { controllerReference, revisionOf, type PodOwner } from '../framework/pod-control.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { REPLICA_DELETING } from '../columns/replica-pods.ts';

export class JobClaims {
  readonly #client: Client;
  readonly #pods: PodRows;
  /** Jobs, by uid, whose namespace was searched for pods that belong to nobody. */
  readonly #searched: Set<string> = new Set();

  constructor(client: Client, pods: PodRows) {
    this.#client = client;
    this.#pods = pods;
  }

  /** A pod that belongs to nobody may be this Job's: it is searched for at the next claim. */
  searchAgain(uid: string): void {
    this.#searched.delete(uid);
  }

  /** Revisions of what was written, 0 for a pod that is gone, -1 for a write that failed. */
  async claim(job: JsonObject, owner: PodOwner): Promise<readonly number[]> {
    if (stringAt(job, 'metadata', 'deletionTimestamp') !== '') return [];
    const parsed = labelSelectorOf(objectAt(job, 'spec', 'selector'));
    if ('error' in parsed || parsed.value.requirements.length === 0) return [];
    const program = new LabelProgram(parsed.value);
    const stray = this.#stray(owner, program);
    const isSearched = this.#searched.has(owner.uid);
    const orphans = isSearched ? [] : this.#orphans(owner, program);
    this.#searched.add(owner.uid);
    if (orphans.length > 0 && !(await this.#isThere(owner))) return [-1];
    const release = {
      ownerReferences: [{ $patch: 'delete', uid: owner.uid }],
      '$deleteFromPrimitiveList/finalizers': [TRACKING],
    };
    const adopt = { ownerReferences: [controllerReference(owner)], finalizers: [TRACKING] };
    const revisions = await Promise.all([
      ...stray.map((row) => this.#patch(row, release)),
      ...orphans.map((row) => this.#patch(row, adopt)),
    ]);
    if (revisions.includes(-1)) this.#searched.delete(owner.uid);
    return revisions;
  }

  #stray(owner: PodOwner, program: LabelProgram): number[] {
    const { pods } = this.#pods;
    const rows: number[] = [];
    const id = pods.findOwner(owner.uid);
    for (let row = pods.firstOfOwner(id); row >= 0; row = pods.nextOfOwner(row)) {
      const labels = pods.labelsOf(row);
      if (labels < 0 || !pods.matches(labels, program)) rows.push(row);
    }
    return rows;
  }

  #orphans({ namespace }: PodOwner, program: LabelProgram): number[] {
    const { pods } = this.#pods;
    const rows: number[] = [];
    for (let one = pods.firstSet(namespace); one >= 0; one = pods.nextSet(one)) {
      if (!pods.matches(one, program)) continue;
      for (let row = pods.firstOfSet(one); row >= 0; row = pods.nextOfSet(row)) {
        const isDeleting = (pods.flags.get(row) & REPLICA_DELETING) !== 0;
        if (pods.ownerOf(row) < 0 && !isDeleting) rows.push(row);
      }
    }
    return rows;
  }

  /** Nothing is taken for a Job that the server has no more, or that goes. */
  async #isThere({ namespace, name, uid }: PodOwner): Promise<boolean> {
    const path = `/apis/batch/v1/namespaces/${namespace}/jobs/${name}`;
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) return false;
    const isGoing = stringAt(answer.object, 'metadata', 'deletionTimestamp') !== '';
    return stringAt(answer.object, 'metadata', 'uid') === uid && !isGoing;
  }

  async #patch(row: number, change: JsonObject): Promise<number> {
    const { informer } = this.#pods;
    const [namespace = '', name = ''] = informer.keyOf(row).split('/');
    const resourceVersion = String(informer.resourceVersionOf(row));
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `/api/v1/namespaces/${namespace}/pods/${name}`,
      contentType: CONTENT.strategicPatch,
      body: { metadata: { resourceVersion, ...change } },
    });
    if (answer.ok) return revisionOf(answer.object);
    return answer.code === 404 || answer.code === 422 ? 0 : -1;
  }
}

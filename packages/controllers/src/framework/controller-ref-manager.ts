/**
 * Who owns which pods, for controllers whose pods are told apart by more than a count: lets go of
 * those that no longer match, and takes those that do and belong to nobody.
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { labelSelectorOf } from '@megaplane/machinery/selectors';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import type { PodControl, PodOwner } from './pod-control.ts';
import type { PodRows } from './pod-rows.ts';
import { REPLICA_DELETING } from '../columns/replica-pods.ts';

/** What came of it: revisions of what was written, none where there was nothing to do. */
export type Claimed = { readonly revisions: readonly number[] } | 'failed';

export class ControllerRefManager {
  readonly #client: Client;
  readonly #control: PodControl;
  readonly #pods: PodRows;
  /** By key of the owner. */
  readonly #programs: Map<string, LabelProgram> = new Map();

  constructor(client: Client, control: PodControl, pods: PodRows) {
    this.#client = client;
    this.#control = control;
    this.#pods = pods;
  }

  /** Takes note of an owner's selector, or that it is gone. An empty one selects nothing. */
  note(key: string, owner: JsonObject | undefined): void {
    const parsed = labelSelectorOf(objectAt(owner, 'spec', 'selector'));
    const isUsable = owner !== undefined && !('error' in parsed);
    if (!isUsable || parsed.value.requirements.length === 0) this.#programs.delete(key);
    else this.#programs.set(key, new LabelProgram(parsed.value));
  }

  /** Those of `keys` whose selector matches a pod that belongs to nobody. */
  *wanting(row: number, keys: Iterable<string>): Iterable<string> {
    const { pods } = this.#pods;
    const labels = pods.labelsOf(row);
    if (labels < 0 || pods.ownerOf(row) >= 0) return;
    if ((pods.flags.get(row) & REPLICA_DELETING) !== 0) return;
    for (const key of keys) {
      const program = this.#programs.get(key);
      if (program !== undefined && pods.matches(labels, program)) yield key;
    }
  }

  /**
   * Writes the references that are amiss. `path` is the owner's: before anything is taken it is
   * read from the server, as what is going must take nothing along. `isMember` is asked for the
   * names of pods whose labels match.
   */
  async claim(
    key: string,
    path: string,
    owner: PodOwner,
    isMember: (name: string) => boolean = () => true,
  ): Promise<Claimed> {
    const stray = this.#strays(key, owner, isMember);
    const orphans = this.#orphans(key, owner, isMember);
    if (stray.length === 0 && orphans.length === 0) return { revisions: [] };
    // Rows may serve other pods after the first wait.
    const claims = [...stray, ...orphans].map((row, index) => ({
      verb: index < stray.length ? ('release' as const) : ('adopt' as const),
      path: `/api/v1/namespaces/${owner.namespace}/pods/${this.#nameOf(row)}`,
      revision: this.#pods.informer.resourceVersionOf(row),
    }));
    if (orphans.length > 0 && !(await this.#mayAdopt(path, owner))) return 'failed';
    const revisions = await Promise.all(
      claims.map((one) => this.#control[one.verb](one.path, owner, one.revision)),
    );
    if (revisions.includes(-1)) return 'failed';
    return { revisions };
  }

  #nameOf(row: number): string {
    const pod = this.#pods.informer.keyOf(row);
    return pod.slice(pod.indexOf('/') + 1);
  }

  #strays(key: string, owner: PodOwner, isMember: (name: string) => boolean): number[] {
    const { pods } = this.#pods;
    const program = this.#programs.get(key);
    // Pods share label sets: each is matched once, however many pods have it.
    const known: Map<number, boolean> = new Map();
    const rows: number[] = [];
    const id = pods.findOwner(owner.uid);
    for (let row = pods.firstOfOwner(id); row >= 0; row = pods.nextOfOwner(row)) {
      if ((pods.flags.get(row) & REPLICA_DELETING) !== 0) continue;
      const labels = pods.labelsOf(row);
      let isMatch = known.get(labels);
      if (isMatch === undefined) {
        isMatch = labels >= 0 && program !== undefined && pods.matches(labels, program);
        known.set(labels, isMatch);
      }
      if (!isMatch || !isMember(this.#nameOf(row))) rows.push(row);
    }
    return rows;
  }

  #orphans(key: string, owner: PodOwner, isMember: (name: string) => boolean): number[] {
    const { pods } = this.#pods;
    const program = this.#programs.get(key);
    const rows: number[] = [];
    if (program === undefined) return rows;
    for (let one = pods.firstSet(owner.namespace); one >= 0; one = pods.nextSet(one)) {
      if (!pods.matches(one, program)) continue;
      for (let row = pods.firstOfSet(one); row >= 0; row = pods.nextOfSet(row)) {
        const isFree = pods.ownerOf(row) < 0 && (pods.flags.get(row) & REPLICA_DELETING) === 0;
        if (isFree && isMember(this.#nameOf(row))) rows.push(row);
      }
    }
    return rows;
  }

  async #mayAdopt(path: string, owner: PodOwner): Promise<boolean> {
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) return false;
    const metadata = objectAt(answer.object, 'metadata');
    const isGoing = stringAt(metadata, 'deletionTimestamp') !== '';
    return stringAt(metadata, 'uid') === owner.uid && !isGoing;
  }
}

/** Keeps pods out of the queue as long as something that they name is missing. */
import { ClaimWatch } from '../cache/claim-watch.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import { NO_METER, type CycleMeter } from '../framework/cycle-meter.ts';
import { Evaluator } from '../placement/evaluator.ts';
import { GANG_SCHEDULING } from '../podgroup/gang-cycle.ts';
import { PodGroups } from '../podgroup/pod-groups.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { ActiveProfile } from '../placement/placement-options.ts';
import type { PodClass } from '../cache/pod-class.ts';

export class Gatekeeper {
  readonly groups: PodGroups;
  /** Who names which claim for devices. */
  readonly claimants: ClaimWatch = new ClaimWatch();
  /** Who is told how long it takes. */
  meter: CycleMeter = NO_METER;
  readonly #view: ClusterView;
  readonly #profiles: ReadonlyMap<string, ActiveProfile>;

  constructor(
    objects: ObjectStore,
    view: ClusterView,
    profiles: ReadonlyMap<string, ActiveProfile>,
  ) {
    this.groups = new PodGroups(objects);
    this.#view = view;
    this.#profiles = profiles;
  }

  /**
   * A pod counts for its group once it has a node, or while one of our profiles is to find one.
   * Returns the group's key if it has one pod more, or empty.
   */
  enlist(id: number, isPlaced: boolean, podClass: PodClass, namespace: string): string {
    const { group, schedulerName } = podClass;
    const isMember = group !== '' && (isPlaced || this.#profiles.has(schedulerName));
    const key = isMember ? `${namespace}/${group}` : '';
    return this.groups.set(id, key) ? key : '';
  }

  /** Whether a pod is not to be tried, by its own gates or because a plugin says so. */
  isHeldBack(id: number, podClass: PodClass): boolean {
    const since = this.meter.now();
    const isHeldBack = this.#holdsBack(id, podClass);
    const { schedulerName } = podClass;
    if (this.#profiles.has(schedulerName)) {
      const status = isHeldBack ? 'UnschedulableAndUnresolvable' : 'Success';
      this.meter.pointEnded('PreEnqueue', status, schedulerName, since);
    }
    return isHeldBack;
  }

  #holdsBack(id: number, { isGated, schedulerName, template }: PodClass): boolean {
    if (isGated) return true;
    const group = this.groups.groupOf(id);
    if (group !== '' && this.groups.problemOf(group) !== '') return true;
    const profile = this.#profiles.get(schedulerName)?.profile;
    if (profile === undefined) return false;
    const claims = template.spec.resourceClaims ?? [];
    if (claims.length === 0 && !profile.hasOwnGates) return false;
    const pod = this.#view.podAt(id);
    const made = pod.pod.status?.resourceClaimStatuses ?? [];
    const names = claims.flatMap(({ name, resourceClaimName }) => {
      const own = resourceClaimName ?? made.find((one) => one.name === name)?.resourceClaimName;
      return own === undefined ? [] : [`${pod.namespace}/${own}`];
    });
    this.claimants.set(id, names);
    return Evaluator.gateOf(pod, this.#view, profile) !== null;
  }

  /** The plugin that keeps a pod out of the queue; empty if none does any more. */
  holderOf(id: number, { isGated, schedulerName }: PodClass): string {
    if (isGated) return 'SchedulingGates';
    const group = this.groups.groupOf(id);
    if (group !== '' && this.groups.problemOf(group) !== '') return GANG_SCHEDULING;
    const profile = this.#profiles.get(schedulerName)?.profile;
    return profile === undefined
      ? ''
      : Evaluator.gatekeeperOf(this.#view.podAt(id), this.#view, profile);
  }
}

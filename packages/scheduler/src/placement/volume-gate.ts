/**
 * What the volumes of a pod say about nodes, where that takes no look at all of them. Claims that
 * are bound say by labels where their volumes are, and for those that wait for their first consumer
 * a class of storage says by labels where volumes are made; few nodes have about as many volumes as
 * their drivers allow: only those are counted in earnest.
 */
import { HOSTNAME_KEY } from '../cache/node-facts.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import type { Identities } from '../cache/identities.ts';
import type { Matchable, NodeTest } from '../api/node-selector.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { NodeSelectorObject } from '../api/objects.ts';
import type { PodClass } from '../cache/pod-class.ts';
import { OpenVolumes } from '../cache/open-volumes.ts';
import type { PodTable } from '../cache/pod-table.ts';
import {
  NO_PROVISIONER,
  provisioningProblem,
  tellsSpace,
  VolumeBinding,
  type CapacityObject,
} from '../framework/plugins/volume-binding.ts';
import { isWithin, topologyLabelsOf, type Topology } from '../framework/plugins/volume-zone.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import { VolumeRoom } from '../cache/volume-room.ts';
import { translatedVolume, translationError } from '../framework/volume-topology.ts';
import type { Reservation } from '../framework/reservation.ts';
import { SELECTED_NODE } from '../framework/plugins/volume-reservation.ts';
import {
  claimBytes,
  classNameOf,
  isBound,
  isReachable,
  type ClaimObject,
  type StorageClassObject,
  type VolumeObject,
} from '../framework/volumes.ts';

export interface VolumeSay {
  /** The pod's class, with what its volumes ask of the labels of nodes. */
  readonly podClass: PodClass;
  /** Nodes that have no room for its volumes. */
  readonly excluded: ReadonlySet<number>;
  /** Claims for which volumes are to be made where the pod goes. */
  readonly delayed: readonly ClaimObject[];
}

/** What is known of the claims of a pod. */
interface Claimed {
  readonly volumes: VolumeObject[];
  readonly delayed: Set<ClaimObject>;
}

/** A class of storage that does not make volumes everywhere. */
interface Making {
  readonly claim: ClaimObject;
  /** Different text where other nodes will do. */
  readonly text: string;
  /** It asks for names of hosts. */
  readonly isNameBound: boolean;
}

export interface VolumeGateOptions {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly objects: ObjectStore;
  readonly view: ClusterView;
}

const PLUGINS = ['VolumeRestrictions', 'NodeVolumeLimits', 'VolumeBinding', 'VolumeZone'];
/** Nodes with room for fewer are watched; pods with as many claims are evaluated in full. */
const ROOM_WATCHED = 8;
/** More such nodes are no exception any more. */
const NEAR_MAX = 64;
/** Classes of storage of which it is known whether they name hosts. */
const ASKED_MAX = 1024;
const NOBODY: ReadonlySet<number> = new Set();

export class VolumeGate {
  readonly #options: VolumeGateOptions;
  readonly #room: VolumeRoom;
  readonly #open: OpenVolumes;
  /** By class of storage and stamp: whether hosts are named. */
  readonly #asked = new Map<string, boolean>();
  readonly #areOn = new WeakMap<Profile, boolean>();

  constructor(options: VolumeGateOptions) {
    this.#options = options;
    this.#room = new VolumeRoom(options.nodes, options.objects, ROOM_WATCHED);
    this.#open = new OpenVolumes(options.objects);
  }

  /** Pods took a node with so many volumes, or left it. */
  count(node: number, delta: number): void {
    this.#room.count(node, delta);
  }

  /** Null where full evaluation must tell. */
  say(id: number, podClass: PodClass, profile: Profile): VolumeSay | null {
    if (podClass.claims.length >= ROOM_WATCHED || !this.#isOn(profile)) return null;
    const claimed = this.#claimedBy(id, podClass);
    if (claimed === null) return null;
    const excluded = this.#withoutRoom(id, profile);
    if (excluded === null) return null;
    const delayed = [...claimed.delayed];
    const narrowed = this.#narrowed(podClass, claimed.volumes, this.#makingOf(delayed));
    return narrowed === null ? null : { podClass: narrowed, excluded, delayed };
  }

  /** What is to be done before a pod is bound to a node at which volumes are to be made. */
  reserve(node: number, delayed: readonly ClaimObject[], profile: Profile): readonly Reservation[] {
    const plugin = profile.plugins.get('VolumeBinding');
    if (!(plugin instanceof VolumeBinding)) throw new Error('VolumeBinding is not on');
    const reservation = plugin.provision(delayed, this.#options.view.bareNodeAt(node));
    return reservation === null ? [] : [reservation];
  }

  /** Null where anything else is to be said of a claim. */
  #claimedBy(id: number, { claims }: PodClass): Claimed | null {
    const { pods, identities, objects } = this.#options;
    const namespace = identities.namespaces.get(pods.namespace.get(id));
    const claimed: Claimed = { volumes: [], delayed: new Set() };
    for (const name of claims) {
      const key = `${namespace}/${name}`;
      const claim: ClaimObject | undefined = objects.object('PersistentVolumeClaim', key);
      if (claim === undefined || claim.status?.phase === 'Lost') return null;
      if (claim.metadata.deletionTimestamp !== undefined) return null;
      if (claim.spec?.accessModes?.includes('ReadWriteOncePod') === true) return null;
      if (isBound(claim)) {
        const volumeName = claim.spec?.volumeName ?? '';
        const volume: VolumeObject | undefined = objects.object('PersistentVolume', volumeName);
        if (volume === undefined) return null;
        // Where it can be used is a matter of what each node leaves to drivers.
        if (translatedVolume(volume) !== volume || translationError(volume) !== '') return null;
        claimed.volumes.push(volume);
      } else if (this.#isToBeMade(claim)) {
        claimed.delayed.add(claim);
      } else {
        return null;
      }
    }
    return claimed;
  }

  /** Whether a claim gets a volume that is yet to be made, wherever its first pod goes. */
  #isToBeMade(claim: ClaimObject): boolean {
    if ((claim.spec?.volumeName ?? '') !== '') return false;
    if (claim.metadata.annotations?.[SELECTED_NODE] !== undefined) return false;
    const storageClass = this.#classOf(claim);
    const { volumeBindingMode, provisioner = '' } = storageClass ?? {};
    if (volumeBindingMode !== 'WaitForFirstConsumer') return false;
    return provisioner !== '' && provisioner !== NO_PROVISIONER && !this.#open.hasAny(claim);
  }

  #classOf(claim: ClaimObject): StorageClassObject | undefined {
    return this.#options.objects.object('StorageClass', classNameOf(claim));
  }

  /** Claims whose volumes are not made everywhere. */
  #makingOf(delayed: readonly ClaimObject[]): Making[] {
    const { objects } = this.#options;
    return delayed.flatMap((claim) => {
      const storageClass = this.#classOf(claim);
      if (storageClass === undefined) return [];
      const { metadata, allowedTopologies = [] } = storageClass;
      const isCounted = tellsSpace(storageClass, objects);
      if (allowedTopologies.length === 0 && !isCounted) return [];
      const versions = ['StorageClass', 'CSIDriver', ...(isCounted ? ['CSIStorageCapacity'] : [])];
      const stamp = versions.map((kind) => objects.versionOf(kind)).join();
      const bytes = isCounted ? String(claimBytes(claim)) : '';
      const isNameBound = this.#asksForHosts(storageClass, isCounted, stamp);
      return [{ claim, text: `${metadata.name} ${bytes} ${stamp}`, isNameBound }];
    });
  }

  /** Whether a class of storage, or the space that its driver tells of, is for hosts by name. */
  #asksForHosts(storageClass: StorageClassObject, isCounted: boolean, stamp: string): boolean {
    const { metadata, allowedTopologies = [] } = storageClass;
    const text = `${metadata.name} ${stamp}`;
    let known = this.#asked.get(text);
    if (known === undefined) {
      const spaces = isCounted ? this.#options.objects.objects('CSIStorageCapacity') : [];
      known =
        allowedTopologies.some(({ matchLabelExpressions = [] }) =>
          matchLabelExpressions.some(({ key }) => key === HOSTNAME_KEY),
        ) ||
        [...(spaces as Iterable<CapacityObject>)].some(
          ({ storageClassName, nodeTopology: { matchLabels, matchExpressions } = {} }) =>
            storageClassName === metadata.name &&
            (matchLabels?.[HOSTNAME_KEY] !== undefined ||
              (matchExpressions ?? []).some(({ key }) => key === HOSTNAME_KEY)),
        );
      if (this.#asked.size >= ASKED_MAX) this.#asked.clear();
      this.#asked.set(text, known);
    }
    return known;
  }

  #narrowed(
    podClass: PodClass,
    volumes: readonly VolumeObject[],
    making: readonly Making[],
  ): PodClass | null {
    const places = volumes.filter(({ spec }) => spec?.nodeAffinity?.required !== undefined);
    const topologies = volumes.flatMap(({ metadata }) => topologyLabelsOf(metadata.labels ?? {}));
    if (places.length + topologies.length + making.length === 0) return podClass;
    const { nodes, identities, view } = this.#options;
    const selectors = places.map(({ spec }) => spec?.nodeAffinity?.required);
    const names = selectors.map(hostsOf).filter((hosts) => hosts !== null);
    // One host's name may be many nodes' then.
    if (names.length > 0 && nodes.sharedHostnames > 0) return null;
    const asked = topologies.map(({ key, values }) => [key, [...values].toSorted()]);
    const made = making.map(({ text }) => text);
    const text = JSON.stringify([podClass.nodeClass, selectors, asked, made]);
    const isMade = (node: Matchable): boolean =>
      making.every(({ claim }) => provisioningProblem(claim, node, view) === null);
    return {
      ...podClass,
      nodes: new VolumePlaces(podClass.nodes, places, topologies, isMade),
      isNameBound:
        podClass.isNameBound ||
        selectors.some(namesHosts) ||
        making.some(({ isNameBound }) => isNameBound),
      nodeNames: names.reduce(common, podClass.nodeNames),
      nodeClass: identities.nodeClasses.derive(podClass.nodeClass, text),
    };
  }

  #isOn(profile: Profile): boolean {
    let isOn = this.#areOn.get(profile);
    if (isOn === undefined) {
      const { preFilter, filter } = profile;
      isOn = PLUGINS.every((plugin) =>
        [preFilter, filter].every((point) => point.some(({ name }) => name === plugin)),
      );
      this.#areOn.set(profile, isOn);
    }
    return isOn;
  }

  /** Nodes that the volumes of a pod are too many for; null where many nodes are about full. */
  #withoutRoom(id: number, profile: Profile): ReadonlySet<number> | null {
    this.#room.catchUp();
    const { near } = this.#room;
    if (near.size === 0) return NOBODY;
    if (near.size > NEAR_MAX) return null;
    const { view } = this.#options;
    const outcome = profile.plugins.get('NodeVolumeLimits')?.preFilter?.(view.podAt(id), view);
    if (outcome?.kind !== 'run') return null;
    const excluded = new Set<number>();
    for (const node of near) {
      const rejection = outcome.filter.filter(view.nodeAt(node));
      if (rejection?.code === 'error') return null;
      if (rejection !== null) excluded.add(node);
    }
    return excluded;
  }
}

/** Nodes that a pod asks for, at which its volumes are. */
class VolumePlaces implements NodeTest {
  readonly #own: NodeTest;
  readonly #volumes: readonly VolumeObject[];
  readonly #topologies: readonly Topology[];
  readonly #isMade: (node: Matchable) => boolean;

  constructor(
    own: NodeTest,
    volumes: readonly VolumeObject[],
    topologies: readonly Topology[],
    isMade: (node: Matchable) => boolean,
  ) {
    this.#own = own;
    this.#volumes = volumes;
    this.#topologies = topologies;
    this.#isMade = isMade;
  }

  matches(node: Matchable): boolean {
    if (!this.#own.matches(node)) return false;
    if (!this.#volumes.every((volume) => isReachable(volume, node))) return false;
    return isWithin(this.#topologies, node.labels) && this.#isMade(node);
  }
}

/** The hosts that a selector names, if each of its terms does. */
function hostsOf(selector: NodeSelectorObject | undefined): ReadonlySet<string> | null {
  const hosts = new Set<string>();
  for (const { matchExpressions = [] } of selector?.nodeSelectorTerms ?? []) {
    const named = matchExpressions?.find(
      ({ key, operator }) => key === HOSTNAME_KEY && operator === 'In',
    );
    if (named === undefined) return null;
    for (const value of named.values ?? []) hosts.add(value);
  }
  return hosts;
}

function namesHosts(selector: NodeSelectorObject | undefined): boolean {
  return (selector?.nodeSelectorTerms ?? []).some(({ matchExpressions }) =>
    (matchExpressions ?? []).some(({ key }) => key === HOSTNAME_KEY),
  );
}

function common(
  names: ReadonlySet<string> | null,
  others: ReadonlySet<string>,
): ReadonlySet<string> {
  return names === null ? others : names.intersection(others);
}

/**
 * What the volumes of a pod say about nodes, where that takes no look at all of them. Claims that
 * are bound say by labels where their volumes are; and few nodes have about as many volumes as
 * their drivers allow: only those are counted in earnest.
 */
import { HOSTNAME_KEY } from './node-facts.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Identities } from './identities.ts';
import type { Matchable, NodeTest } from './node-selector.ts';
import type { NodeTable } from './node-table.ts';
import type { ObjectStore } from './object-store.ts';
import type { NodeSelectorObject } from './objects.ts';
import type { PodClass } from './pod-class.ts';
import type { PodTable } from './pod-table.ts';
import { isWithin, topologyLabelsOf, type Topology } from './plugins/volume-zone.ts';
import type { Profile } from './profile.ts';
import { VolumeRoom } from './volume-room.ts';
import { translatedVolume } from './volume-topology.ts';
import { isBound, isReachable, type ClaimObject, type VolumeObject } from './volumes.ts';

export interface VolumeSay {
  /** The pod's class, with what its volumes ask of the labels of nodes. */
  readonly podClass: PodClass;
  /** Nodes that have no room for its volumes. */
  readonly excluded: ReadonlySet<number>;
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
const NOBODY: ReadonlySet<number> = new Set();

export class VolumeGate {
  readonly #options: VolumeGateOptions;
  readonly #room: VolumeRoom;
  readonly #areOn = new WeakMap<Profile, boolean>();

  constructor(options: VolumeGateOptions) {
    this.#options = options;
    this.#room = new VolumeRoom(options.nodes, options.objects, ROOM_WATCHED);
  }

  /** Pods took a node with so many volumes, or left it. */
  count(node: number, delta: number): void {
    this.#room.count(node, delta);
  }

  /** Null where full evaluation must tell. */
  say(id: number, podClass: PodClass, profile: Profile): VolumeSay | null {
    if (podClass.claims.length >= ROOM_WATCHED || !this.#isOn(profile)) return null;
    const volumes = this.#volumesOf(id, podClass);
    if (volumes === null) return null;
    const excluded = this.#withoutRoom(id, profile);
    if (excluded === null) return null;
    const narrowed = this.#narrowed(podClass, volumes);
    return narrowed === null ? null : { podClass: narrowed, excluded };
  }

  /** The volumes of bound claims; null where anything else is to be said of a claim. */
  #volumesOf(id: number, { claims }: PodClass): readonly VolumeObject[] | null {
    const { pods, identities, objects } = this.#options;
    const namespace = identities.namespaces.get(pods.namespace.get(id));
    const volumes: VolumeObject[] = [];
    for (const name of claims) {
      const key = `${namespace}/${name}`;
      const claim: ClaimObject | undefined = objects.object('PersistentVolumeClaim', key);
      if (claim === undefined || !isBound(claim) || claim.status?.phase === 'Lost') return null;
      if (claim.metadata.deletionTimestamp !== undefined) return null;
      if (claim.spec?.accessModes?.includes('ReadWriteOncePod') === true) return null;
      const volumeName = claim.spec?.volumeName ?? '';
      const volume: VolumeObject | undefined = objects.object('PersistentVolume', volumeName);
      if (volume === undefined) return null;
      // Where it can be used is a matter of what each node leaves to drivers.
      if (translatedVolume(volume) !== volume) return null;
      volumes.push(volume);
    }
    return volumes;
  }

  #narrowed(podClass: PodClass, volumes: readonly VolumeObject[]): PodClass | null {
    const places = volumes.filter(({ spec }) => spec?.nodeAffinity?.required !== undefined);
    const topologies = volumes.flatMap(({ metadata }) => topologyLabelsOf(metadata.labels ?? {}));
    if (places.length + topologies.length === 0) return podClass;
    const { nodes, identities } = this.#options;
    const selectors = places.map(({ spec }) => spec?.nodeAffinity?.required);
    const names = selectors.map(hostsOf).filter((hosts) => hosts !== null);
    // One host's name may be many nodes' then.
    if (names.length > 0 && nodes.sharedHostnames > 0) return null;
    const asked = topologies.map(({ key, values }) => [key, [...values].toSorted()]);
    const text = JSON.stringify([podClass.nodeClass, selectors, asked]);
    return {
      ...podClass,
      nodes: new VolumePlaces(podClass.nodes, places, topologies),
      isNameBound: podClass.isNameBound || selectors.some(namesHosts),
      nodeNames: names.reduce(common, podClass.nodeNames),
      nodeClass: identities.nodeClassOf(text),
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

  constructor(own: NodeTest, volumes: readonly VolumeObject[], topologies: readonly Topology[]) {
    this.#own = own;
    this.#volumes = volumes;
    this.#topologies = topologies;
  }

  matches(node: Matchable): boolean {
    if (!this.#own.matches(node)) return false;
    if (!this.#volumes.every((volume) => isReachable(volume, node))) return false;
    return isWithin(this.#topologies, node.labels);
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

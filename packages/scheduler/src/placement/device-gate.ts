/**
 * What claims for devices say about nodes, where that takes no look at all of them: claims of the
 * same wording, none of which has devices yet, can be had on the same nodes, and which those are
 * changes only with the nodes' own devices.
 */
import type { Rejection } from '../framework/plugin.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import type { Identities } from '../cache/identities.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { claimProblem, claimsOf } from '../framework/plugins/dynamic-resources.ts';
import { ONLY_CLAIMS, type NodeDevices, type PodClass } from '../cache/pod-class.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { Reservation } from '../framework/reservation.ts';
import { DeviceAllocator } from '../dynamicresources/device-allocator.ts';
import type { DeviceLedger } from '../dynamicresources/device-ledger.ts';
import type { ResourceClaimObject } from '../devices/device-objects.ts';

const PLUGIN = 'DynamicResources';
/** Wordings of claims that are known; more are forgotten, and learnt again. */
const WORDINGS_MAX = 1024;

export interface DeviceGateOptions {
  readonly identities: Identities;
  readonly objects: ObjectStore;
  readonly view: ClusterView;
}

export class DeviceGate {
  readonly #options: DeviceGateOptions;
  readonly #known = new Map<string, ClaimedDevices>();

  constructor(options: DeviceGateOptions) {
    this.#options = options;
  }

  /** The pod's class, with its devices; null where full evaluation must tell. */
  say(id: number, podClass: PodClass, profile: Profile): PodClass | null {
    const { view, identities, objects } = this.#options;
    if (podClass.exotic !== ONLY_CLAIMS || !isOn(profile)) return null;
    const ledger = view.devices;
    const claims = claimsOf(view.podAt(id), view);
    if (typeof claims === 'string' || !ledger.slices.isLocal) return null;
    if (!claims.every((claim) => isOpen(claim) && claimProblem(claim, view) === '')) return null;
    const devices = claims.map(({ spec }) => spec?.devices);
    const text = JSON.stringify([podClass.nodeClass, objects.versionOf('DeviceClass'), devices]);
    let known = this.#known.get(text);
    if (known === undefined) {
      if (this.#known.size >= WORDINGS_MAX) this.#known.clear();
      known = new ClaimedDevices(claims, this.#options, ledger);
      this.#known.set(text, known);
    }
    if (known.isWrong) return null;
    const nodeClass = identities.nodeClasses.derive(podClass.nodeClass, text);
    return { ...podClass, exotic: '', nodeClass, devices: known };
  }

  /** What is to be done before the pod is bound to a node that has devices for it. */
  reserve(id: number, node: number, profile: Profile): readonly Reservation[] | Rejection {
    const { view } = this.#options;
    const outcome = profile.plugins.get(PLUGIN)?.preFilter?.(view.podAt(id), view);
    if (outcome?.kind !== 'run') return LOST;
    const info = view.bareNodeAt(node);
    const rejection = outcome.filter.filter(info);
    if (rejection !== null) return rejection;
    const reservation = outcome.filter.reserve?.(info) ?? null;
    if (reservation === null) return [];
    return 'plugin' in reservation ? [reservation] : reservation;
  }
}

const LOST: Rejection = { code: 'error', reasons: ['claims are gone'] };

function isOn({ preFilter, filter }: Profile): boolean {
  return [preFilter, filter].every((point) => point.some(({ name }) => name === PLUGIN));
}

/** Alternatives are scored, and what a claim has already says where it can be used. */
function isOpen({ status, spec }: ResourceClaimObject): boolean {
  if (status?.allocation !== undefined) return false;
  return (spec?.devices?.requests ?? []).every(({ exactly }) => exactly !== undefined);
}

class ClaimedDevices implements NodeDevices {
  readonly #view: ClusterView;
  readonly #claims: readonly ResourceClaimObject[];
  readonly #ledger: DeviceLedger;
  readonly #classOf: ConstructorParameters<typeof DeviceAllocator>[2];
  #allocator: DeviceAllocator;
  #sliceVersion: number;
  #isWrong = false;

  constructor(
    claims: readonly ResourceClaimObject[],
    { view, objects }: DeviceGateOptions,
    ledger: DeviceLedger,
  ) {
    this.#view = view;
    this.#claims = claims;
    this.#ledger = ledger;
    this.#classOf = (name) => objects.object('DeviceClass', name);
    this.#sliceVersion = ledger.sliceVersion;
    this.#allocator = this.#newAllocator();
  }

  /** Some node has a device at which an expression fails: that ends a try, and is told. */
  get isWrong(): boolean {
    if (this.#sliceVersion !== this.#ledger.sliceVersion) {
      this.#sliceVersion = this.#ledger.sliceVersion;
      this.#allocator = this.#newAllocator();
      this.#isWrong = false;
    }
    return this.#isWrong;
  }

  has(node: number): boolean {
    const { kind } = this.#allocator.allocate(this.#view.matchableAt(node));
    if (kind === 'error' || kind === 'overTime') this.#isWrong = true;
    return kind === 'found';
  }

  #newAllocator(): DeviceAllocator {
    const { slices, allocated } = this.#ledger;
    return new DeviceAllocator(this.#claims, slices, this.#classOf, allocated);
  }
}

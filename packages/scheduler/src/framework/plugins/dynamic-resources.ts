/** Claims for devices (structured parameters): DynamicResources of kube-scheduler 1.35. */
import { parseGoDuration } from '@megaplane/machinery/times';
import { claimReservation, isReadyToBind } from '../../dynamicresources/claim-reservation.ts';
import {
  bindingTimedOut,
  deallocation,
  isReservedFor,
} from '../../dynamicresources/claim-reservation.ts';
import { removal, withMadeClaim } from '../../dynamicresources/claim-reservation.ts';
import {
  backedResources,
  extendedClaimFor,
  leftClaimOf,
  unmade,
  type ExtendedClaim,
} from '../../dynamicresources/extended-resources.ts';
import { DeviceAllocator, type Allocation } from '../../dynamicresources/device-allocator.ts';
import { devicesOf } from '../../dynamicresources/device-counts.ts';
import {
  claimText,
  type DeviceClassObject,
  type ResourceClaimObject,
} from '../../devices/device-objects.ts';
import { matchesTerms, parseNodeSelector } from '../../api/node-selector.ts';
import type { Term } from '../../api/node-selector.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { normalizeByMax, SKIP, unresolvable, unschedulable, type FailedCycle } from '../plugin.ts';
import type {
  Filter,
  Finding,
  Plugin,
  PostFilterOutcome,
  PreFilterOutcome,
  Rejection,
  Scorer,
} from '../plugin.ts';
import { isExtended } from '../../api/resources.ts';
import { ALLOCATING_CLAIM, WITHHELD_CLAIM, type Reservation } from '../reservation.ts';
import type { Snapshot } from '../snapshot.ts';

export interface DynamicResourcesArgs {
  /** Longest wait for devices that are made ready on demand, a Go duration. */
  readonly bindingTimeout?: string;
}

const BINDING_TIMEOUT = '600s';
const NANOS_PER_MS = 1_000_000n;
/** A request's alternatives (upstream's FirstAvailableDeviceRequestMaxSize). */
const ALTERNATIVES_MAX = 8;
const UNFIT = unresolvable('cannot fit resource');
const LEFT_OVER = unresolvable('cannot schedule extended resource claim');
const UNAVAILABLE = unresolvable('resourceclaim not available on the node');

/** The name of the claim that a pod's entry stands for; null: the entry needs none. */
function claimNameOf(pod: PodInfo, index: number): { name: string | null } | { error: string } {
  const entry = pod.pod.spec.resourceClaims?.[index];
  if (entry?.resourceClaimName !== undefined) return { name: entry.resourceClaimName };
  if (entry?.resourceClaimTemplateName === undefined) {
    const which = `pod "${pod.key}", spec.resourceClaim "${entry?.name ?? ''}"`;
    return { error: `${which}: none of the supported fields are set` };
  }
  const status = pod.pod.status?.resourceClaimStatuses?.find(({ name }) => name === entry.name);
  if (status === undefined) return { error: `pod "${pod.key}": ResourceClaim not created yet` };
  return { name: status.resourceClaimName ?? null };
}

function isControlledBy({ metadata }: ResourceClaimObject, pod: PodInfo): boolean {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner !== undefined && owner.uid === pod.pod.metadata.uid;
}

/** The claims of a pod, or why it cannot have them. */
export function claimsOf(pod: PodInfo, snapshot: Snapshot): ResourceClaimObject[] | string {
  const claims: ResourceClaimObject[] = [];
  for (const [index, entry] of (pod.pod.spec.resourceClaims ?? []).entries()) {
    const found = claimNameOf(pod, index);
    if ('error' in found) return found.error;
    if (found.name === null) continue;
    const key = `${pod.namespace}/${found.name}`;
    const claim: ResourceClaimObject | undefined = snapshot.object('ResourceClaim', key);
    if (claim === undefined) return `could not find ResourceClaim "${key}"`;
    if (claim.metadata.deletionTimestamp !== undefined) {
      return `resourceclaim "${found.name}" is being deleted`;
    }
    if (entry.resourceClaimName === undefined && !isControlledBy(claim, pod)) {
      return `ResourceClaim ${key} was not created for pod ${pod.key} (pod is not owner)`;
    }
    claims.push(claim);
  }
  return claims;
}

/** Why an allocated claim cannot be used now; empty if it can. Upstream waits for its write. */
function withholding(claim: ResourceClaimObject, snapshot: Snapshot): string {
  const text = claimText(claim);
  const isWithheld = snapshot.object(WITHHELD_CLAIM, text) !== undefined;
  return isWithheld ? `resource claim ${text} is in the process of being deallocated` : '';
}

/** Why a claim cannot be allocated on any node; empty if it may be. */
export function claimProblem(claim: ResourceClaimObject, snapshot: Snapshot): string {
  if (snapshot.object(ALLOCATING_CLAIM, claimText(claim)) !== undefined) {
    return `resource claim ${claimText(claim)} is in the process of being allocated`;
  }
  for (const { name, exactly, firstAvailable = [] } of claim.spec?.devices?.requests ?? []) {
    if (exactly === undefined && firstAvailable.length === 0) {
      return `resource claim ${claimText(claim)}, request ${name}: unknown request type`;
    }
    const demands =
      exactly === undefined
        ? firstAvailable.map((one): [string, string] => [
            `${name}/${one.name}`,
            one.deviceClassName ?? '',
          ])
        : [[name, exactly.deviceClassName ?? ''] as const];
    for (const [path, className] of demands) {
      if (className !== '' && snapshot.object('DeviceClass', className) !== undefined) continue;
      return `request ${path}: device class ${className} does not exist`;
    }
  }
  return '';
}

/** What was found out about a pod with claims, and devices for it, node by node. */
class ClaimFilter implements Filter {
  /** Allocated claims that some node could not use, by the first: giving one up may help. */
  readonly #unavailable = new Map<ResourceClaimObject, string>();
  readonly #pod: PodInfo;
  readonly #snapshot: Snapshot;
  readonly #claims: readonly ResourceClaimObject[];
  readonly #open: readonly ResourceClaimObject[];
  readonly #nodesOf = new Map<ResourceClaimObject, readonly Term[]>();
  readonly #timeoutMs: number;
  readonly #found = new Map<string, Allocation>();
  /** Resources that classes of devices stand for. */
  readonly #backed: ReadonlyMap<string, DeviceClassObject>;
  readonly #extended = new Map<string, ExtendedClaim>();
  readonly #allocators = new Map<string, DeviceAllocator>();

  constructor(
    pod: PodInfo,
    snapshot: Snapshot,
    claims: readonly ResourceClaimObject[],
    backed: ReadonlyMap<string, DeviceClassObject>,
    timeoutMs: number,
  ) {
    this.#pod = pod;
    this.#backed = backed;
    this.#snapshot = snapshot;
    this.#claims = claims;
    this.#timeoutMs = timeoutMs;
    this.#open = claims.filter(({ status }) => status?.allocation === undefined);
    for (const claim of claims) {
      const selector = claim.status?.allocation?.nodeSelector;
      if (selector !== undefined) this.#nodesOf.set(claim, parseNodeSelector(selector));
    }
  }

  filter(node: NodeInfo): Rejection | null {
    if (this.#lacksResource(node)) return UNFIT;
    const extended = extendedClaimFor(this.#pod, node, this.#backed);
    if (extended !== null) this.#extended.set(node.name, extended);
    const unavailable = this.#claims.filter((claim) => !this.#isUsable(claim, node));
    if (this.#open.length > 0 || extended !== null) {
      const allocation = this.#allocatorFor(extended).allocate(node);
      this.#found.set(node.name, allocation);
      const rejection = rejectionOf(allocation);
      if (rejection !== null) return rejection;
    }
    for (const claim of unavailable) {
      if (!this.#unavailable.has(claim)) this.#unavailable.set(claim, node.name);
    }
    return unavailable.length === 0 ? null : UNAVAILABLE;
  }

  get unavailable(): Iterable<ResourceClaimObject> {
    return this.#unavailable.keys();
  }

  findings(): Finding[] {
    return [...this.#unavailable].map(([claim, node]) => ({ node, text: claimText(claim) }));
  }

  learn(findings: readonly Finding[]): void {
    const byText = new Map(this.#claims.map((claim) => [claimText(claim), claim]));
    for (const { node, text } of findings) {
      const claim = byText.get(text);
      if (claim !== undefined && !this.#unavailable.has(claim)) this.#unavailable.set(claim, node);
    }
  }

  /** More for alternatives that stand further ahead. */
  scoreOf(node: NodeInfo): number {
    const allocation = this.#found.get(node.name);
    if (allocation?.kind !== 'found') return 0;
    let score = 0;
    for (const [index, claim] of this.#open.entries()) {
      const results = allocation.results[index]?.devices.results ?? [];
      const paths = new Set(results.map(({ request }) => request));
      for (const { name, firstAvailable = [] } of claim.spec?.devices?.requests ?? []) {
        for (const [rank, one] of firstAvailable.entries()) {
          if (paths.has(`${name}/${one.name}`)) score += ALTERNATIVES_MAX - rank;
        }
      }
    }
    return score;
  }

  reserve(node: NodeInfo): Reservation | Rejection | null {
    const extended = this.#extended.get(node.name) ?? null;
    const made = extended === null ? [] : [extended.claim];
    const claims = [...this.#claims, ...made];
    const open = [...this.#open, ...made];
    const unreserved = claims.filter((claim) => !isReservedFor(claim, this.#pod));
    const allocation = this.#found.get(node.name);
    if (open.length > 0 && allocation?.kind !== 'found') {
      return { code: 'error', reasons: ['claim allocation not found for node'] };
    }
    const results = allocation?.kind === 'found' ? allocation.results : [];
    const allocated = new Map(open.map((claim, index) => [claim, results[index]]));
    const reservation = claimReservation(this.#pod, node.name, claims, unreserved, allocated, {
      timeoutMs: this.#timeoutMs,
    });
    if (extended === null || reservation === null) return reservation;
    return withMadeClaim(reservation, this.#pod, extended);
  }

  /** Neither the node nor a class of devices has what the pod asks for. */
  #lacksResource({ allocatable }: NodeInfo): boolean {
    if (this.#backed.size === 0) return false;
    return this.#pod.requests.scalars
      .entries()
      .some(
        ([name, amount]) =>
          amount !== 0 &&
          isExtended(name) &&
          !this.#backed.has(name) &&
          !allocatable.scalars.has(name),
      );
  }

  #isUsable(claim: ResourceClaimObject, node: NodeInfo): boolean {
    const terms = this.#nodesOf.get(claim);
    if (terms !== undefined && !matchesTerms(terms, node)) return false;
    if (claim.status?.allocation === undefined) return true;
    const ready = isReadyToBind(claim);
    return ready === true || (ready === false && !bindingTimedOut(claim, this.#snapshot.nowMs));
  }

  /** Nodes that have other resources of their own need other devices. */
  #allocatorFor(extended: ExtendedClaim | null): DeviceAllocator {
    const key = JSON.stringify(extended?.claim.spec ?? null);
    let allocator = this.#allocators.get(key);
    if (allocator === undefined) {
      this.#allocators.set(key, (allocator = this.#newAllocator(extended)));
    }
    return allocator;
  }

  #newAllocator(extended: ExtendedClaim | null): DeviceAllocator {
    const snapshot = this.#snapshot;
    const { slices, allocated } = devicesOf(snapshot);
    return new DeviceAllocator(
      [...this.#open, ...(extended === null ? [] : [unmade(extended)])],
      slices,
      (name): DeviceClassObject | undefined => snapshot.object('DeviceClass', name),
      allocated,
    );
  }
}

/** A claim of an earlier try is in the way until it is deleted. */
class LeftClaimFilter implements Filter {
  readonly claim: ResourceClaimObject;

  constructor(claim: ResourceClaimObject) {
    this.claim = claim;
  }

  filter(): Rejection {
    return LEFT_OVER;
  }
}

function rejectionOf(allocation: Allocation): Rejection | null {
  switch (allocation.kind) {
    case 'found':
      return null;
    case 'none':
      return unresolvable('cannot allocate all claims');
    case 'invalid':
      return unresolvable('invalid resource pools were encountered');
    case 'overTime':
      return unresolvable('timed out trying to allocate devices');
    case 'error':
      return { code: 'error', reasons: [allocation.text] };
  }
}

export class DynamicResources implements Plugin {
  readonly name = 'DynamicResources';
  readonly #timeoutMs: number;

  constructor(args: DynamicResourcesArgs) {
    const nanos = parseGoDuration(args.bindingTimeout ?? BINDING_TIMEOUT) ?? 0n;
    this.#timeoutMs = Number(nanos / NANOS_PER_MS);
  }

  /** A pod without its claims is not tried. */
  preEnqueue(pod: PodInfo, snapshot: Snapshot): string | null {
    const claims = claimsOf(pod, snapshot);
    return typeof claims === 'string' ? claims : null;
  }

  preFilter(pod: PodInfo, snapshot: Snapshot): PreFilterOutcome {
    const claims = claimsOf(pod, snapshot);
    if (typeof claims === 'string') return { kind: 'rejected', rejection: unresolvable(claims) };
    const backed = backedResources(pod, snapshot);
    if (claims.length === 0 && backed.size === 0) return SKIP;
    const left = backed.size === 0 ? null : leftClaimOf(pod, snapshot);
    if (left !== null) return { kind: 'run', filter: new LeftClaimFilter(left) };
    for (const claim of claims) {
      const problem =
        claim.status?.allocation === undefined
          ? claimProblem(claim, snapshot)
          : withholding(claim, snapshot);
      if (problem !== '') return { kind: 'rejected', rejection: unresolvable(problem) };
    }
    return { kind: 'run', filter: new ClaimFilter(pod, snapshot, claims, backed, this.#timeoutMs) };
  }

  preScore(
    _pod: PodInfo,
    _snapshot: Snapshot,
    _feasible: readonly NodeInfo[],
    filter: Filter | null,
  ): typeof SKIP | { readonly kind: 'run'; readonly scorer: Scorer } {
    if (!(filter instanceof ClaimFilter)) return SKIP;
    const scorer: Scorer = {
      score: (node) => filter.scoreOf(node),
      normalize: (raw, range) => normalizeByMax(raw, false, range),
    };
    return { kind: 'run', scorer };
  }

  postFilter({ isCutShort, absent, cycle }: FailedCycle): PostFilterOutcome {
    // Cut short by another plugin, upstream's knows nothing of the pod; by itself, of no claims.
    if (isCutShort && absent?.plugin !== this.name) {
      return { kind: 'rejected', rejection: { code: 'error', reasons: ['not found'] } };
    }
    const filter = cycle.filterOf(this.name);
    if (filter instanceof LeftClaimFilter) {
      const rejection = unschedulable('deletion of ResourceClaim completed');
      return { kind: 'rejected', rejection, writes: removal(filter.claim) };
    }
    if (!(filter instanceof ClaimFilter)) {
      const text = 'no new claims to deallocate';
      return { kind: 'rejected', rejection: unschedulable(text) };
    }
    for (const claim of filter.unavailable) {
      const write = deallocation(claim, cycle.pod);
      if (write === null) continue;
      const text = 'deallocation of ResourceClaim completed';
      return { kind: 'rejected', rejection: unschedulable(text), writes: [write] };
    }
    return { kind: 'rejected', rejection: unschedulable('still not schedulable') };
  }
}

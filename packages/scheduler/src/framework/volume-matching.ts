/** Volumes that are there already, for claims that wait for their first consumer. */
import { matchesTerms, parseNodeSelector, type Term } from '../api/node-selector.ts';
import type { NodeInfo } from './node-info.ts';
import { selectorOf, selects } from './pod-info.ts';
import type { Snapshot } from './snapshot.ts';
import {
  bytesOf,
  claimBytes,
  classNameOf,
  type ClaimObject,
  type VolumeObject,
} from './volumes.ts';

const HOSTNAME = 'kubernetes.io/hostname';

interface Candidate {
  readonly volume: VolumeObject;
  readonly bytes: bigint;
  /** Null: usable everywhere. */
  readonly terms: readonly Term[] | null;
}

/** Whether a volume says that it is for a claim. */
export function isFor(volume: VolumeObject, { metadata }: ClaimObject): boolean {
  const reference = volume.spec?.claimRef;
  if (reference === undefined) return false;
  const { name, namespace = 'default', uid } = metadata;
  if (reference.name !== name || (reference.namespace ?? 'default') !== namespace) return false;
  return reference.uid === undefined || reference.uid === '' || reference.uid === uid;
}

/** The one host that a volume can be used on by its name, or empty. */
function hostOf({ spec }: VolumeObject): string {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const [expression] = terms.length === 1 ? (terms[0]?.matchExpressions ?? []) : [];
  const { key, operator, values = [] } = expression ?? { key: '', operator: '' };
  const [host = ''] = values;
  return key === HOSTNAME && operator === 'In' && values.length === 1 ? host : '';
}

function isReachable({ terms }: Candidate, { labels }: NodeInfo): boolean {
  return terms === null || matchesTerms(terms, { name: '', labels });
}

/** The volumes that would do for one claim, smallest first; by host where they are local. */
export class MatchingVolumes {
  readonly #own: Candidate | null;
  readonly #anywhere: readonly Candidate[];
  readonly #byHost: ReadonlyMap<string, readonly Candidate[]>;

  constructor(claim: ClaimObject, snapshot: Snapshot) {
    const wanted = claimBytes(claim);
    const found: Candidate[] = [];
    let own: Candidate | null = null;
    for (const volume of snapshot.objects('PersistentVolume') as Iterable<VolumeObject>) {
      const isOwn = isFor(volume, claim);
      const bytes = bytesOf(volume.spec?.capacity?.['storage']);
      if (bytes < wanted || !couldServe(volume, claim, isOwn)) continue;
      const required = volume.spec?.nodeAffinity?.required;
      const terms = required === undefined ? null : parseNodeSelector(required);
      if (isOwn) own ??= { volume, bytes, terms };
      else found.push({ volume, bytes, terms });
    }
    found.sort((left, right) => (left.bytes < right.bytes ? -1 : left.bytes > right.bytes ? 1 : 0));
    this.#own = own;
    this.#anywhere = found.filter(({ volume }) => hostOf(volume) === '');
    const local = found.filter(({ volume }) => hostOf(volume) !== '');
    this.#byHost = Map.groupBy(local, ({ volume }) => hostOf(volume));
  }

  /** The smallest one that can be used on a node and is not taken by another claim of the pod. */
  find(node: NodeInfo, taken: ReadonlySet<string>): VolumeObject | null {
    const isFree = (candidate: Candidate): boolean =>
      !taken.has(candidate.volume.metadata.name) && isReachable(candidate, node);
    if (this.#own !== null && !taken.has(this.#own.volume.metadata.name)) {
      return isReachable(this.#own, node) ? this.#own.volume : null;
    }
    const local = this.#byHost.get(node.labels[HOSTNAME] ?? '')?.find(isFree);
    const general = this.#anywhere.find(isFree);
    if (local === undefined || general === undefined) return (local ?? general)?.volume ?? null;
    return local.bytes < general.bytes ? local.volume : general.volume;
  }
}

function couldServe({ metadata, spec, status }: VolumeObject, claim: ClaimObject, isOwn: boolean) {
  if ((spec?.storageClassName ?? '') !== classNameOf(claim)) return false;
  if (spec?.claimRef !== undefined && !isOwn) return false;
  const mode = claim.spec?.volumeMode ?? 'Filesystem';
  if ((spec?.volumeMode ?? 'Filesystem') !== mode) return false;
  const attributesClass = claim.spec?.volumeAttributesClassName ?? '';
  if ((spec?.volumeAttributesClassName ?? '') !== attributesClass) return false;
  if (metadata.deletionTimestamp !== undefined) return false;
  if (isOwn) return true;
  if (status?.phase !== 'Available') return false;
  const selector = claim.spec?.selector;
  if (selector !== undefined && !selects(selectorOf(selector), metadata.labels)) return false;
  const modes = claim.spec?.accessModes ?? [];
  return modes.every((one) => spec?.accessModes?.includes(one) === true);
}

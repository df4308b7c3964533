/** What of a profile the ranked index can decide by; null where full evaluation must. */
import type { Profile, ProfileConfiguration } from '../../framework/runtime/profile.ts';
import { PLUGIN_NAMES } from '../../framework/runtime/registry.ts';
import { isPrepared } from '../../framework/runtime/prepared-profile.ts';
import type { Compatibility } from '../../framework/compatibility.ts';

export interface FastProfile {
  readonly fitWeight: number;
  readonly balanceWeight: number;
  readonly imageWeight: number;
  readonly taintWeight: number;
  readonly affinityWeight: number;
  readonly spreadWeight: number;
  readonly interPodWeight: number;
  /** Ports, spreading and inter-pod affinity are asked when they are by default. */
  readonly isDefaultOrder: boolean;
  /** The balance score of 1.36. */
  readonly isBalanceChangeScored: boolean;
  /** Images of volumes count, as in 1.36. */
  readonly areImageVolumesScored: boolean;
}

/** These must be on, in this order: they are compiled into one test. */
const FILTERS = ['NodeUnschedulable', 'TaintToleration', 'NodeAffinity', 'NodeResourcesFit'];
/** All filters that it knows, in the order of the default profile. */
const ORDER = PLUGIN_NAMES.slice(
  PLUGIN_NAMES.indexOf('NodeUnschedulable'),
  PLUGIN_NAMES.indexOf('InterPodAffinity') + 1,
);
/** These never object to a pod that the index decides about. */
const IDLE_FILTERS = new Set([
  'NodeName',
  'NodePorts',
  'PodTopologySpread',
  'InterPodAffinity',
  'NodeDeclaredFeatures',
]);
const IDLE_VOLUME_FILTERS = new Set([
  'VolumeRestrictions',
  'NodeVolumeLimits',
  'VolumeBinding',
  'VolumeZone',
  'DynamicResources',
]);
const SCORERS = new Set([
  'NodeResourcesFit',
  'NodeResourcesBalancedAllocation',
  'ImageLocality',
  'TaintToleration',
  'NodeAffinity',
  'PodTopologySpread',
  'InterPodAffinity',
  'DynamicResources',
  'VolumeBinding',
]);
/** Arguments of these would change what is compiled. */
const FIXED_ARGS = new Set(['NodeResourcesFit', 'NodeResourcesBalancedAllocation', 'NodeAffinity']);

export function fastProfileOf(
  profile: Profile,
  configuration: ProfileConfiguration,
  { isBalanceChangeScored, areImageVolumesScored }: Compatibility,
): FastProfile | null {
  // Pods that plugins of users apply to are evaluated in full anyhow.
  const own = new Set(profile.own.map(({ name }) => name));
  const active = profile.filter.map(({ name }) => name).filter((name) => !own.has(name));
  const compiled = active.filter((name) => FILTERS.includes(name));
  if (compiled.join() !== FILTERS.join()) return null;
  const isKnown = (name: string): boolean =>
    FILTERS.includes(name) || IDLE_FILTERS.has(name) || IDLE_VOLUME_FILTERS.has(name);
  if (!active.every(isKnown) || !isPrepared(profile)) return null;
  const scorers = [...profile.weights.keys()];
  if (!scorers.every((name) => SCORERS.has(name) || own.has(name))) return null;
  if (profile.weights.size === 0) return null;
  // Bounds on scores hold where more of each is better.
  if (profile.weights.values().some((weight) => weight < 0)) return null;
  const percentage = profile.percentageOfNodesToScore ?? 100;
  if (percentage !== 100) return null;
  if ((configuration.pluginConfig ?? []).some(({ name }) => FIXED_ARGS.has(name))) return null;
  const weightOf = (name: string): number => profile.weights.get(name) ?? 0;
  return {
    fitWeight: weightOf('NodeResourcesFit'),
    balanceWeight: weightOf('NodeResourcesBalancedAllocation'),
    imageWeight: weightOf('ImageLocality'),
    taintWeight: weightOf('TaintToleration'),
    affinityWeight: weightOf('NodeAffinity'),
    spreadWeight: weightOf('PodTopologySpread'),
    interPodWeight: weightOf('InterPodAffinity'),
    isDefaultOrder: isOrdered(active),
    isBalanceChangeScored,
    areImageVolumesScored,
  };
}

function isOrdered(active: readonly string[]): boolean {
  const places = active.map((name) => ORDER.indexOf(name)).filter((place) => place >= 0);
  return places.every((place, index) => index === 0 || place > (places[index - 1] ?? -1));
}

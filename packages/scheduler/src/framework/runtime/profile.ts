/** A profile of KubeSchedulerConfiguration v1, expanded to the plugins of each extension point. */
import { ownMember, putMember } from '@megaplane/base/members';
import { EXTENSION_POINTS } from '../../config/schema/configuration-schema.ts';
import type { ExtensionPoint, PluginPoint } from '../../config/schema/configuration-schema.ts';
import type { Plugin } from '../plugin.ts';
import { createPlugins, DEFAULT_WEIGHTS, PLUGIN_NAMES, PLUGIN_POINTS } from './registry.ts';
import { createUserPlugin, type UserPlugin } from './user-plugin.ts';
import { type Compatibility, EXACT } from '../compatibility.ts';

export interface PluginEntry {
  readonly name: string;
  readonly weight?: number;
}

export interface PluginSet {
  readonly enabled?: readonly PluginEntry[];
  readonly disabled?: readonly PluginEntry[];
}

export interface ProfileConfiguration {
  readonly schedulerName?: string;
  readonly percentageOfNodesToScore?: number;
  readonly plugins?: Readonly<Record<string, PluginSet>>;
  readonly pluginConfig?: readonly { readonly name: string; readonly args?: object }[];
}

export interface Profile {
  readonly schedulerName: string;
  /** Null: the configuration's own applies. */
  readonly percentageOfNodesToScore: number | null;
  readonly preEnqueue: readonly Plugin[];
  /** Plugins of users that are on hold pods back, for reasons of their own. */
  readonly hasOwnGates: boolean;
  /** Plugins of users that are on. */
  readonly own: readonly UserPlugin[];
  readonly preFilter: readonly Plugin[];
  /** Plugins that upstream runs before filters and before scores, too: metrics tell of these. */
  readonly prepares: ReadonlySet<string>;
  readonly preparesScore: ReadonlySet<string>;
  readonly filter: readonly Plugin[];
  readonly postFilter: readonly Plugin[];
  readonly preScore: readonly Plugin[];
  /** Plugins that score, in order, with their weights. */
  readonly weights: ReadonlyMap<string, number>;
  readonly plugins: ReadonlyMap<string, Plugin>;
}

export const DEFAULT_SCHEDULER_NAME = 'default-scheduler';

function names(entries: readonly PluginEntry[] | undefined): ReadonlySet<string> {
  return new Set((entries ?? []).map(({ name }) => name));
}

/** Defaults keep their place, also when enabled again with another weight; new ones follow. */
export function multiPointEntries(set: PluginSet | undefined): PluginEntry[] {
  const disabled = names(set?.disabled);
  const given = set?.enabled ?? [];
  const replacing = new Set<PluginEntry>();
  const entries: PluginEntry[] = [];
  for (const name of disabled.has('*') ? [] : PLUGIN_NAMES) {
    if (disabled.has(name)) continue;
    const own = given.findLast((entry) => entry.name === name);
    if (own !== undefined) replacing.add(own);
    const weight = ownMember(DEFAULT_WEIGHTS, name);
    entries.push(own ?? (weight === undefined ? { name } : { name, weight }));
  }
  return [...entries, ...given.filter((entry) => !replacing.has(entry))];
}

/** First what is named in the point and enabled anyhow, then the rest of multiPoint, then new. */
function pointEntries(
  multiPoint: readonly PluginEntry[],
  set: PluginSet | undefined,
  implementsPoint: (name: string) => boolean,
): PluginEntry[] {
  const explicit = set?.enabled ?? [];
  const disabled = names(set?.disabled);
  if (disabled.has('*')) return [...explicit];
  const general = multiPoint.filter(({ name }) => implementsPoint(name) && !disabled.has(name));
  const [generalNames, explicitNames] = [names(general), names(explicit)];
  return [
    ...explicit.filter(({ name }) => generalNames.has(name)),
    ...general.filter(({ name }) => !explicitNames.has(name)),
    ...explicit.filter(({ name }) => !generalNames.has(name)),
  ];
}

/** Names and weights of the plugins of each point, in the order in which they run. */
export type ProfilePoints = Readonly<Record<ExtensionPoint, readonly PluginEntry[]>>;

/** `pointsOf`: where a plugin takes part; none for plugins that are not known. */
export function pointsOfProfile(
  { plugins: sets = {} }: ProfileConfiguration,
  pointsOf: (name: string) => readonly PluginPoint[],
): ProfilePoints {
  const multiPoint = multiPointEntries(sets['multiPoint']);
  const entries = EXTENSION_POINTS.map((point) => [
    point,
    pointEntries(multiPoint, sets[point], (name) => pointsOf(name).includes(point)),
  ]);
  const points = Object.fromEntries(entries) as Record<ExtensionPoint, PluginEntry[]>;
  // What a point says outranks multiPoint, and to say nothing is to say 1.
  points.score = points.score.map(({ name, weight = 0 }) => ({ name, weight: weight || 1 }));
  return points;
}

/** Expands a profile; plugin names are known to be valid. */
export function createProfile(
  configuration: ProfileConfiguration = {},
  compatibility: Compatibility = EXACT,
  own: readonly UserPlugin[] = [],
): Profile {
  const args: Record<string, object> = {};
  for (const { name, args: given } of configuration.pluginConfig ?? [])
    putMember(args, name, given ?? {});
  const plugins = new Map<string, Plugin>(createPlugins(args, compatibility));
  for (const one of own)
    plugins.set(one.name, createUserPlugin(one, ownMember(args, one.name) ?? {}));
  const points = pointsOfProfile(configuration, pointsOfPlugins(own));
  const at = (...entries: readonly PluginEntry[]): Plugin[] =>
    [...names(entries)].flatMap((name) => plugins.get(name) ?? []);
  return {
    schedulerName: configuration.schedulerName ?? DEFAULT_SCHEDULER_NAME,
    percentageOfNodesToScore: configuration.percentageOfNodesToScore ?? null,
    own: own.filter(({ name }) =>
      Object.values(points).some((entries) => names(entries).has(name)),
    ),
    preEnqueue: at(...points.preEnqueue),
    hasOwnGates: points.preEnqueue.some(({ name }) => ownMember(PLUGIN_POINTS, name) === undefined),
    // Filters that upstream does not prepare have their preparation here all the same.
    preFilter: at(...points.preFilter, ...points.filter),
    prepares: names(points.preFilter),
    preparesScore: names(points.preScore),
    filter: at(...points.filter),
    postFilter: at(...points.postFilter),
    preScore: at(...points.preScore, ...points.score),
    weights: new Map(points.score.map(({ name, weight }) => [name, weight ?? 1])),
    plugins,
  };
}

/** Where plugins take part, those of users included. */
export function pointsOfPlugins(
  own: readonly UserPlugin[],
): (name: string) => readonly PluginPoint[] {
  const byName = new Map<string, readonly PluginPoint[]>(
    own.map(({ name, points }) => [name, points]),
  );
  return (name) => byName.get(name) ?? ownMember(PLUGIN_POINTS, name) ?? [];
}

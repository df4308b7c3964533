/** A profile of KubeSchedulerConfiguration v1, expanded to the plugins of each extension point. */
import type { Plugin } from './plugin.ts';
import { createPlugins, DEFAULT_WEIGHTS, PLUGIN_NAMES } from './registry.ts';

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

/** Where 1.35 and later decide differently, or where a fault of theirs is to be repeated. */
export interface Compatibility {
  /** Balanced allocation scores the change that the pod makes (1.36). */
  readonly isBalanceChangeScored: boolean;
  /** Namespace selectors that an empty label set satisfies select every namespace (fault, 1.35). */
  readonly keepsNamespaceSelector: boolean;
}

export const EXACT: Compatibility = {
  isBalanceChangeScored: false,
  keepsNamespaceSelector: false,
};

export interface Profile {
  readonly schedulerName: string;
  /** Null: the configuration's own applies. */
  readonly percentageOfNodesToScore: number | null;
  readonly preEnqueue: readonly Plugin[];
  readonly preFilter: readonly Plugin[];
  readonly filter: readonly Plugin[];
  readonly postFilter: readonly Plugin[];
  readonly preScore: readonly Plugin[];
  /** Plugins that score, in order, with their weights. */
  readonly weights: ReadonlyMap<string, number>;
  readonly plugins: ReadonlyMap<string, Plugin>;
}

export const DEFAULT_SCHEDULER_NAME = 'default-scheduler';

function isAllDisabled(set: PluginSet | undefined): boolean {
  return set?.disabled?.some(({ name }) => name === '*') ?? false;
}

function isDisabled(set: PluginSet | undefined, wanted: string): boolean {
  return set?.disabled?.some(({ name }) => name === wanted || name === '*') ?? false;
}

/** Defaults keep their place, also when enabled again with another weight; new ones follow. */
function multiPointEntries(set: PluginSet | undefined): PluginEntry[] {
  const enabled = new Map((set?.enabled ?? []).map((entry) => [entry.name, entry]));
  const entries: PluginEntry[] = [];
  for (const name of PLUGIN_NAMES) {
    if (isDisabled(set, name)) continue;
    entries.push(enabled.get(name) ?? { name });
    enabled.delete(name);
  }
  return [...entries, ...enabled.values()];
}

/** First what is named in the point and enabled anyhow, then the rest of multiPoint, then new. */
function pointEntries(
  multiPoint: readonly PluginEntry[],
  set: PluginSet | undefined,
  implementsPoint: (name: string) => boolean,
): PluginEntry[] {
  const explicit = set?.enabled ?? [];
  if (isAllDisabled(set)) return [...explicit];
  const general = multiPoint.filter(({ name }) => implementsPoint(name) && !isDisabled(set, name));
  const isGeneral = ({ name }: PluginEntry): boolean =>
    general.some((entry) => entry.name === name);
  const isExplicit = ({ name }: PluginEntry): boolean =>
    explicit.some((entry) => entry.name === name);
  return [
    ...explicit.filter(isGeneral),
    ...general.filter((entry) => !isExplicit(entry)),
    ...explicit.filter((entry) => !isGeneral(entry)),
  ];
}

/** Expands a profile; plugin names are known to be valid. */
export function createProfile(
  configuration: ProfileConfiguration = {},
  compatibility: Compatibility = EXACT,
): Profile {
  const args: Record<string, object> = {};
  for (const { name, args: given } of configuration.pluginConfig ?? []) args[name] = given ?? {};
  const plugins = createPlugins(args, compatibility);
  const sets = configuration.plugins ?? {};
  const multiPoint = multiPointEntries(sets['multiPoint']);
  const entriesOf = (point: string, implementsPoint: (plugin: Plugin) => boolean): PluginEntry[] =>
    pointEntries(multiPoint, sets[point], (name) => {
      const plugin = plugins.get(name);
      return plugin !== undefined && implementsPoint(plugin);
    });
  const at = (point: string, implementsPoint: (plugin: Plugin) => boolean): Plugin[] =>
    entriesOf(point, implementsPoint).flatMap(({ name }) => plugins.get(name) ?? []);
  const weights = new Map<string, number>();
  for (const { name, weight = 0 } of entriesOf('score', (plugin) => 'preScore' in plugin)) {
    const general = multiPoint.find((entry) => entry.name === name)?.weight ?? 0;
    const byDefault = DEFAULT_WEIGHTS[name] ?? 1;
    weights.set(name, weight !== 0 ? weight : general !== 0 ? general : byDefault);
  }
  return {
    schedulerName: configuration.schedulerName ?? DEFAULT_SCHEDULER_NAME,
    percentageOfNodesToScore: configuration.percentageOfNodesToScore ?? null,
    preEnqueue: at('preEnqueue', (plugin) => 'preEnqueue' in plugin),
    preFilter: at('preFilter', (plugin) => 'preFilter' in plugin),
    filter: at('filter', (plugin) => 'preFilter' in plugin),
    postFilter: at('postFilter', (plugin) => 'postFilter' in plugin),
    preScore: at('preScore', (plugin) => 'preScore' in plugin),
    weights,
    plugins,
  };
}

/** What can be wrong with the plugins of a profile, in the words of upstream's framework. */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { multiPointEntries, pointsOfProfile } from '../framework/runtime/profile.ts';
import type { PluginEntry, ProfileConfiguration } from '../framework/runtime/profile.ts';
import { PLUGIN_NAMES } from '../framework/runtime/registry.ts';
import { constructionErrors } from './argument-checks.ts';
import { defaultedArguments } from './configuration-defaults.ts';
import type { PluginPoint } from './schema/configuration-schema.ts';

/** In this order upstream fills its points. */
const POINTS: readonly (readonly [PluginPoint, type: string])[] = [
  ['preFilter', 'PreFilterPlugin'],
  ['filter', 'FilterPlugin'],
  ['postFilter', 'PostFilterPlugin'],
  ['reserve', 'ReservePlugin'],
  ['preScore', 'PreScorePlugin'],
  ['score', 'ScorePlugin'],
  ['preBind', 'PreBindPlugin'],
  ['bind', 'BindPlugin'],
  ['postBind', 'PostBindPlugin'],
  ['permit', 'PermitPlugin'],
  ['preEnqueue', 'PreEnqueuePlugin'],
  ['queueSort', 'QueueSortPlugin'],
  ['placementGenerate', 'PlacementGeneratePlugin'],
  ['placementScore', 'PlacementScorePlugin'],
];
/** Scores are summed in 64 bits. */
const OVERFLOW = 'score plugins: total score of Score plugins could overflow';
const WEIGHT_SUM_MAX: number = 2 ** 63 / 100;

type PointsOf = (name: string) => readonly PluginPoint[];

function pointErrors({ plugins = {} }: ProfileConfiguration, pointsOf: PointsOf): string {
  const isKnown = (name: string): boolean =>
    PLUGIN_NAMES.includes(name) || pointsOf(name).length > 0;
  for (const [point, type] of POINTS) {
    const seen = new Set<string>();
    for (const { name } of plugins[point]?.enabled ?? []) {
      if (!isKnown(name)) return `${type} ${JSON.stringify(name)} does not exist`;
      if (!pointsOf(name).includes(point)) {
        return `plugin ${JSON.stringify(name)} does not extend ${type} plugin`;
      }
      if (seen.has(name)) return `plugin "${name}" already registered as "${type}"`;
      seen.add(name);
    }
  }
  const general = multiPointEntries(plugins['multiPoint']);
  for (const [point, type] of POINTS) {
    const disabled = new Set((plugins[point]?.disabled ?? []).map(({ name }) => name));
    if (disabled.has('*')) continue;
    const explicit = new Set((plugins[point]?.enabled ?? []).map(({ name }) => name));
    const seen = new Set<string>();
    for (const { name } of general) {
      if (!isKnown(name)) return `${type} ${JSON.stringify(name)} does not exist`;
      if (!pointsOf(name).includes(point) || disabled.has(name) || explicit.has(name)) continue;
      if (seen.has(name)) return `plugin "${name}" already registered as "${type}"`;
      seen.add(name);
    }
  }
  return '';
}

/** Why a profile cannot be set up; empty if it can. Its members have been checked. */
export function profileError(profile: ProfileConfiguration, pointsOf: PointsOf): string {
  const { schedulerName = '', pluginConfig = [] } = profile;
  for (const { name, args } of pluginConfig) {
    const given: JsonObject = isObject(args as JsonObject) ? (args as JsonObject) : {};
    const faults = constructionErrors(name, defaultedArguments(name, given));
    if (faults.length === 0) continue;
    const text = faults.length === 1 ? (faults[0] ?? '') : `[${faults.join(', ')}]`;
    return `initializing plugin "${name}": ${text}`;
  }
  const fault = pointErrors(profile, pointsOf);
  if (fault !== '') return fault;
  const { queueSort, bind } = pointsOfProfile(profile, pointsOf);
  const whose = `profile with scheduler name ${JSON.stringify(schedulerName)}`;
  if (queueSort.length !== 1) {
    return `only one queue sort plugin required for ${whose}, but got ${queueSort.length}`;
  }
  if (bind.length === 0) return `at least one bind plugin is needed for ${whose}`;
  return isOver(weighedPlugins(profile, pointsOf)) ? OVERFLOW : '';
}

/** Weights are summed in the order of the file, plugins that are off at `score` alone included. */
function weighedPlugins({ plugins = {} }: ProfileConfiguration, pointsOf: PointsOf): PluginEntry[] {
  const entries = [
    ...(plugins['score']?.enabled ?? []),
    ...multiPointEntries(plugins['multiPoint']),
  ];
  const first = new Map(entries.toReversed().map((entry) => [entry.name, entry]));
  return entries
    .filter((entry) => first.get(entry.name) === entry && pointsOf(entry.name).includes('score'))
    .map(({ name, weight }) => ({
      name,
      weight: weight === undefined || weight === 0 ? 1 : weight,
    }));
}

/** Upstream asks before it adds, of what is left: what is below zero leaves nothing to the next. */
function isOver(score: readonly PluginEntry[]): boolean {
  let sum = 0;
  return score.some(({ weight = 1 }) => {
    const isBelow = sum < 0;
    sum += weight;
    return isBelow || sum > WEIGHT_SUM_MAX;
  });
}

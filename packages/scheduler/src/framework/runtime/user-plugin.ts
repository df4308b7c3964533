/**
 * Plugins of users: what a module hands to the scheduler (`--plugin file`). What `create` makes
 * implements `Plugin`: filters and scorers made once for each pod and asked about each node.
 *
 *     export default {
 *       name: 'QuietNodes',
 *       points: ['score'],
 *       appliesTo: ({ spec }) => spec.priority === 0,
 *       create: () => ({
 *         name: 'QuietNodes',
 *         preScore: () => ({ kind: 'run', scorer: { score: (node) => 100 - node.pods.length } }),
 *       }),
 *     } satisfies UserPlugin;
 */
import type { ExtensionPoint } from '../../config/schema/configuration-schema.ts';
import type { PodObject } from '../../api/objects.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { SKIP, unschedulable, type Filter, type Plugin, type FailedCycle } from '../plugin.ts';
import type { PostFilterOutcome, PreFilterOutcome, PreScoreOutcome, Tally } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';

export interface UserPlugin {
  /** As configurations name it; no plugin of the scheduler's own may have it. */
  readonly name: string;
  /** Where it takes part. A configuration must enable it there, or at `multiPoint`. */
  readonly points: readonly ExtensionPoint[];
  /**
   * Which pods it has something to say about; default: all. Decided by `spec` alone, the same for
   * the same spec. Pods that no such plugin applies to are placed by the fast ways.
   */
  appliesTo?(pod: PodObject): boolean;
  /** `args`: of the profile's pluginConfig, as they stand there; throws with what is wrong. */
  create(args: object): Plugin;
}

/** The plugin, silent about pods that it does not apply to. */
class OwnPlugin implements Plugin {
  readonly name: string;
  readonly #own: UserPlugin;
  readonly #plugin: Plugin;
  // There only where the plugin has them: one without a tally counts over nodes by itself.
  readonly tally?: NonNullable<Plugin['tally']>;
  readonly scoreTally?: NonNullable<Plugin['scoreTally']>;

  constructor(own: UserPlugin, args: object) {
    this.name = own.name;
    this.#own = own;
    const plugin = own.create(args);
    this.#plugin = plugin;
    if (plugin.tally !== undefined) {
      this.tally = (pod, snapshot) =>
        this.#applies(pod) ? (plugin.tally?.(pod, snapshot) ?? null) : null;
    }
    if (plugin.scoreTally !== undefined) {
      this.scoreTally = (pod, snapshot, feasible) =>
        this.#applies(pod) ? (plugin.scoreTally?.(pod, snapshot, feasible) ?? null) : null;
    }
  }

  #applies({ pod }: PodInfo): boolean {
    return this.#own.appliesTo?.(pod) ?? true;
  }

  preEnqueue(pod: PodInfo, snapshot: Snapshot): string | null {
    return this.#applies(pod) ? (this.#plugin.preEnqueue?.(pod, snapshot) ?? null) : null;
  }

  preFilter(pod: PodInfo, snapshot: Snapshot, tally?: Tally): PreFilterOutcome {
    return this.#applies(pod) ? (this.#plugin.preFilter?.(pod, snapshot, tally) ?? SKIP) : SKIP;
  }

  preScore(
    pod: PodInfo,
    snapshot: Snapshot,
    feasible: readonly NodeInfo[],
    filter: Filter | null,
    tally?: Tally,
  ): PreScoreOutcome {
    if (!this.#applies(pod)) return SKIP;
    return this.#plugin.preScore?.(pod, snapshot, feasible, filter, tally) ?? SKIP;
  }

  candidatesWanted(failure: FailedCycle): number {
    const isAsked = this.#applies(failure.cycle.pod);
    return isAsked ? (this.#plugin.candidatesWanted?.(failure) ?? 0) : 0;
  }

  postFilter(failure: FailedCycle): PostFilterOutcome {
    const silence: PostFilterOutcome = { kind: 'rejected', rejection: unschedulable() };
    if (!this.#applies(failure.cycle.pod)) return silence;
    return this.#plugin.postFilter?.(failure) ?? silence;
  }
}

/** `args`: of the profile's pluginConfig. */
export function createUserPlugin(own: UserPlugin, args: object): Plugin {
  return new OwnPlugin(own, args);
}

/** Points at which a plugin may be silent but needs the method that stands for the point. */
const METHODS: Partial<Record<ExtensionPoint, keyof Plugin>> = {
  preEnqueue: 'preEnqueue',
  preFilter: 'preFilter',
  filter: 'preFilter',
  postFilter: 'postFilter',
  preScore: 'preScore',
  score: 'preScore',
};

/** What is wrong with what a module exports; empty if it is a plugin. */
export function userPluginError(value: unknown): string {
  if (typeof value !== 'object' || value === null) return 'its default export is no plugin';
  const { name, points, create } = value as Partial<UserPlugin>;
  if (typeof name !== 'string' || name === '') return 'the plugin has no name';
  if (!Array.isArray(points) || points.length === 0) return `${name}: it has no points`;
  if (typeof create !== 'function') return `${name}: it has no function create`;
  const other = points.find((point: ExtensionPoint) => METHODS[point] === undefined);
  return other === undefined ? '' : `${name}: plugins of users cannot take part at ${other}`;
}

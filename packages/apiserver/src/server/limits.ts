/** Flags that bound requests, from texts to numbers. */
import { parseDuration } from '../storage/etcd3/etcd-options.ts';
import { REQUEST_MS_MAX, type TrackerOptions } from './request-tracker.ts';

/** Upstream's limit: more would be a storm of connections. */
const GOAWAY_CHANCE_MAX = 0.02;

/** Texts and numbers as given on the command line. */
export interface LimitFlags {
  readonly maxRequestsInflight?: number;
  readonly maxMutatingRequestsInflight?: number;
  /** `true` or `false`. */
  readonly enablePriorityAndFairness?: string;
  readonly requestTimeout?: string;
  readonly goawayChance?: string;
  readonly shutdownDelayDuration?: string;
  /** Connections from one address; 0: any number. */
  readonly maxConnectionsPerSource?: number;
}

/** Throws an Error that names the flag where one makes no sense. */
export function readLimits(flags: LimitFlags): TrackerOptions {
  const { maxRequestsInflight, maxMutatingRequestsInflight, goawayChance } = flags;
  const requestMsMax = parseDuration('request-timeout', flags.requestTimeout, REQUEST_MS_MAX);
  return {
    ...(maxRequestsInflight === undefined ? {} : { readsMax: maxRequestsInflight }),
    ...(maxMutatingRequestsInflight === undefined
      ? {}
      : { writesMax: maxMutatingRequestsInflight }),
    requestMsMax,
    goawayChance: goawayChance === undefined ? 0 : readChance(goawayChance),
  };
}

/** Whether flow schemas decide who goes first, or only the two limits do. */
export function readsFairness(flags: LimitFlags): boolean {
  const {
    enablePriorityAndFairness = 'true',
    maxRequestsInflight,
    maxMutatingRequestsInflight,
  } = flags;
  if (!['true', 'false'].includes(enablePriorityAndFairness)) {
    throw new Error(
      `--enable-priority-and-fairness: ${enablePriorityAndFairness} is neither true nor false`,
    );
  }
  // without limits there is nothing to share
  const isUnlimited = maxRequestsInflight === 0 && maxMutatingRequestsInflight === 0;
  return enablePriorityAndFairness === 'true' && !isUnlimited;
}

function readChance(text: string): number {
  const chance = /^\d*\.?\d+$/.test(text) ? Number(text) : NaN;
  if (chance >= 0 && chance <= GOAWAY_CHANCE_MAX) return chance;
  throw new Error(`--goaway-chance: ${text} is no number from 0 to ${GOAWAY_CHANCE_MAX}`);
}

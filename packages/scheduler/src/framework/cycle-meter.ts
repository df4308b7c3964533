/** Told what full evaluations and hints do and how long it takes; whoever listens has the clock. */

/** How a step ended, in upstream's words. */
export type StepStatus =
  | 'Success'
  | 'Skip'
  | 'Unschedulable'
  | 'UnschedulableAndUnresolvable'
  | 'Error';

export const STATUS_OF: Readonly<Record<'unschedulable' | 'unresolvable' | 'error', StepStatus>> = {
  unschedulable: 'Unschedulable',
  unresolvable: 'UnschedulableAndUnresolvable',
  error: 'Error',
};

export interface CycleMeter {
  /** Seconds since any fixed moment. */
  now(): number;
  /** Whether the plugins of the cycle that begins are timed one by one, not only counted. */
  samples(): boolean;
  /** All plugins of an extension point were run, `since` a moment. */
  pointEnded(point: string, status: StepStatus, profile: string, since: number): void;
  pluginEnded(plugin: string, point: string, status: StepStatus, since: number): void;
  /** A plugin had something to say, so many times. */
  evaluated(plugin: string, point: string, profile: string, times: number): void;
  /** A plugin was asked whether an event may help a pod that it rejected. */
  hinted(plugin: string, event: string, mayHelp: boolean, since: number): void;
}

/** For who does not ask. */
export const NO_METER: CycleMeter = {
  now: () => 0,
  samples: () => false,
  pointEnded: () => {},
  pluginEnded: () => {},
  evaluated: () => {},
  hinted: () => {},
};

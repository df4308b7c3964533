/** What a server can tell of the process that it runs in, given by the shell. */
import type { Profiler } from './profiling.ts';
import type { HealthProbe } from '../webhook/health-probe.ts';

export interface ProcessFacts {
  /** Values of the command line's flags by name, those that were not given, too. */
  readonly flags: ReadonlyMap<string, string>;
  readonly startedMs: number;
  /** Of the language's runtime: `node v26.10.0`. */
  readonly runtime: string;
  readonly probe: HealthProbe | null;
  readonly profiler: Profiler | null;
  /** Sets how much is logged, by klog's levels; null: it cannot be changed. */
  readonly setVerbosity: ((level: number) => void) | null;
}

export const UNKNOWN_PROCESS: ProcessFacts = {
  flags: new Map(),
  startedMs: 0,
  runtime: '',
  probe: null,
  profiler: null,
  setVerbosity: null,
};

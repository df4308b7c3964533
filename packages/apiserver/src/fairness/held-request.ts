/** A request on its way through priority and fairness, and where it goes. */
import type { Call } from '../call.ts';
import type { FlowSeries } from './flow-metrics.ts';
import type { FlowSchema } from './flow-table.ts';
import type { PriorityLevel } from './priority-level.ts';

/** Where the requests of one schema go. */
export interface Route {
  readonly schema: FlowSchema;
  readonly level: PriorityLevel<Held>;
  readonly series: FlowSeries;
  /** Header fields that tell clients which schema and level that is. */
  readonly fields: readonly string[];
}

/** What it asks, and what to do when its time has come. */
export interface Held {
  readonly call: Call;
  readonly route: Route;
  readonly distinguisher: string;
  /** What it costs while it waits. */
  readonly bytes: number;
  readonly run: () => void;
  /** Its run has returned to us, and the answer goes on. */
  isLingering: boolean;
  isOver: boolean;
}

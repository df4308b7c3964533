/** What is known wherever a request is answered: whose it is, and what it may read. */
import type { Call } from '../request/call.ts';
import type { Served } from '../storage/served.ts';
import type { World } from './world.ts';

export interface RequestScope {
  readonly world: World;
  readonly call: Call;
  readonly served: Served;
  readonly isDryRun: boolean;
}

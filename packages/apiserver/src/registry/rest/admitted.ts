/** A write as admission and the strategies of kinds see it. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { RuleContext } from './behaviour.ts';

/** One write. `object` is null for deletions, `previous` for creations. */
export interface Admitted extends RuleContext {
  readonly operation: Operation;
  readonly subresource: string;
  readonly object: JsonObject | null;
  readonly previous: JsonObject | null;
  /** The object of an update as it was sent, with what such an update leaves alone. */
  readonly sent?: JsonObject;
  /** What a deletion was asked with. */
  readonly deleteOptions?: JsonObject;
}

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

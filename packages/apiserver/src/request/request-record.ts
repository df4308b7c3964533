/** What the path of a request tells the record that the audit log keeps of it. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { CustomVersion } from '../storage/served.ts';

export interface RequestRecord {
  /** Milliseconds of a clock that never goes back, with fractions. */
  readonly clockMs: () => number;
  /** The answer is written down, too. */
  readonly keepsAnswer: boolean;
  /** An object was decoded; nothing has changed it yet. */
  noteObject(object: JsonObject, custom: CustomVersion | null): void;
  noteOptions(options: JsonObject): void;
  /** A patch, as it was sent. */
  notePatch(bytes: Buffer): void;
  /** A part of the server took `ms`; `isShared`: together with others of the same request. */
  noteLatency(name: string, ms: number, isShared: boolean): void;
  keepAnswer(bytes: Uint8Array | string): void;
}

/** What the defaults of a kind consist of. */
import type { JsonObject, JsonValue } from '../json/json-value.ts';

export type DefaultRules = Readonly<Record<string, DefaultRule>>;

/** What a type's absent fields become: constants by field, and a step for what is no constant. */
export interface DefaultRule {
  readonly values?: Readonly<Record<string, JsonValue>>;
  /** Runs after the constants. Changes the object in place. */
  readonly step?: (object: JsonObject) => void;
  /** Comes last, for objects of their own: not for templates of such in others. */
  readonly whole?: (object: JsonObject) => void;
}

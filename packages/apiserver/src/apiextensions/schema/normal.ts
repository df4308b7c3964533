/** An object as its type writes it, with what there is to complain of. */
import type { JsonObject } from '@megaplane/machinery/json-value';

/** An object in its type's form, and what strict decoding would complain about. */
export interface Normal {
  readonly object: JsonObject;
  /** `unknown field "spec.foo"`, `duplicate field "spec.x"`, in upstream's order. */
  readonly complaints: readonly string[];
  /** A refusal that comes after what the complaints lead to: another version than the URL's. */
  readonly mismatch?: string;
}

import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';

/** The conditions of one autoscaler, set in place; the time changes with the status only. */
export class Conditions {
  readonly list: JsonObject[];
  readonly #now: string;

  constructor(before: readonly JsonValue[], now: string) {
    this.list = before.filter(isObject).map((one) => ({ ...one }));
    this.#now = now;
  }

  set(type: string, isTrue: boolean, reason: string, message: string): void {
    const status = isTrue ? 'True' : 'False';
    const found = this.list.find((one) => stringAt(one, 'type') === type);
    if (found === undefined) {
      this.list.push({ type, status, lastTransitionTime: this.#now, reason, message });
      return;
    }
    if (found['status'] !== status) found['lastTransitionTime'] = this.#now;
    Object.assign(found, { status, reason, message });
  }
}

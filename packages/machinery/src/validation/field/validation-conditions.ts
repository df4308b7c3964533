/** Conditions of `meta.v1`, for the kinds whose status is judged whole. */
import {
  duplicate,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from '../../meta/fielderrors.ts';
import { numberAt, stringAt } from '../../json/json.ts';
import type { JsonValue } from '../../json/json-value.ts';
import { conditionReasonErrors, qualifiedNameErrors } from '../../meta/names.ts';
import { eachObject, invalidEach, type Findings } from './validation-rules.ts';

const REASON_LENGTH_MAX = 1024;
const MESSAGE_LENGTH_MAX = 32 * 1024;
const STATUSES = ['False', 'True', 'Unknown'];

/** Each type once, with everything that a condition must say. */
export function checkConditions(
  found: Findings,
  path: string,
  conditions: readonly JsonValue[],
): void {
  const types = new Set<string>();
  eachObject(conditions, path, (condition, at) => {
    const type = stringAt(condition, 'type');
    if (types.has(type)) found.push(duplicate(`${at}.type`, type));
    types.add(type);
    invalidEach(found, `${at}.type`, type, qualifiedNameErrors(type));
    const status = stringAt(condition, 'status');
    if (!STATUSES.includes(status)) found.push(notSupported(`${at}.status`, status, STATUSES));
    const generation = numberAt(condition, 'observedGeneration');
    if (generation < 0) {
      const text = 'must be greater than or equal to zero';
      found.push(invalidValue(`${at}.observedGeneration`, generation, text));
    }
    if (stringAt(condition, 'lastTransitionTime') === '') {
      found.push(required(`${at}.lastTransitionTime`));
    }
    const reason = stringAt(condition, 'reason');
    if (reason === '') found.push(required(`${at}.reason`));
    else {
      invalidEach(found, `${at}.reason`, reason, conditionReasonErrors(reason));
      if (reason.length > REASON_LENGTH_MAX) {
        found.push(tooLong(`${at}.reason`, REASON_LENGTH_MAX));
      }
    }
    if (Buffer.byteLength(stringAt(condition, 'message')) > MESSAGE_LENGTH_MAX) {
      found.push(tooLong(`${at}.message`, MESSAGE_LENGTH_MAX));
    }
  });
}

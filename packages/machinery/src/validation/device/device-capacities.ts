/** How much of a capacity a request may have, where several share a device. */
import { forbiddenField, invalidValue, required, tooMany } from '../../meta/fielderrors.ts';
import { listAt, objectAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { parseQuantity, Quantity } from '../../meta/quantity.ts';
import type { Findings } from '../field/validation-rules.ts';
import { checkRepeats } from './device-lists.ts';

const VALUES_MAX = 10;

function amountOf(value: JsonValue | undefined): Quantity | undefined {
  const amount = typeof value === 'string' ? parseQuantity(value) : undefined;
  return amount instanceof Quantity ? amount : undefined;
}

/** A capacity; only devices that may be allocated several times have policies for requests. */
export function checkCapacity(
  found: Findings,
  path: string,
  capacity: JsonObject,
  isShared: boolean,
): void {
  const policy = objectAt(capacity, 'requestPolicy');
  if (policy === undefined) return;
  const at = `${path}.requestPolicy`;
  if (!isShared) {
    found.push(forbiddenField(at, 'allowMultipleAllocations must be true'));
    return;
  }
  const whole = amountOf(capacity['value']) ?? new Quantity(0n, 0, 'DecimalSI');
  const values = listAt(policy, 'validValues');
  const range = objectAt(policy, 'validRange');
  const usual = amountOf(policy['default']);
  if (values.length > 0 && range !== undefined) {
    const text =
      'exactly one policy can be specified, cannot specify "validValues" and "validRange" at ' +
      'the same time';
    found.push(forbiddenField(at, text));
  } else if (values.length > 0) {
    if (usual === undefined) {
      found.push(required(`${at}.default`, 'required when validValues is defined'));
    } else checkValues(found, `${at}.validValues`, values, usual, whole);
  } else if (range !== undefined) {
    if (usual === undefined) {
      found.push(required(`${at}.default`, 'required when validRange is defined'));
    } else checkRange(found, `${at}.validRange`, range, usual, whole);
  }
}

function checkValues(
  found: Findings,
  path: string,
  list: readonly JsonValue[],
  usual: Quantity,
  whole: Quantity,
): void {
  const values = list.map((value) => amountOf(value) ?? usual);
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    if (before === undefined || before.compare(value) <= 0) continue;
    const text = 'values must be sorted in ascending order';
    found.push(invalidValue(`${path}[${index}]`, String(value), text));
  }
  if (list.length > VALUES_MAX) {
    found.push(tooMany(path, list.length, VALUES_MAX));
  } else {
    for (const [index, value] of values.entries()) {
      if (value.compare(whole) <= 0) continue;
      const text = `option is larger than capacity value: ${String(whole)}`;
      found.push(invalidValue(`${path}[${index}]`, String(value), text));
    }
    checkRepeats(found, path, list, (value) => String(amountOf(value)?.value));
  }
  const isKnown = list.length <= VALUES_MAX && values.some((one) => one.compare(usual) === 0);
  if (isKnown) return;
  const text = 'default value is not valid according to the requestPolicy';
  found.push(invalidValue(path, String(usual), text));
}

function checkRange(
  found: Findings,
  path: string,
  range: JsonObject,
  usual: Quantity,
  whole: Quantity,
): void {
  const [least, most, step] = ['min', 'max', 'step'].map((field) => amountOf(range[field]));
  if (least === undefined) {
    found.push(required(`${path}.min`, 'required when validRange is defined'));
    return;
  }
  const refuse = (field: string, value: Quantity, text: string): void => {
    found.push(invalidValue(`${path}.${field}`, String(value), text));
  };
  if (least.compare(whole) > 0) {
    refuse('min', least, `min is larger than capacity value: ${String(whole)}`);
  }
  if (usual.compare(least) < 0) {
    refuse('min', usual, `default is less than min: ${String(least)}`);
  }
  if (most !== undefined) {
    if (least.compare(most) > 0) {
      refuse('max', least, `min is larger than max: ${String(most)}`);
    }
    if (most.compare(whole) > 0) {
      refuse('max', most, `max is larger than capacity value: ${String(whole)}`);
    }
    if (usual.compare(most) > 0) {
      refuse('max', usual, `default is more than max: ${String(most)}`);
    }
  }
  if (step === undefined) return;
  const next = least.add(step);
  if (next.compare(whole) > 0) {
    const text = `one step ${String(next)} is larger than capacity value: ${String(whole)}`;
    refuse('step', step, text);
  }
  for (const value of most === undefined ? [usual] : [usual, most]) {
    const stride = step.scaled(0);
    if (stride !== 0n && (value.scaled(0) - least.scaled(0)) % stride === 0n) continue;
    const text =
      `value is not a multiple of a given step (${String(step)}) ` + `from (${String(least)})`;
    refuse('step', value, text);
  }
}

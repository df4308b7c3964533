/** Checks that many kinds share; each adds what it finds to `found`. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  invalidValue,
  notSupported,
  required,
  typedText,
  type FieldError,
  type Printed,
} from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { equals, listAt, objectAt, stringAt } from '../../json/json.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { dnsLabelErrors, labelValueErrors, qualifiedNameErrors } from '../../meta/names.ts';
import { parseQuantity, Quantity } from '../../meta/quantity.ts';
import { isVoid } from '../../scheme/empty-collections.ts';

/** What is wrong with an object so far, in the order of upstream's checks. */
export type Findings = FieldError[];

/** Resources that are counted: quotas name them, whole numbers only. */
export const COUNTED_RESOURCES: readonly string[] = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];

export const IMMUTABLE = 'field is immutable';
export const NOT_NEGATIVE = 'must be greater than or equal to 0';

/** `path[0]`, `path[1]`, ... with each object of a list. */
export function eachObject(
  list: readonly JsonValue[],
  path: string,
  check: (item: JsonObject, path: string, index: number) => void,
): void {
  for (const [index, item] of list.entries()) {
    check(isObject(item) ? item : {}, `${path}[${index}]`, index);
  }
}

/** One finding of `Invalid value` for each text. */
export function invalidEach(
  found: Findings,
  path: string,
  value: JsonValue | Printed,
  texts: readonly string[],
): void {
  for (const text of texts) found.push(invalidValue(path, value, text));
}

export function nonNegative(found: Findings, path: string, value: JsonValue | undefined): void {
  if (isNumber(value) && value < 0) found.push(invalidValue(path, value, NOT_NEGATIVE));
}

/** Absent counts as 0, and 0 is refused. Upstream has two texts for it. */
export function positive(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  text: 'must be greater than zero' | 'must be greater than 0' = 'must be greater than zero',
): void {
  const number = isNumber(value) ? value : 0;
  if (number <= 0) found.push(invalidValue(path, number, text));
}

/** A value of a fixed set; absent is `Required value` unless `isOptional`. */
export function oneOf(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  supported: readonly string[],
  isOptional = false,
): void {
  if (value === undefined || value === null || value === '') {
    if (!isOptional) found.push(required(path));
  } else if (typeof value !== 'string' || !supported.includes(value)) {
    found.push(notSupported(path, value, supported));
  }
}

/** A value of a fixed set, where it is set at all: an empty one counts, and is refused. */
export function oneOfSet(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  supported: readonly string[],
): void {
  if (typeof value !== 'string' || supported.includes(value)) return;
  found.push(notSupported(path, value, supported));
}

/**
 * Both absent, or equal. An absent new value is printed as `null`, one of a type as Go prints it.
 */
export function immutable(
  found: Findings,
  path: string,
  next: JsonValue | undefined,
  previous: JsonValue | undefined,
  typeName?: string,
): void {
  if (isSame(next, previous)) return;
  const isPrinted = typeName !== undefined && isObject(next);
  found.push(invalidValue(path, isPrinted ? goForm(typeName, next) : next, IMMUTABLE));
}

/**
 * Equal as upstream's semantic comparison sees it: absent, null, empty lists and maps are one; an
 * empty struct is none of them.
 */
export function isSame(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (isVoid(left) && isVoid(right)) return true;
  if (isQuantityPair(left, right)) return true;
  if (isObject(left) && isObject(right)) {
    const names = new Set([...Object.keys(left), ...Object.keys(right)]);
    for (const name of names)
      if (!isSame(ownMember(left, name), ownMember(right, name))) return false;
    return true;
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, at) => isSame(item, right[at]));
  }
  return equals(left, right);
}

/** `1` and `1000m` are one amount; text that is no amount on either side is compared as text. */
function isQuantityPair(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (typeof left !== 'string' || typeof right !== 'string' || left === right) return false;
  if (!/^[0-9.+-]/.test(left) || !/^[0-9.+-]/.test(right)) return false;
  const [one, other] = [parseQuantity(left), parseQuantity(right)];
  return one instanceof Quantity && other instanceof Quantity && one.compare(other) === 0;
}

/** Labels of metadata or of a node selector: every finding names the whole map. */
export function checkLabels(found: Findings, path: string, labels: JsonObject | undefined): void {
  for (const [key, value] of Object.entries(labels ?? {})) {
    invalidEach(found, path, key, qualifiedNameErrors(key));
    const text = typeof value === 'string' ? value : '';
    invalidEach(found, path, text, labelValueErrors(text));
  }
}

export function checkDnsLabel(found: Findings, path: string, value: string): void {
  invalidEach(found, path, value, dnsLabelErrors(value));
}

/** A `meta.v1.LabelSelector`; absent selects nothing and is fine. */
export function checkSelector(
  found: Findings,
  path: string,
  selector: JsonObject | undefined,
): void {
  if (selector === undefined) return;
  checkLabels(found, `${path}.matchLabels`, objectAt(selector, 'matchLabels'));
  eachObject(listAt(selector, 'matchExpressions'), `${path}.matchExpressions`, (item, at) => {
    checkRequirement(found, at, item);
  });
}

const SELECTOR_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

function checkRequirement(found: Findings, path: string, requirement: JsonObject): void {
  const operator = stringAt(requirement, 'operator');
  const values = listAt(requirement, 'values');
  if (!SELECTOR_OPERATORS.includes(operator)) {
    const shown = typedText(operator);
    found.push(invalidValue(`${path}.operator`, shown, 'not a valid selector operator'));
  } else if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      found.push(
        required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"),
      );
    }
  } else if (values.length > 0) {
    const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    found.push({ kind: 'forbidden', field: `${path}.values`, body: `Forbidden: ${text}` });
  }
  const key = stringAt(requirement, 'key');
  invalidEach(found, `${path}.key`, key, qualifiedNameErrors(key));
  for (const [index, value] of values.entries()) {
    const text = typeof value === 'string' ? value : '';
    invalidEach(found, `${path}.values[${index}]`, text, labelValueErrors(text));
  }
}

/** Names in a list must differ; gives the set of them. */
export function uniqueNames(
  found: Findings,
  path: string,
  list: readonly JsonValue[],
  field = 'name',
): Set<string> {
  const names = new Set<string>();
  eachObject(list, path, (item, at) => {
    const name = stringAt(item, field);
    if (names.has(name)) found.push(duplicate(`${at}.${field}`, name));
    names.add(name);
  });
  return names;
}

/** An amount that must not be negative; text that is none has been refused before. */
export function nonNegativeAmount(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
): void {
  if (typeof value !== 'string') return;
  const amount = parseQuantity(value);
  if (amount instanceof Quantity && amount.sign < 0) {
    found.push(invalidValue(path, value, NOT_NEGATIVE));
  }
}

/** An integer, or a percentage: replicas of a rollout. Gives its number, percentages of 100. */
export function checkIntOrPercent(
  found: Findings,
  path: string,
  value: JsonValue | undefined,
  percentMax = 100,
): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === 'number') {
    nonNegative(found, path, value);
    return value;
  }
  const text = typeof value === 'string' ? value : '';
  if (!/^[0-9]+%$/.test(text)) {
    const detail =
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  " +
      "or '93%', regex used for validation is '[0-9]+%')";
    found.push(invalidValue(path, typedText(text), detail));
    return 0;
  }
  const percent = Number(text.slice(0, -1));
  if (percent > percentMax) {
    found.push(invalidValue(path, text, `must not be greater than ${percentMax}%`));
  }
  return percent;
}

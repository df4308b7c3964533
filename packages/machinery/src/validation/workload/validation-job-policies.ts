/** What jobs do about pods that fail, and when they count as done. */

import {
  duplicate,
  invalidValue,
  notSupported,
  printed,
  required,
  tooMany,
  tooLong,
} from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors, qualifiedNameErrors } from '../../meta/names.ts';
import { eachObject, invalidEach, nonNegative, type Findings } from '../field/validation-rules.ts';

const RULES_MAX = 20;
const EXIT_CODES_MAX = 255;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];
const OPERATORS = ['In', 'NotIn'];
const STATUSES = ['False', 'True', 'Unknown'];

/** A value of a set that must be there; the set is listed as Go prints lists of strings. */
function requiredOf(
  found: Findings,
  path: string,
  value: string,
  supported: readonly string[],
): void {
  if (value === '') {
    const list = supported.map((item) => JSON.stringify(item)).join(' ');
    found.push(required(path, `valid values: [${list}]`));
  } else if (!supported.includes(value)) found.push(notSupported(path, value, supported));
}

const MANAGER_BYTES_MAX = 63;
const HTTP_PATH_TEXT = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const HTTP_PATH = new RegExp(`^${HTTP_PATH_TEXT}$`);

export function checkManager(found: Findings, path: string, manager: JsonValue | undefined): void {
  if (typeof manager !== 'string') return;
  if (manager === '') {
    found.push(required(path));
    return;
  }
  checkDomainPath(found, path, manager);
  if (Buffer.byteLength(manager) > MANAGER_BYTES_MAX) found.push(tooLong(path, MANAGER_BYTES_MAX));
}

/** `acme.io/foo`: a domain, and a path in it. */
function checkDomainPath(found: Findings, path: string, manager: string): void {
  const at = manager.indexOf('/');
  if (at <= 0 || at === manager.length - 1) {
    const text = 'must be a domain-prefixed path (such as "acme.io/foo")';
    found.push(invalidValue(path, manager, text));
    return;
  }
  const host = manager.slice(0, at);
  invalidEach(found, path, host, dnsSubdomainErrors(host));
  const rest = manager.slice(at + 1);
  if (HTTP_PATH.test(rest)) return;
  const text = `Invalid path (regex used for validation is '${HTTP_PATH_TEXT}')`;
  found.push(invalidValue(path, rest, text));
}

export function checkReplacement(found: Findings, path: string, spec: JsonObject): void {
  const policy = spec['podReplacementPolicy'];
  if (policy === undefined || policy === null) return;
  const hasFailures = objectAt(spec, 'podFailurePolicy') !== undefined;
  const supported = hasFailures ? ['Failed'] : ['Failed', 'TerminatingOrFailed'];
  if (typeof policy === 'string' && supported.includes(policy)) return;
  found.push(notSupported(path, policy, supported));
}

export function checkFailurePolicy(found: Findings, path: string, spec: JsonObject): void {
  const policy = objectAt(spec, 'podFailurePolicy');
  if (policy === undefined) return;
  const rules = listAt(policy, 'rules');
  if (rules.length > RULES_MAX) found.push(tooMany(`${path}.rules`, rules.length, RULES_MAX));
  const podSpec = objectAt(spec, 'template', 'spec') ?? {};
  const containers = [...listAt(podSpec, 'containers'), ...listAt(podSpec, 'initContainers')];
  const names = new Set(containers.map((container) => stringAt(container, 'name')));
  eachObject(rules, `${path}.rules`, (rule, at) => {
    checkFailureRule(found, at, rule, spec, names);
  });
}

function checkFailureRule(
  found: Findings,
  path: string,
  rule: JsonObject,
  spec: JsonObject,
  names: ReadonlySet<string>,
): void {
  const action = stringAt(rule, 'action');
  if (action !== 'FailIndex') requiredOf(found, `${path}.action`, action, ACTIONS);
  else if (spec['backoffLimitPerIndex'] === undefined) {
    const text = 'requires the backoffLimitPerIndex to be set';
    found.push(invalidValue(`${path}.action`, action, text));
  }
  const codes = objectAt(rule, 'onExitCodes');
  if (codes !== undefined) checkExitCodes(found, `${path}.onExitCodes`, codes, names);
  const conditions = listAt(rule, 'onPodConditions');
  if (conditions.length > RULES_MAX) {
    found.push(tooMany(`${path}.onPodConditions`, conditions.length, RULES_MAX));
  }
  eachObject(conditions, `${path}.onPodConditions`, (pattern, at) => {
    const type = stringAt(pattern, 'type');
    invalidEach(found, `${at}.type`, type, qualifiedNameErrors(type));
    requiredOf(found, `${at}.status`, stringAt(pattern, 'status'), STATUSES);
  });
  const hasConditions = conditions.length > 0;
  if ((codes !== undefined) !== hasConditions) return;
  const text = hasConditions
    ? 'specifying both OnExitCodes and OnPodConditions is not supported'
    : 'specifying one of OnExitCodes and OnPodConditions is required';
  found.push({ kind: 'invalid', field: path, body: `Invalid value: ${text}` });
}

function checkExitCodes(
  found: Findings,
  path: string,
  codes: JsonObject,
  names: ReadonlySet<string>,
): void {
  const operator = stringAt(codes, 'operator');
  requiredOf(found, `${path}.operator`, operator, OPERATORS);
  const container = codes['containerName'];
  if (typeof container === 'string' && !names.has(container)) {
    const text = 'must be one of the container or initContainer names in the pod template';
    found.push(invalidValue(`${path}.containerName`, container, text));
  }
  const values = listAt(codes, 'values');
  if (values.length === 0) {
    const sent = codes['values'] ?? printed('null');
    found.push(invalidValue(`${path}.values`, sent, 'at least one value is required'));
  } else if (values.length > EXIT_CODES_MAX) {
    found.push(tooMany(`${path}.values`, values.length, EXIT_CODES_MAX));
  }
  for (const [index, value] of values.entries()) {
    const at = `${path}.values[${index}]`;
    if (operator === 'In' && value === 0) {
      found.push(invalidValue(at, value, 'must not be 0 for the In operator'));
    }
    if (values.indexOf(value) < index) found.push(duplicate(at, value));
  }
  const isOrdered = values.every(
    (value, index) => Number(values[index - 1] ?? value) <= Number(value),
  );
  if (!isOrdered) found.push(invalidValue(`${path}.values`, [...values], 'must be ordered'));
}

export function checkSuccessPolicy(found: Findings, path: string, spec: JsonObject): void {
  const policy = objectAt(spec, 'successPolicy');
  if (policy === undefined) return;
  if (spec['completionMode'] !== 'Indexed') {
    const value = goForm('batch.v1.SuccessPolicy', policy);
    found.push(invalidValue(path, value, 'requires indexed completion mode'));
    return;
  }
  const rules = listAt(policy, 'rules');
  if (rules.length === 0) {
    const text = 'at least one rules must be specified when the successPolicy is specified';
    found.push(required(`${path}.rules`, text));
  }
  if (rules.length > RULES_MAX) found.push(tooMany(`${path}.rules`, rules.length, RULES_MAX));
  const completions = numberAt(spec, 'completions');
  eachObject(rules, `${path}.rules`, (rule, at) => {
    checkSuccessRule(found, at, rule, completions);
  });
}

function checkSuccessRule(
  found: Findings,
  path: string,
  rule: JsonObject,
  completions: number,
): void {
  const indexes = rule['succeededIndexes'];
  const count = rule['succeededCount'];
  if (indexes === undefined && count === undefined) {
    const text = 'at least one of succeededCount or succeededIndexes must be specified';
    found.push(required(path, text));
  }
  const total = typeof indexes === 'string' ? countIndexes(indexes, completions) : undefined;
  if (typeof total === 'string') {
    const text = `error parsing succeededIndexes: ${total}`;
    found.push(invalidValue(`${path}.succeededIndexes`, indexes, text));
  }
  if (typeof count !== 'number') return;
  const at = `${path}.succeededCount`;
  nonNegative(found, at, count);
  if (count > completions) {
    const text =
      `must be less than or equal to ${completions} ` + '(the number of specified completions)';
    found.push(invalidValue(at, count, text));
  }
  const listed = typeof total === 'string' ? 0 : total;
  if (listed === undefined || count <= listed) return;
  const text =
    `must be less than or equal to ${listed} ` +
    '(the number of indexes in the specified succeededIndexes field)';
  found.push(invalidValue(at, count, text));
}

/** The number of indexes in `0,2-4`, or what is wrong with the list. */
export function countIndexes(text: string, completions: number): number | string {
  if (text === '') return 0;
  let total = 0;
  let last = -Infinity;
  for (const interval of text.split(',')) {
    const limits = intervalOf(interval, completions);
    if (typeof limits === 'string') return limits;
    const [first, end] = limits;
    if (last >= first) return outOfOrder(last, first);
    total += end - first + 1;
    last = end;
  }
  return total;
}

/** First and last of `2-4`, or what is wrong with it. */
export function intervalOf(interval: string, completions: number): [number, number] | string {
  const texts = interval.split('-');
  if (texts.length > 2) {
    return (
      `the fragment ${JSON.stringify(interval)} violates the requirement that an index interval ` +
      "can have at most two parts separated by '-'"
    );
  }
  const limits: number[] = [];
  for (const text of texts) {
    if (!/^[+-]?\d+$/.test(text)) {
      return `cannot convert string to integer for index: ${JSON.stringify(text)}`;
    }
    if (Number(text) >= completions) return `too large index: ${JSON.stringify(text)}`;
    limits.push(Number(text));
  }
  const [first = 0, end] = limits;
  if (end === undefined) return [first, first];
  return first >= end ? outOfOrder(first, end) : [first, end];
}

function outOfOrder(previous: number, current: number): string {
  return `non-increasing order, previous: ${previous}, current: ${current}`;
}

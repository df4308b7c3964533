/** Quotas and limit ranges: which resources may be limited, and bounds that fit each other. */

import { duplicate, forbiddenField, invalidValue, required } from './fielderrors.ts';
import { listAt, objectAt, stringAt } from './json.ts';
import type { JsonObject, JsonValue } from './json-value.ts';
import { qualifiedNameErrors } from './names.ts';
import { parseQuantity, Quantity } from './quantity.ts';
import type { RuleTable } from './validation.ts';
import {
  COUNTED_RESOURCES,
  eachObject,
  immutable,
  invalidEach,
  nonNegativeAmount,
  type Findings,
} from './validation-rules.ts';

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'];
const QUOTA_RESOURCES = new Set([
  ...COMPUTE,
  ...COMPUTE.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  'requests.storage',
  ...COUNTED_RESOURCES,
]);
const HUGE_PAGES = /^(requests\.)?hugepages-/;

export const LIMIT_RULES: RuleTable = {
  resourcequotas: {
    create: checkQuota,
    change: (found, next, previous) => {
      const [after, before] = [next, previous].map((quota) => [...listAt(quota, 'spec', 'scopes')]);
      immutable(found, 'spec.scopes', after, before);
    },
  },
  limitranges: { create: checkLimitRange },
};

function checkQuota(found: Findings, quota: JsonObject): void {
  for (const [name, amount] of Object.entries(objectAt(quota, 'spec', 'hard') ?? {})) {
    const path = `spec.hard[${name}]`;
    const texts = qualifiedNameErrors(name);
    invalidEach(found, path, name, texts);
    const isQuota = QUOTA_RESOURCES.has(name) || HUGE_PAGES.test(name);
    if (texts.length === 0 && !name.includes('/') && !isQuota) {
      if (name !== 'storage') {
        const text = 'must be a standard resource type or fully qualified';
        found.push(invalidValue(path, name, text));
      }
      found.push(invalidValue(path, name, 'must be a standard resource for quota'));
    }
    nonNegativeAmount(found, path, amount);
    const parsed = amountOf(amount);
    if (COUNTED_RESOURCES.includes(name) && parsed !== undefined && !parsed.isExact(0)) {
      found.push(invalidValue(path, amount ?? null, 'must be an integer'));
    }
  }
}

function amountOf(value: JsonValue | undefined): Quantity | undefined {
  const amount = typeof value === 'string' ? parseQuantity(value) : undefined;
  return amount instanceof Quantity ? amount : undefined;
}

const BOUNDS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'];
const LIMIT_TYPES = ['Pod', 'Container', 'PersistentVolumeClaim'];

function checkLimitRange(found: Findings, range: JsonObject): void {
  const types = new Set<string>();
  eachObject(listAt(range, 'spec', 'limits'), 'spec.limits', (limit, at) => {
    const type = stringAt(limit, 'type');
    checkLimitType(found, `${at}.type`, type);
    if (types.has(type)) found.push(duplicate(`${at}.type`, type));
    types.add(type);
    checkLimitFields(found, at, limit, type);
    const names = new Set(BOUNDS.flatMap((field) => Object.keys(objectAt(limit, field) ?? {})));
    for (const name of names) checkBounds(found, at, limit, name);
  });
}

function checkLimitType(found: Findings, path: string, type: string): void {
  const texts = qualifiedNameErrors(type);
  invalidEach(found, path, type, texts);
  if (texts.length > 0 || type.includes('/') || LIMIT_TYPES.includes(type)) return;
  const text = 'must be a standard limit type or fully qualified';
  found.push(invalidValue(path, type, text));
}

function checkLimitFields(found: Findings, path: string, limit: JsonObject, type: string): void {
  if (type === 'Pod') {
    for (const field of ['default', 'defaultRequest']) {
      if (Object.keys(objectAt(limit, field) ?? {}).length === 0) continue;
      const text = "may not be specified when `type` is 'Pod'";
      found.push(forbiddenField(`${path}.${field}`, text));
    }
  }
  if (type !== 'PersistentVolumeClaim') return;
  const hasStorage = ['min', 'max'].some(
    (field) => objectAt(limit, field)?.['storage'] !== undefined,
  );
  if (hasStorage) return;
  const text = 'either minimum or maximum storage value is required, but neither was provided';
  found.push(required(`${path}.limits`, text));
}

/** The lower of two bounds, the upper one, what they are called, and which one is blamed. */
const PAIRS = [
  ['min', 'max', 'min value', 'max value', 'min', 'min'],
  ['min', 'defaultRequest', 'min value', 'default request value', 'defaultRequest', ''],
  ['defaultRequest', 'max', 'default request value', 'max value', 'defaultRequest', ''],
  [
    'defaultRequest',
    'default',
    'default request value',
    'default limit value',
    'defaultRequest',
    '',
  ],
  ['min', 'default', 'min value', 'default value', 'default', 'min'],
  ['default', 'max', 'default value', 'max value', 'default', 'max'],
] as const;

function checkBounds(found: Findings, path: string, limit: JsonObject, name: string): void {
  for (const [low, high, lowText, highText, blamed, printedBound] of PAIRS) {
    const [lower, upper] = [amountOf(at(limit, low, name)), amountOf(at(limit, high, name))];
    if (lower === undefined || upper === undefined || lower.compare(upper) <= 0) continue;
    const value = at(limit, printedBound === '' ? blamed : printedBound, name) ?? null;
    const text = `${lowText} ${lower.toString()} is greater than ${highText} ${upper.toString()}`;
    found.push(invalidValue(`${path}.${blamed}[${name}]`, value, text));
  }
  const ratio = amountOf(at(limit, 'maxLimitRequestRatio', name));
  if (ratio === undefined || ratio.compare(new Quantity(1n, 0, 'DecimalSI')) >= 0) return;
  const value = at(limit, 'maxLimitRequestRatio', name) ?? null;
  const text = `ratio ${ratio.toString()} is less than 1`;
  found.push(invalidValue(`${path}.maxLimitRequestRatio[${name}]`, value, text));
}

function at(limit: JsonObject, field: string, name: string): JsonValue | undefined {
  return objectAt(limit, field)?.[name];
}

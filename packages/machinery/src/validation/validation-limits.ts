/** Quotas and limit ranges: which resources may be limited, and bounds that fit each other. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  required,
  typedText,
} from '../meta/fielderrors.ts';
import { goForm } from '../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { qualifiedNameErrors } from '../meta/names.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import {
  checkContainerResource,
  checkResourceName,
  isOvercommitted,
  isQuotaResource,
} from './field/resource-names.ts';
import { checkAmount } from './pod/validation-resources.ts';
import { eachObject, IMMUTABLE, invalidEach, type Findings } from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

export const LIMIT_RULES: RuleTable = {
  resourcequotas: {
    create: checkQuota,
    change: (found, next, previous) => {
      // which they are counts, and neither their order nor how often
      const sets = [next, previous].map((quota) => new Set(listAt(quota, 'spec', 'scopes')));
      const [after = new Set(), before = new Set()] = sets;
      if (after.symmetricDifference(before).size === 0) return;
      const scopes = objectAt(next, 'spec')?.['scopes'];
      found.push(invalidValue('spec.scopes', scopes, IMMUTABLE));
    },
    subresources: {
      status: (found, next) => {
        checkAmounts(found, 'status.hard', objectAt(next, 'status', 'hard'));
        checkAmounts(found, 'status.used', objectAt(next, 'status', 'used'));
      },
    },
  },
  limitranges: { create: checkLimitRange },
};

function checkQuota(found: Findings, quota: JsonObject): void {
  checkAmounts(found, 'spec.hard', objectAt(quota, 'spec', 'hard'));
  checkScopes(found, objectAt(quota, 'spec') ?? {});
  checkScopeSelector(found, objectAt(quota, 'spec') ?? {});
}

function checkAmounts(found: Findings, at: string, amounts: JsonObject | undefined): void {
  for (const [name, amount] of Object.entries(amounts ?? {})) {
    const path = `${at}[${name}]`;
    checkResourceName(found, path, name);
    if (!name.includes('/') && !isQuotaResource(name)) {
      found.push(invalidValue(path, typedText(name), 'must be a standard resource for quota'));
    }
    checkAmount(found, path, name, amount);
  }
}

const POD_AMOUNTS = [
  'cpu',
  'memory',
  'limits.cpu',
  'limits.memory',
  'requests.cpu',
  'requests.memory',
];
const POD_RESOURCES = ['pods', ...POD_AMOUNTS];
/** Which resources a quota of a scope may count; those of quotas only are looked at. */
const SCOPE_RESOURCES: Readonly<Record<string, readonly string[]>> = {
  Terminating: POD_RESOURCES,
  NotTerminating: POD_RESOURCES,
  NotBestEffort: POD_RESOURCES,
  PriorityClass: POD_RESOURCES,
  CrossNamespacePodAffinity: POD_RESOURCES,
  BestEffort: ['pods'],
  VolumeAttributesClass: ['persistentvolumeclaims', 'requests.storage'],
};
const CONFLICTS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
];
const EXISTENCE_TEXT =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, " +
  'ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ' +
  'ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity';

/** The resources of a quota that a scope has nothing to do with. */
function misfits(spec: JsonObject, scope: string): string[] {
  const fitting = ownMember(SCOPE_RESOURCES, scope);
  if (fitting === undefined) return [];
  const names = Object.keys(objectAt(spec, 'hard') ?? {});
  return names.filter((name) => isQuotaResource(name) && !fitting.includes(name));
}

function isConflict(scopes: readonly JsonValue[]): boolean {
  return CONFLICTS.some((pair) => pair.every((scope) => scopes.includes(scope)));
}

function checkScopes(found: Findings, spec: JsonObject): void {
  const path = 'spec.scopes';
  const scopes = listAt(spec, 'scopes');
  for (const scope of scopes) {
    const name = typeof scope === 'string' ? scope : '';
    if (ownMember(SCOPE_RESOURCES, name) === undefined) {
      found.push(invalidValue(path, [...scopes], 'unsupported scope'));
    }
    for (const _ of misfits(spec, name)) {
      found.push(invalidValue(path, [...scopes], 'unsupported scope applied to resource'));
    }
  }
  if (isConflict(scopes)) found.push(invalidValue(path, [...scopes], 'conflicting scopes'));
}

function checkScopeSelector(found: Findings, spec: JsonObject): void {
  const path = 'spec.scopeSelector.matchExpressions';
  const selector = objectAt(spec, 'scopeSelector');
  const whole = goForm('core.v1.ScopeSelector', selector);
  const requirements = listAt(selector, 'matchExpressions');
  for (const requirement of requirements) {
    const scope = stringAt(requirement, 'scopeName');
    if (ownMember(SCOPE_RESOURCES, scope) === undefined) {
      found.push(invalidValue(`${path}.scopeName`, typedText(scope), 'unsupported scope'));
    }
    for (const _ of misfits(spec, scope)) {
      found.push(invalidValue(path, whole, 'unsupported scope applied to resource'));
    }
    checkScopeOperator(found, path, requirement, scope);
  }
  const scopes = requirements.map((requirement) => stringAt(requirement, 'scopeName'));
  if (!isConflict(scopes)) return;
  // upstream shows the other list of scopes
  const other = spec['scopes'] ?? null;
  found.push(invalidValue(path, other, 'conflicting scopes'));
}

function checkScopeOperator(
  found: Findings,
  path: string,
  requirement: JsonValue,
  scope: string,
): void {
  const operator = stringAt(requirement, 'operator');
  const values = listAt(requirement, 'values');
  const hasValues = scope === 'PriorityClass' || scope === 'VolumeAttributesClass';
  if (!hasValues && ownMember(SCOPE_RESOURCES, scope) !== undefined && operator !== 'Exists') {
    found.push(invalidValue(`${path}.operator`, typedText(operator), EXISTENCE_TEXT));
  }
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length > 0) return;
    const text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    found.push(required(`${path}.values`, text));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length === 0) return;
    const text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    found.push(invalidValue(`${path}.values`, [...values], text));
  } else {
    const text = 'not a valid selector operator';
    found.push(invalidValue(`${path}.operator`, typedText(operator), text));
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
    checkLimitNames(found, at, limit, type);
    const names = new Set(BOUNDS.flatMap((field) => Object.keys(objectAt(limit, field) ?? {})));
    for (const name of names) checkBounds(found, at, limit, name);
  });
}

function checkLimitType(found: Findings, path: string, type: string): void {
  const texts = qualifiedNameErrors(type);
  invalidEach(found, path, typedText(type), texts);
  if (texts.length > 0 || type.includes('/') || LIMIT_TYPES.includes(type)) return;
  const text = 'must be a standard limit type or fully qualified';
  found.push(invalidValue(path, type, text));
}

/** Names of what is bounded, and which bounds a type has at all. */
function checkLimitNames(found: Findings, path: string, limit: JsonObject, type: string): void {
  const isOfPods = type === 'Pod' || type === 'Container';
  const check = isOfPods ? checkContainerResource : checkResourceName;
  const namesOf = (field: string): string[] => Object.keys(objectAt(limit, field) ?? {});
  for (const field of BOUNDS) {
    if (field === 'maxLimitRequestRatio') checkClaimBounds(found, path, limit, type);
    const isUnfit = type === 'Pod' && field.startsWith('default');
    for (const name of namesOf(field)) {
      if (!isUnfit) check(found, `${path}.${field}[${name}]`, name);
    }
    if (!isUnfit || namesOf(field).length === 0) continue;
    found.push(forbiddenField(`${path}.${field}`, "may not be specified when `type` is 'Pod'"));
  }
}

function checkClaimBounds(found: Findings, path: string, limit: JsonObject, type: string): void {
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
  checkRatio(found, `${path}.maxLimitRequestRatio[${name}]`, limit, name);
  const [usual, usualRequest] = [
    bound(limit, 'default', name),
    bound(limit, 'defaultRequest', name),
  ];
  if (isOvercommitted(name) || usual === undefined || usualRequest === undefined) return;
  if (usual.compare(usualRequest) === 0) return;
  const text =
    `default value ${usual.toString()} must equal to defaultRequest value ` +
    `${usualRequest.toString()} in ${name}`;
  found.push(invalidValue(`${path}.defaultRequest[${name}]`, usualRequest.toString(), text));
}

function bound(limit: JsonObject, field: string, name: string): Quantity | undefined {
  return amountOf(at(limit, field, name));
}

/** Upstream compares thousandths as long as they fit into 64 bits, and whole units beyond. */
const MILLI_FIT_MAX = (2n ** 63n - 1n) / 1000n;

/** How many times its request a limit may be; no more than the bounds themselves allow. */
function checkRatio(found: Findings, path: string, limit: JsonObject, name: string): void {
  const ratio = bound(limit, 'maxLimitRequestRatio', name);
  if (ratio === undefined) return;
  const value = ratio.toString();
  if (ratio.compare(new Quantity(1n, 0, 'DecimalSI')) < 0) {
    found.push(invalidValue(path, value, `ratio ${value} is less than 1`));
  }
  const [least, most] = [bound(limit, 'min', name), bound(limit, 'max', name)];
  if (least === undefined || most === undefined) return;
  const isMilli = [ratio, least, most].every((one) => one.scaled(0) < MILLI_FIT_MAX);
  const scale = isMilli ? -3 : 0;
  const highest = Number(most.scaled(scale)) / Number(least.scaled(scale));
  const wanted = Number(ratio.scaled(scale)) / (isMilli ? 1000 : 1);
  if (!(wanted > highest)) return;
  const shown = Number.isFinite(highest) ? highest.toFixed(6) : `${highest > 0 ? '+' : '-'}Inf`;
  found.push(invalidValue(path, value, `ratio ${value} is greater than max/min = ${shown}`));
}

function at(limit: JsonObject, field: string, name: string): JsonValue | undefined {
  return ownMember(objectAt(limit, field), name);
}

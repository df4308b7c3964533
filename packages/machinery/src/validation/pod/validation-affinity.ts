/** Where pods want to be: node affinity, pod affinity and their selectors. */

import { forbiddenField, invalidValue, required, typedText } from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import {
  dnsLabelErrors,
  dnsSubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '../../meta/names.ts';
import {
  checkSelector,
  eachObject,
  invalidEach,
  type Findings,
} from '../field/validation-rules.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

export function checkAffinity(
  found: Findings,
  path: string,
  affinity: JsonObject | undefined,
): void {
  const node = objectAt(affinity, 'nodeAffinity');
  if (node !== undefined) checkNodeAffinity(found, `${path}.nodeAffinity`, node);
  for (const field of ['podAffinity', 'podAntiAffinity']) {
    const pods = objectAt(affinity, field);
    if (pods !== undefined) checkPodAffinity(found, `${path}.${field}`, pods);
  }
}

function checkNodeAffinity(found: Findings, path: string, affinity: JsonObject): void {
  const selector = objectAt(affinity, REQUIRED);
  if (selector !== undefined) checkNodeSelector(found, `${path}.${REQUIRED}`, selector);
  eachObject(listAt(affinity, PREFERRED), `${path}.${PREFERRED}`, (term, at) => {
    checkWeight(found, `${at}.weight`, term['weight']);
    checkNodeTerm(found, `${at}.preference`, objectAt(term, 'preference') ?? {}, true);
  });
}

function checkWeight(found: Findings, path: string, weight: JsonValue | undefined): void {
  const number = typeof weight === 'number' ? weight : 0;
  if (number >= 1 && number <= 100) return;
  found.push(invalidValue(path, number, 'must be in the range 1-100'));
}

/** Terms of which one must match; no term at all is an error. */
export function checkNodeSelector(found: Findings, path: string, selector: JsonObject): void {
  const terms = listAt(selector, 'nodeSelectorTerms');
  if (terms.length === 0) {
    const text = 'must have at least one node selector term';
    found.push(required(`${path}.nodeSelectorTerms`, text));
    return;
  }
  eachObject(terms, `${path}.nodeSelectorTerms`, (term, at) => {
    checkNodeTerm(found, at, term, false);
  });
}

function checkNodeTerm(
  found: Findings,
  path: string,
  term: JsonObject,
  isPreference: boolean,
): void {
  eachObject(listAt(term, 'matchExpressions'), `${path}.matchExpressions`, (item, at) => {
    checkNodeRequirement(found, at, item, isPreference);
  });
  eachObject(listAt(term, 'matchFields'), `${path}.matchFields`, (item, at) => {
    checkFieldRequirement(found, at, item);
  });
}

function checkNodeRequirement(
  found: Findings,
  path: string,
  item: JsonObject,
  isPreference: boolean,
): void {
  const operator = stringAt(item, 'operator');
  const values = listAt(item, 'values');
  if (operator === 'In' || operator === 'NotIn') {
    const text = "must be specified when `operator` is 'In' or 'NotIn'";
    if (values.length === 0) found.push(required(`${path}.values`, text));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (values.length > 0) found.push(forbiddenField(`${path}.values`, text));
  } else if (operator === 'Gt' || operator === 'Lt') {
    const text = "must be specified single value when `operator` is 'Lt' or 'Gt'";
    if (values.length !== 1) found.push(required(`${path}.values`, text));
  } else {
    const text = 'not a valid selector operator';
    found.push(invalidValue(`${path}.operator`, typedText(operator), text));
  }
  const key = stringAt(item, 'key');
  invalidEach(found, `${path}.key`, key, qualifiedNameErrors(key));
  if (isPreference) return;
  for (const [index, value] of values.entries()) {
    const text = typeof value === 'string' ? value : '';
    invalidEach(found, `${path}.values[${index}]`, text, labelValueErrors(text));
  }
}

function checkFieldRequirement(found: Findings, path: string, item: JsonObject): void {
  const operator = stringAt(item, 'operator');
  const values = listAt(item, 'values');
  if (operator !== 'In' && operator !== 'NotIn') {
    const text = 'not a valid selector operator';
    found.push(invalidValue(`${path}.operator`, typedText(operator), text));
  } else if (values.length !== 1) {
    const text =
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    found.push(required(`${path}.values`, text));
  }
  const key = stringAt(item, 'key');
  if (key !== 'metadata.name') {
    found.push(invalidValue(`${path}.key`, key, 'not a valid field selector key'));
    return;
  }
  for (const [index, value] of values.entries()) {
    const text = typeof value === 'string' ? value : '';
    invalidEach(found, `${path}.values[${index}]`, text, dnsSubdomainErrors(text));
  }
}

function checkPodAffinity(found: Findings, path: string, affinity: JsonObject): void {
  eachObject(listAt(affinity, REQUIRED), `${path}.${REQUIRED}`, (term, at) => {
    checkPodTerm(found, at, term);
  });
  eachObject(listAt(affinity, PREFERRED), `${path}.${PREFERRED}`, (term, at) => {
    checkWeight(found, `${at}.weight`, term['weight']);
    const inner = objectAt(term, 'podAffinityTerm') ?? {};
    checkPodTerm(found, `${at}.podAffinityTerm`, inner);
  });
}

function checkPodTerm(found: Findings, path: string, term: JsonObject): void {
  checkSelector(found, `${path}.labelSelector`, objectAt(term, 'labelSelector'));
  checkSelector(found, `${path}.namespaceSelector`, objectAt(term, 'namespaceSelector'));
  for (const namespace of listAt(term, 'namespaces')) {
    const text = typeof namespace === 'string' ? namespace : '';
    // the path is upstream's, of one namespace
    invalidEach(found, `${path}.namespace`, text, dnsLabelErrors(text));
  }
  checkLabelKeys(found, path, term);
  const key = stringAt(term, 'topologyKey');
  if (key === '') found.push(required(`${path}.topologyKey`, 'can not be empty'));
  invalidEach(found, `${path}.topologyKey`, key, qualifiedNameErrors(key));
}

/** Keys whose values come from the pod: labels' names, and each said in one way only. */
export function checkLabelKeys(found: Findings, path: string, term: JsonObject): void {
  const selector = objectAt(term, 'labelSelector');
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys']) {
    const keys = listAt(term, field);
    if (keys.length > 0 && selector === undefined) {
      const text = 'must not be specified when labelSelector is not set';
      found.push(forbiddenField(`${path}.${field}`, text));
      continue;
    }
    for (const [index, key] of keys.entries()) {
      const text = typeof key === 'string' ? key : '';
      invalidEach(found, `${path}.${field}[${index}]`, text, qualifiedNameErrors(text));
    }
  }
  const keys = listAt(term, 'matchLabelKeys');
  const seen = new Set<JsonValue>(Object.keys(objectAt(selector, 'matchLabels') ?? {}));
  for (const expression of listAt(selector, 'matchExpressions')) {
    const key = stringAt(expression, 'key');
    const index = keys.lastIndexOf(key);
    if (index >= 0 && seen.has(key)) {
      const text = 'exists in both matchLabelKeys and labelSelector';
      found.push(invalidValue(`${path}[${index}]`, key, text));
    }
    seen.add(key);
  }
  const others = listAt(term, 'mismatchLabelKeys');
  for (const [index, key] of keys.entries()) {
    if (!others.includes(key)) continue;
    const text = 'exists in both matchLabelKeys and mismatchLabelKeys';
    found.push(invalidValue(`${path}.matchLabelKeys[${index}]`, key, text));
  }
}

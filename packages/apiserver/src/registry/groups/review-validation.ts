/** What access reviews must say (upstream's `apis/authorization/validation`). */
import {
  forbiddenField,
  invalidValue,
  printed,
  required,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { qualifiedNameErrors } from '@megaplane/machinery/names';

export type ReviewKind = 'self' | 'cluster' | 'local';

/** Everything that is wrong with a review; `namespace` is that of the URL. */
export function reviewFaults(body: JsonObject, kind: ReviewKind, namespace: string): FieldError[] {
  const spec = objectAt(body, 'spec') ?? {};
  const resource = objectAt(spec, 'resourceAttributes');
  const path = objectAt(spec, 'nonResourceAttributes');
  const faults: FieldError[] = [];
  const goPath = { Path: stringAt(path, 'path'), Verb: stringAt(path, 'verb') };
  const shownPath = printed(JSON.stringify(goPath));
  if (resource !== undefined && path !== undefined) {
    const text = 'cannot be specified in combination with resourceAttributes';
    faults.push(invalidValue('spec.nonResourceAttributes', shownPath, text));
  }
  if (resource === undefined && path === undefined) {
    const text = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    faults.push(invalidValue('spec.resourceAttributes', null, text));
  }
  const isNobody = stringAt(spec, 'user') === '' && listAt(spec, 'groups').length === 0;
  if (kind !== 'self' && isNobody) {
    faults.push(invalidValue('spec.user', '', 'at least one of user or group must be specified'));
  }
  for (const field of ['fieldSelector', 'labelSelector']) {
    const selector = objectAt(resource, field);
    if (selector === undefined) continue;
    faults.push(...selectorFaults(selector, `spec.resourceAttributes.${field}`, field));
  }
  const { namespace: _, managedFields, ...metadata } = objectAt(body, 'metadata') ?? {};
  if (Object.keys(metadata).length > 0) {
    const text = kind === 'local' ? 'must be empty except for namespace' : 'must be empty';
    const owners = managedFields === undefined ? {} : { managedFields };
    const shown = { ...metadata, ...(kind === 'local' ? { namespace } : {}), ...owners };
    faults.push(invalidValue('metadata', printed(JSON.stringify(shown)), text));
  }
  if (kind !== 'local') return faults;
  const own = stringAt(resource, 'namespace');
  if (resource !== undefined && own !== namespace) {
    const text = 'must match metadata.namespace';
    faults.push(invalidValue('spec.resourceAttributes.namespace', own, text));
  }
  if (path !== undefined) {
    const text = 'disallowed on this kind of request';
    faults.push(invalidValue('spec.nonResourceAttributes', shownPath, text));
  }
  return faults;
}

function selectorFaults(selector: JsonObject, at: string, field: string): FieldError[] {
  const faults: FieldError[] = [];
  const raw = stringAt(selector, 'rawSelector');
  const requirements = listAt(selector, 'requirements');
  if (raw !== '' && requirements.length > 0) {
    const text = 'may not specified at the same time as requirements';
    faults.push(invalidValue(`${at}.rawSelector`, raw, text));
  }
  if (raw === '' && requirements.length === 0) {
    const text = `when ${at} is specified, requirements or rawSelector is required`;
    faults.push(required(`${at}.requirements`, text));
  }
  for (const [index, requirement] of requirements.entries()) {
    const path = `${at}.requirements[${index}]`;
    const key = stringAt(requirement, 'key');
    const operator = stringAt(requirement, 'operator');
    const values = listAt(requirement, 'values');
    if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
      const text = "must be specified when `operator` is 'In' or 'NotIn'";
      faults.push(required(`${path}.values`, text));
    }
    if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) {
      const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
      faults.push(forbiddenField(`${path}.values`, text));
    }
    if (field === 'labelSelector') {
      for (const text of qualifiedNameErrors(key))
        faults.push(invalidValue(`${path}.key`, key, text));
    } else if (key === '') {
      faults.push(required(`${path}.key`, 'must be specified'));
    }
  }
  return faults;
}

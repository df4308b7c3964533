/** Rules that say which operations on which resources something is for. */
import { invalidValue, required } from '../../meta/fielderrors.ts';
import { listAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { oneOfSet, type Findings } from './validation-rules.ts';

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];

/** One rule of a webhook or policy. */
export function checkOperations(found: Findings, path: string, rule: JsonObject): void {
  const operations = listAt(rule, 'operations');
  if (operations.length === 0) found.push(required(`${path}.operations`));
  checkAlone(found, `${path}.operations`, rule, 'operations', 'operations');
  for (const [index, operation] of operations.entries()) {
    oneOfSet(found, `${path}.operations[${index}]`, operation, OPERATIONS);
  }
  for (const [field, text] of [
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    if (listAt(rule, field).length === 0) found.push(required(`${path}.${field}`));
    checkAlone(found, `${path}.${field}`, rule, field, text);
  }
  for (const [index, version] of listAt(rule, 'apiVersions').entries()) {
    if (version === '') found.push(required(`${path}.apiVersions[${index}]`));
  }
  checkResourceNames(found, `${path}.resources`, listAt(rule, 'resources'));
  oneOfSet(found, `${path}.scope`, rule['scope'], ['*', 'Cluster', 'Namespaced']);
}

// names with stars on either side of a slash: none that another one stands for already
function checkResourceNames(found: Findings, path: string, names: readonly JsonValue[]): void {
  if (names.length === 0) found.push(required(path));
  const wholes = new Set<string>();
  const parts = new Set<string>();
  let hasPlain = false;
  for (const [index, value] of names.entries()) {
    const name = typeof value === 'string' ? value : '';
    const at = `${path}[${index}]`;
    if (name === '') {
      found.push(required(at));
      continue;
    }
    const slash = name.indexOf('/');
    if (slash < 0) {
      hasPlain = name !== '*';
      continue;
    }
    const [resource, part] = [name.slice(0, slash), name.slice(slash + 1)];
    if (wholes.has(resource)) {
      const text = `if '${resource}/*' is present, must not specify ${name}`;
      found.push(invalidValue(at, name, text));
    }
    if (parts.has(part)) {
      const text = `if '*/${part}' is present, must not specify ${name}`;
      found.push(invalidValue(at, name, text));
    }
    if (part === '*') wholes.add(resource);
    if (resource === '*') parts.add(part);
  }
  if (names.length > 1 && names.includes('*/*')) {
    const text = "if '*/*' is present, must not specify other resources";
    found.push(invalidValue(path, [...names], text));
  }
  if (names.includes('*') && hasPlain) {
    const text = "if '*' is present, must not specify other resources without subresources";
    found.push(invalidValue(path, [...names], text));
  }
}

/** A star stands for everything, and so for itself. */
function checkAlone(
  found: Findings,
  path: string,
  rule: JsonObject,
  field: string,
  text: string,
): void {
  const list = listAt(rule, field);
  if (list.length < 2 || !list.includes('*')) return;
  found.push(invalidValue(path, [...list], `if '*' is present, must not specify other ${text}`));
}

/** Rules that say which operations on which resources something is for. */
import { invalidValue, required } from './fielderrors.ts';
import { listAt } from './json.ts';
import type { JsonObject } from './json-value.ts';
import { oneOf, type Findings } from './validation-rules.ts';

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];

/** One rule of a webhook or policy. */
export function checkOperations(found: Findings, path: string, rule: JsonObject): void {
  const operations = listAt(rule, 'operations');
  if (operations.length === 0) found.push(required(`${path}.operations`));
  checkAlone(found, `${path}.operations`, rule, 'operations', 'operations');
  for (const [index, operation] of operations.entries()) {
    oneOf(found, `${path}.operations[${index}]`, operation, OPERATIONS);
  }
  for (const [field, text] of [
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    if (listAt(rule, field).length === 0) found.push(required(`${path}.${field}`));
    checkAlone(found, `${path}.${field}`, rule, field, text);
  }
  if (listAt(rule, 'resources').length === 0) found.push(required(`${path}.resources`));
  oneOf(found, `${path}.scope`, rule['scope'], ['*', 'Cluster', 'Namespaced'], true);
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

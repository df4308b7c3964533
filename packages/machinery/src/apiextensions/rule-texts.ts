/** How rules of a schema have to be written, before anybody compiles them. */
import { invalidValue, notSupported, required } from '../meta/fielderrors.ts';
import { listAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import type { Findings } from '../validation/field/validation-rules.ts';
import { followPath } from '../structural/schema/rule-path.ts';
import { SchemaGraph } from '../structural/schema/schema-graph.ts';
import { unstructuredReason } from '../structural/schema/schema-json.ts';

const REASONS = [
  ...['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'],
] as const;

const NEWLINE = /[\n\r]/;

export function checkRuleTexts(found: Findings, schema: JsonObject, path: string): void {
  for (const [i, rule] of listAt(schema, 'x-kubernetes-validations').entries()) {
    if (!isObject(rule)) continue;
    const at = `${path}.x-kubernetes-validations[${i}]`;
    checkMessage(found, rule, at);
    const reason = stringAt(rule, 'reason');
    if (rule['reason'] !== undefined && !REASONS.some((one) => one === reason)) {
      found.push(notSupported(`${at}.reason`, reason, REASONS));
    }
    checkFieldPath(found, schema, stringAt(rule, 'fieldPath'), `${at}.fieldPath`);
  }
}

function checkMessage(found: Findings, rule: JsonObject, at: string): void {
  const text = stringAt(rule, 'rule').trim();
  const message = stringAt(rule, 'message');
  const trimmed = message.trim();
  const expression = stringAt(rule, 'messageExpression');
  if (text === '') found.push(required(`${at}.rule`, 'rule is not specified'));
  else if (message !== '' && trimmed === '') {
    found.push(invalidValue(`${at}.message`, message, 'must be non-empty if specified'));
  } else if (NEWLINE.test(trimmed)) {
    found.push(invalidValue(`${at}.message`, message, 'must not contain line breaks'));
  } else if (NEWLINE.test(text) && trimmed === '') {
    const detail = 'message must be specified if rule contains line breaks';
    found.push(required(`${at}.message`, detail));
  }
  if (expression === '' || expression.trim() !== '') return;
  const detail = 'messageExpression must be non-empty if specified';
  found.push(required(`${at}.messageExpression`, detail));
}

function checkFieldPath(found: Findings, schema: JsonObject, fieldPath: string, at: string): void {
  if (fieldPath === '') return;
  if (fieldPath.trim() === '') {
    found.push(invalidValue(at, fieldPath, 'must be non-empty if specified'));
  }
  if (NEWLINE.test(fieldPath)) {
    found.push(invalidValue(at, fieldPath, 'must not contain line breaks'));
  }
  if (unstructuredReason(schema) !== '') return;
  const outcome = followPath(new SchemaGraph().add(schema), fieldPath, true);
  if (!outcome.ok) found.push(invalidValue(at, fieldPath, 'must be a valid path'));
}

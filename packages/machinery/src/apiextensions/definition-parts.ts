/** Rules of what is no schema in a definition: names, columns, subresources, webhooks. */
import {
  duplicate,
  forbiddenField,
  invalidValue,
  required,
  tooMany,
  typedText,
  notSupportedText,
} from '../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { dns1035LabelErrors } from '../meta/names.ts';
import { eachObject, type Findings } from '../validation/field/validation-rules.ts';
import { checkWebhookClient } from './definition-webhook.ts';
import { followPath } from '../structural/schema/rule-path.ts';
import { type SchemaNode } from '../structural/schema/schema-node.ts';

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'] as const;
const COLUMN_FORMATS = [
  ...['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'],
] as const;
/** Selectable fields of one version. */
export const SELECTABLE_MAX = 8;
const SELECTABLE_TYPES: ReadonlySet<string> = new Set(['string', 'boolean', 'integer']);

/** Names as the spec wants them, or as the status has accepted them. */
export function checkNames(found: Findings, names: JsonObject | undefined, path: string): void {
  for (const field of ['plural', 'singular']) {
    const name = stringAt(names, field);
    checkLabel(found, name, `${path}.${field}`, name === '');
  }
  for (const field of ['kind', 'listKind']) {
    const name = stringAt(names, field);
    const errors = name === '' ? [] : dns1035LabelErrors(name.toLowerCase());
    if (errors.length === 0) continue;
    const detail = `may have mixed case, but should otherwise match: ${errors.join(',')}`;
    found.push(invalidValue(`${path}.${field}`, name, detail));
  }
  for (const [i, name] of listAt(names, 'shortNames').entries()) {
    checkLabel(found, stringAt(name), `${path}.shortNames[${i}]`, false);
  }
  const kind = stringAt(names, 'kind');
  if (kind !== '' && kind === stringAt(names, 'listKind')) {
    const text = 'kind and listKind may not be the same';
    found.push(invalidValue(`${path}.listKind`, kind, text));
  }
  for (const [i, name] of listAt(names, 'categories').entries()) {
    checkLabel(found, stringAt(name), `${path}.categories[${i}]`, false);
  }
}

function checkLabel(found: Findings, name: string, path: string, isLeftOut: boolean): void {
  const errors = isLeftOut ? [] : dns1035LabelErrors(name);
  if (errors.length > 0) found.push(invalidValue(path, name, errors.join(',')));
}

export function checkColumns(found: Findings, columns: readonly JsonValue[], path: string): void {
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  eachObject(columns, path, (column, at) => {
    if (stringAt(column, 'name') === '') found.push(required(`${at}.name`));
    const type = stringAt(column, 'type');
    if (type === '') found.push(required(`${at}.type`, types));
    else if (!COLUMN_TYPES.some((one) => one === type)) {
      found.push(invalidValue(`${at}.type`, type, types));
    }
    const format = stringAt(column, 'format');
    if (format !== '' && !COLUMN_FORMATS.some((one) => one === format)) {
      const text = `must be one of ${COLUMN_FORMATS.join(',')}`;
      found.push(invalidValue(`${at}.format`, format, text));
    }
    const jsonPath = stringAt(column, 'jsonPath');
    if (jsonPath === '') found.push(required(`${at}.JSONPath`));
    else checkSimplePath(found, jsonPath, `${at}.JSONPath`);
  });
}

function checkSimplePath(found: Findings, path: string, at: string): boolean {
  if (path.startsWith('.')) return true;
  found.push(invalidValue(at, path, 'must be a simple json path starting with .'));
  return false;
}

export function checkSubresources(
  found: Findings,
  subresources: JsonObject | undefined,
  path: string,
): void {
  const scale = objectAt(subresources, 'scale');
  if (scale === undefined) return;
  for (const part of ['spec', 'status']) {
    const at = `${path}.scale.${part}ReplicasPath`;
    const value = stringAt(scale, `${part}ReplicasPath`);
    if (value === '') found.push(required(at));
    else if (checkSimplePath(found, value, at) && !value.startsWith(`.${part}.`)) {
      found.push(invalidValue(at, value, `should be a json path under .${part}`));
    }
  }
  const selector = stringAt(scale, 'labelSelectorPath');
  const at = `${path}.scale.labelSelectorPath`;
  if (selector === '' || !checkSimplePath(found, selector, at)) return;
  if (selector.startsWith('.spec.') || selector.startsWith('.status.')) return;
  const text = 'should be a json path under either .spec or .status';
  found.push(invalidValue(at, selector, text));
}

/** `node` is the root of the schema that the paths lead into. */
export function checkSelectable(
  found: Findings,
  fields: readonly JsonValue[],
  node: SchemaNode,
  path: string,
  mayBeMany: boolean,
): void {
  const unique = new Set<string>();
  eachObject(fields, path, (field, itemAt) => {
    const at = `${itemAt}.jsonPath`;
    const jsonPath = stringAt(field, 'jsonPath');
    if (jsonPath === '') {
      found.push(required(at));
      return;
    }
    const outcome = followPath(node, jsonPath, false);
    if (!outcome.ok) {
      found.push(invalidValue(at, jsonPath, `is an invalid path: ${outcome.message}`));
      return;
    }
    if (outcome.root === 'metadata') {
      found.push(invalidValue(at, jsonPath, 'must not point to fields in metadata'));
    }
    if (outcome.node === null || !SELECTABLE_TYPES.has(outcome.node.type)) {
      const text =
        'must point to a field of type string, boolean or integer. ' +
        'Enum string fields and strings with formats are allowed.';
      found.push(invalidValue(at, jsonPath, text));
    }
    if (unique.has(outcome.path)) found.push(duplicate(at, jsonPath));
    unique.add(outcome.path);
  });
  if (unique.size > SELECTABLE_MAX && !mayBeMany) {
    found.push(tooMany(path, unique.size, SELECTABLE_MAX));
  }
}

const STRATEGIES = ['None', 'Webhook'] as const;
const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

/** What a change of a definition may leave as it was. */
export interface ConversionLeniency {
  readonly mayHaveBadBundle: boolean;
  readonly mayHaveForeignReviews: boolean;
}

export function checkConversion(
  found: Findings,
  conversion: JsonObject | undefined,
  path: string,
  leniency: ConversionLeniency,
): void {
  if (conversion === undefined) return;
  const strategy = stringAt(conversion, 'strategy');
  if (strategy === '') found.push(required(`${path}.strategy`));
  else if (!STRATEGIES.some((one) => one === strategy)) {
    found.push(notSupportedText(`${path}.strategy`, strategy, STRATEGIES));
  }
  const client = objectAt(conversion, 'webhook', 'clientConfig');
  const reviews = listAt(conversion, 'webhook', 'conversionReviewVersions');
  const clientAt = `${path}.webhookClientConfig`;
  if (strategy === 'Webhook') {
    const text = 'required when strategy is set to Webhook';
    if (client === undefined) found.push(required(clientAt, text));
    else checkWebhookClient(found, client, clientAt, leniency.mayHaveBadBundle);
    checkReviews(found, reviews, `${path}.conversionReviewVersions`, leniency);
    return;
  }
  const text = 'should not be set when strategy is not set to Webhook';
  if (client !== undefined) found.push(forbiddenField(clientAt, text));
  if (reviews.length > 0) {
    found.push(forbiddenField(`${path}.conversionReviewVersions`, text));
  }
}

function checkReviews(
  found: Findings,
  reviews: readonly JsonValue[],
  path: string,
  { mayHaveForeignReviews }: ConversionLeniency,
): void {
  if (reviews.length === 0) {
    found.push(required(path));
    return;
  }
  const seen = new Set<JsonValue>();
  for (const [i, review] of reviews.entries()) {
    if (seen.has(review)) {
      found.push(invalidValue(`${path}[${i}]`, review, 'duplicate version'));
      continue;
    }
    seen.add(review);
    for (const text of dns1035LabelErrors(stringAt(review))) {
      found.push(invalidValue(`${path}[${i}]`, review, text));
    }
  }
  if (mayHaveForeignReviews || hasKnownReview(reviews)) return;
  const text = `must include at least one of ${REVIEW_VERSIONS.join(', ')}`;
  found.push(invalidValue(path, [...reviews], text));
}

/** Whether there is a version of reviews that this server speaks. */
export function hasKnownReview(reviews: readonly JsonValue[]): boolean {
  return reviews.some((one) => REVIEW_VERSIONS.some((known) => known === one));
}

const WARNING_BYTES_MAX = 256;

/** The warning of a version: only where it is deprecated, short, and of printable characters. */
export function checkWarning(found: Findings, version: JsonObject, path: string): void {
  const warning = version['deprecationWarning'];
  if (typeof warning !== 'string') return;
  const refuse = (text: string): void => {
    found.push(invalidValue(`${path}.deprecationWarning`, typedText(warning), text));
  };
  if (version['deprecated'] !== true) {
    refuse('can only be set for deprecated versions');
    return;
  }
  if (Buffer.byteLength(warning) > WARNING_BYTES_MAX) refuse('must be <= 256 characters long');
  if (warning === '') refuse('must not be an empty string');
  const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(warning);
  if (unprintable === null) return;
  const place = Buffer.byteLength(warning.slice(0, unprintable.index));
  const what = `non-printable character found at index ${place}`;
  refuse(`must only contain printable UTF-8 characters; ${what}`);
}

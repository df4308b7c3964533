/** The rules of one schema of a definition, all together and in upstream's order. */
import { ownMember } from '@megaplane/base/members';
import { forbiddenField, invalidValue, printed, type FieldError } from '../meta/fielderrors.ts';
import { stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import type { Findings } from '../validation/field/validation-rules.ts';
import { checkDefaults } from './default-rules.ts';
import { schemaOf } from './definition-form.ts';
import { internalSchema, SCHEMA_MEMBERS } from './internal-form.ts';
import { RuleContext, RuleTotal } from './rule-estimates.ts';
import { SchemaGraph } from '../structural/schema/schema-graph.ts';
import { depthOf, SCHEMA_DEPTH_MAX, unstructuredReason } from '../structural/schema/schema-json.ts';
import { rootStanding, schemaSteps, type SchemaFindings } from './schema-rules.ts';
import { structuralSteps } from './structural-rules.ts';

export interface SchemaScope {
  /** Some members have no meaning at the root then: status is validated on its own. */
  readonly hasStatus: boolean;
  /** The version had this schema before. */
  readonly isUnchanged: boolean;
}

/** What was found in schemas by steps, for the one look at the definition as a whole. */
const judged = new WeakMap<JsonObject, Map<string, readonly FieldError[]>>();

function judgedKey(path: string, { hasStatus, isUnchanged }: SchemaScope): string {
  return `${path} ${hasStatus} ${isUnchanged}`;
}

/** Adds what is wrong with `{ openAPIV3Schema }`. */
export function checkVersionSchema(
  found: Findings,
  validation: JsonObject | undefined,
  path: string,
  scope: SchemaScope,
): void {
  const schema = schemaOf(validation);
  if (schema === undefined) return;
  const known = judged.get(schema)?.get(judgedKey(path, scope));
  if (known !== undefined) {
    found.push(...known);
    return;
  }
  const steps = versionSteps(found, schema, `${path}.openAPIV3Schema`, scope);
  while (steps.next().done !== true);
}

/** Finds in steps what `checkVersionSchema` is to find; the schema must stay as it is. */
export function* judgingSteps(
  validation: JsonObject | undefined,
  path: string,
  scope: SchemaScope,
): Generator<void, void> {
  const schema = schemaOf(validation);
  if (schema === undefined) return;
  const found: FieldError[] = [];
  yield* versionSteps(found, schema, `${path}.openAPIV3Schema`, scope);
  let known = judged.get(schema);
  if (known === undefined) judged.set(schema, (known = new Map()));
  known.set(judgedKey(path, scope), found);
}

function* versionSteps(
  found: Findings,
  schema: JsonObject,
  at: string,
  scope: SchemaScope,
): Generator<void, void> {
  if (depthOf(schema) > SCHEMA_DEPTH_MAX) {
    const text = `must not be nested deeper than ${SCHEMA_DEPTH_MAX} levels`;
    found.push(invalidValue(at, '', text));
    return;
  }
  yield;
  const own: FieldError[] = [];
  if (scope.hasStatus) checkRootMembers(own, schema, at);
  if (schema['nullable'] === true) {
    own.push(forbiddenField(`${at}.nullable`, 'nullable cannot be true at the root'));
  }
  const unstructured = unstructuredReason(schema);
  yield;
  const structural = unstructured === '' ? yield* structuralSteps(schema, at) : [];
  own.push(...structural);
  yield;
  const total = new RuleTotal();
  let rules: RuleContext | null = null;
  if (unstructured === '' && structural.length === 0) {
    const root = yield* new SchemaGraph().adding(schema);
    const faults: FieldError[] = [];
    checkDefaults(faults, root, at);
    yield;
    own.push(...faults);
    if (faults.length === 0) rules = new RuleContext(root, true, total, scope.isUnchanged, 1);
  }
  const listed: SchemaFindings = { schema: [], rules: [] };
  yield* schemaSteps(listed, schema, rootStanding(at, rules));
  own.push(...listed.schema, ...listed.rules);
  if (own.length === 0 && unstructured !== '') own.push(invalidValue(at, '', unstructured));
  total.check(own, at);
  found.push(...own);
}

const ROOT_MEMBERS: readonly string[] = [
  ...['Description', 'Type', 'Format', 'Title', 'Maximum', 'ExclusiveMaximum', 'Minimum'],
  ...['ExclusiveMinimum', 'MaxLength', 'MinLength', 'Pattern', 'MaxItems', 'MinItems'],
  ...['UniqueItems', 'MultipleOf', 'Required', 'Items', 'Properties', 'ExternalDocs', 'Example'],
  ...['XPreserveUnknownFields', 'XValidations'],
];

/** Members that are there as soon as they are named. */
const MAY_BE_FALSE: ReadonlySet<string> = new Set([
  ...['additionalProperties', 'additionalItems', 'default', 'example'],
  'x-kubernetes-preserve-unknown-fields',
]);

function checkRootMembers(found: Findings, schema: JsonObject, at: string): void {
  for (const [name, member] of SCHEMA_MEMBERS) {
    const value = ownMember(schema, member);
    if (value === undefined || value === null || value === '') continue;
    if (value === false && !MAY_BE_FALSE.has(member)) continue;
    if (name === 'Type') {
      const type = stringAt(schema, 'type');
      if (type === 'object') continue;
      const text =
        'only "object" is allowed as the type at the root of the schema ' +
        'if the status subresource is enabled';
      found.push(invalidValue(`${at}.type`, type, text));
      return;
    }
    if (ROOT_MEMBERS.includes(name)) continue;
    const text =
      `only [${ROOT_MEMBERS.join(' ')}] fields are allowed at the root of the schema ` +
      'if the status subresource is enabled';
    found.push(invalidValue(at, printed(internalSchema(schema)), text));
    return;
  }
}

/**
 * CustomResourceDefinitions as objects of the API (`apiextensions.k8s.io/v1`): what the server
 * refuses. Rules, paths and texts are upstream's; its paths are those of a form in which whatever
 * all versions have alike stands above them.
 */
import {
  invalidValue,
  printed,
  required,
  type FieldError,
  notSupportedText,
  type Printed,
} from '../meta/fielderrors.ts';
import { equals, listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { dns1035LabelErrors, dnsSubdomainErrors } from '../meta/names.ts';
import { IMMUTABLE, type Findings } from '../validation/field/validation-rules.ts';
import {
  formSteps,
  hasCondition,
  schemaOf,
  type DefinitionForm,
  type VersionForm,
} from './definition-form.ts';
import {
  checkColumns,
  checkConversion,
  checkNames,
  checkSelectable,
  checkSubresources,
  checkWarning,
  hasKnownReview,
  SELECTABLE_MAX,
} from './definition-parts.ts';
import { checkVersionSchema, judgingSteps, type SchemaScope } from './definition-schema.ts';
import { bundleFault } from './definition-webhook.ts';
import { internalVersions } from './internal-form.ts';
import { SchemaGraph } from '../structural/schema/schema-graph.ts';
import { hasDefaults, unstructuredReason } from '../structural/schema/schema-json.ts';
import type { RuleTable } from '../validation/field/rule-table.ts';
import { isRequestUri } from '../gotext/go-url.ts';

const SCOPES = ['Cluster', 'Namespaced'] as const;

/**
 * Everything that is wrong with a definition; `old` is null on creation. Takes the object after
 * defaults. Metadata in general is checked as for every kind; that the name is made of plural and
 * group is checked here.
 */
export function validateDefinition(definition: JsonObject, old: JsonObject | null): FieldError[] {
  const found: Findings = [];
  const { form, unchanged } = judgedOf(definition, old);
  if (old === null) checkName(found, definition);
  checkSpec(found, form, unchanged, old);
  if (old !== null) checkImmutables(found, definition, old);
  checkNames(found, objectAt(definition, 'status', 'acceptedNames'), 'status.acceptedNames');
  checkStoredVersions(found, definition, form);
  checkApproval(found, definition, old);
  checkPreservation(found, definition, old);
  return found;
}

/** What was found out of specs by steps, for the one look at each definition as a whole. */
const judged = new WeakMap<JsonObject, Judged>();

interface Judged {
  /** The spec that there was before. */
  readonly old: JsonObject | undefined;
  readonly form: DefinitionForm;
  /** Names of versions whose schema is as it was. */
  readonly unchanged: ReadonlySet<string>;
}

function judgedOf(definition: JsonObject, old: JsonObject | null): Judged {
  const before = specOf(old);
  const known = judged.get(specOf(definition) ?? {});
  if (known !== undefined && known.old === before) return known;
  const unchanged = finish(unchangedVersions(definition, old));
  return { old: before, form: finish(formSteps(definition)), unchanged };
}

function specOf(definition: JsonObject | null): JsonObject | undefined {
  return objectAt(definition ?? undefined, 'spec');
}

/** Takes all steps at once. */
function finish<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Finds in steps what `validateDefinition` is to find in the schemas: of large ones it takes longer
 * than others can wait. The definition must stay as it is until it is validated.
 */
export function* judgeDefinition(
  definition: JsonObject,
  old: JsonObject | null,
): Generator<void, void> {
  const form = yield* formSteps(definition);
  yield;
  const unchanged = yield* unchangedVersions(definition, old);
  judged.set(form.spec, { old: specOf(old), form, unchanged });
  yield;
  const isApart = hasOwnSubresources(form);
  for (const [i, version] of form.versions.entries()) {
    const scope = versionScope(form, isApart, version, unchanged);
    yield* judgingSteps(version.validation, `spec.versions[${i}].schema`, scope);
  }
  yield* judgingSteps(form.shared.validation, 'spec.validation', sharedScope(form, unchanged));
}

function hasOwnSubresources({ versions }: DefinitionForm): boolean {
  return versions.some((one) => one.subresources !== undefined);
}

/** `isApart`: each version has its own subresources. */
function versionScope(
  { shared }: DefinitionForm,
  isApart: boolean,
  version: VersionForm,
  unchanged: ReadonlySet<string>,
): SchemaScope {
  const subresources = isApart ? version.subresources : shared.subresources;
  const hasStatus = objectAt(subresources, 'status') !== undefined;
  return { hasStatus, isUnchanged: unchanged.has(version.name) };
}

function sharedScope(
  { shared, versions }: DefinitionForm,
  unchanged: ReadonlySet<string>,
): SchemaScope {
  const all = [shared.subresources, ...versions.map((one) => one.subresources)];
  const hasStatus = all.some((one) => objectAt(one, 'status') !== undefined);
  return { hasStatus, isUnchanged: unchanged.has(versions[0]?.name ?? '') };
}

function checkName(found: Findings, definition: JsonObject): void {
  const plural = stringAt(definition, 'spec', 'names', 'plural');
  const wanted = `${plural}.${stringAt(definition, 'spec', 'group')}`;
  for (const field of ['generateName', 'name']) {
    const name = stringAt(definition, 'metadata', field);
    if (name === '' || name === wanted) continue;
    const text = 'must be spec.names.plural+"."+spec.group';
    found.push(invalidValue(`metadata.${field}`, name, text));
  }
}

function checkSpec(
  found: Findings,
  form: DefinitionForm,
  unchanged: ReadonlySet<string>,
  old: JsonObject | null,
): void {
  const { spec, shared, versions } = form;
  checkGroup(found, stringAt(spec, 'group'));
  const scope = stringAt(spec, 'scope');
  if (scope === '') found.push(required('spec.scope'));
  else if (!SCOPES.some((one) => one === scope)) {
    found.push(notSupportedText('spec.scope', scope, SCOPES));
  }
  if (schemaOf(shared.validation) === undefined) {
    for (const [i, version] of versions.entries()) {
      if (schemaOf(version.validation) !== undefined) continue;
      found.push(required(`spec.versions[${i}].schema.openAPIV3Schema`));
    }
  }
  const preserves = spec['preserveUnknownFields'] === true;
  if (preserves && form.schemas.some(hasDefaults)) {
    const text = 'must be false in order to use defaults in the schema';
    found.push(invalidValue('spec.preserveUnknownFields', true, text));
  }
  const isApart = hasOwnSubresources(form);
  for (const [i, version] of versions.entries()) {
    const scope = versionScope(form, isApart, version, unchanged);
    checkVersion(found, version, `spec.versions[${i}]`, scope, old);
  }
  checkVersionList(found, Array.isArray(spec['versions']), versions);
  for (const field of ['plural', 'singular', 'kind', 'listKind']) {
    if (stringAt(spec, 'names', field) === '') found.push(required(`spec.names.${field}`));
  }
  checkNames(found, objectAt(spec, 'names'), 'spec.names');
  checkShared(found, form, unchanged, old);
  const conversion = objectAt(spec, 'conversion');
  const strategy = stringAt(conversion, 'strategy');
  if (preserves && conversion !== undefined && strategy !== 'None') {
    const text = 'must be None if spec.preserveUnknownFields is true';
    found.push(invalidValue('spec.conversion.strategy', strategy, text));
  }
  checkConversion(found, conversion, 'spec.conversion', {
    mayHaveBadBundle: old === null || mayHaveBadBundle(old),
    mayHaveForeignReviews: old !== null && hasForeignReviews(old),
  });
}

function checkGroup(found: Findings, group: string): void {
  const errors = dnsSubdomainErrors(group);
  if (group === '') found.push(required('spec.group'));
  else if (errors.length > 0) found.push(invalidValue('spec.group', group, errors.join(',')));
  else if (!group.includes('.')) {
    found.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'));
  }
}

function checkVersion(
  found: Findings,
  version: VersionForm,
  path: string,
  scope: SchemaScope,
  old: JsonObject | null,
): void {
  const errors = dns1035LabelErrors(version.name);
  if (errors.length > 0) {
    found.push(invalidValue(`${path}.name`, version.name, errors.join(',')));
  }
  checkWarning(found, version.json, path);
  checkVersionSchema(found, version.validation, `${path}.schema`, scope);
  checkSubresources(found, version.subresources, `${path}.subresources`);
  checkColumns(found, version.columns, `${path}.additionalPrinterColumns`);
  if (version.selectable.length === 0) return;
  const at = `${path}.selectableFields`;
  const schema = schemaOf(version.validation);
  if (schema === undefined) {
    const text = 'may only be set when `version.schema.openAPIV3Schema` is not included';
    found.push(invalidValue(at, '', text));
    return;
  }
  const reason = unstructuredReason(schema);
  if (reason !== '') found.push(invalidValue(`${path}.schema.openAPIV3Schema`, '', reason));
  const node = new SchemaGraph().add(reason === '' ? schema : {});
  checkSelectable(found, version.selectable, node, at, hadTooMany(version, old));
}

/** What the versions have alike. */
function checkShared(
  found: Findings,
  form: DefinitionForm,
  unchanged: ReadonlySet<string>,
  old: JsonObject | null,
): void {
  const { shared, versions } = form;
  checkVersionSchema(found, shared.validation, 'spec.validation', sharedScope(form, unchanged));
  checkSubresources(found, shared.subresources, 'spec.subresources');
  checkColumns(found, shared.columns, 'spec.additionalPrinterColumns');
  if (shared.selectable.length === 0) return;
  const at = 'spec.selectableFields';
  if (shared.validation === undefined) {
    const text = 'may only be set when validations.schema is included';
    found.push(invalidValue(at, '', text));
    return;
  }
  const schema = schemaOf(shared.validation) ?? {};
  const reason = unstructuredReason(schema);
  if (reason !== '') found.push(invalidValue('spec.schema.openAPIV3Schema', '', reason));
  const node = new SchemaGraph().add(reason === '' ? schema : {});
  const [first] = versions;
  const mayBeMany = first !== undefined && hadTooMany({ ...first, ...shared }, old);
  checkSelectable(found, shared.selectable, node, at, mayBeMany);
}

function checkVersionList(
  found: Findings,
  isList: boolean,
  versions: readonly VersionForm[],
): void {
  const names = new Set(versions.map(({ name }) => name));
  const shown = (): Printed => printed(isList ? internalVersions(versions) : 'null');
  if (names.size < versions.length) {
    found.push(invalidValue('spec.versions', shown(), 'must contain unique version names'));
  }
  if (versions.filter(({ json }) => json['storage'] === true).length !== 1) {
    const text = 'must have exactly one version marked as storage version';
    found.push(invalidValue('spec.versions', shown(), text));
  }
  // upstream keeps the first name once more, and looks at it there, too
  const first = versions[0]?.name ?? '';
  const errors = first === '' ? [] : dns1035LabelErrors(first);
  if (errors.length > 0) found.push(invalidValue('spec.version', first, errors.join(',')));
}

function versionNamed(definition: JsonObject | null, name: string): JsonObject | undefined {
  const versions = listAt(definition ?? undefined, 'spec', 'versions');
  return versions.map((one) => objectAt(one)).find((one) => stringAt(one, 'name') === name);
}

/** Finds in steps the names of versions whose schema is as it was. */
function* unchangedVersions(
  definition: JsonObject,
  old: JsonObject | null,
): Generator<void, ReadonlySet<string>> {
  const names = new Set<string>();
  const schemas = new Map<string, JsonValue | undefined>();
  for (const before of listAt(old ?? undefined, 'spec', 'versions')) {
    const name = stringAt(before, 'name');
    if (!schemas.has(name)) schemas.set(name, objectAt(before)?.['schema']);
  }
  for (const one of listAt(definition, 'spec', 'versions')) {
    const name = stringAt(one, 'name');
    if (!schemas.has(name)) continue;
    if (equals(objectAt(one, 'schema'), schemas.get(name))) names.add(name);
    yield;
  }
  return names;
}

function hadTooMany({ name, selectable }: VersionForm, old: JsonObject | null): boolean {
  if (selectable.length <= SELECTABLE_MAX) return false;
  const before = listAt(versionNamed(old, name), 'selectableFields');
  return before.length > SELECTABLE_MAX && equals([...selectable], [...before]);
}

function mayHaveBadBundle(old: JsonObject): boolean {
  if (!hasCondition(old, 'Established')) return true;
  const bundle = stringAt(old, 'spec', 'conversion', 'webhook', 'clientConfig', 'caBundle');
  return bundle !== '' && bundleFault(bundle) !== '';
}

function hasForeignReviews(old: JsonObject): boolean {
  const reviews = listAt(old, 'spec', 'conversion', 'webhook', 'conversionReviewVersions');
  return reviews.length > 0 && !hasKnownReview(reviews);
}

function checkImmutables(found: Findings, definition: JsonObject, old: JsonObject): void {
  const established = [['scope'], ['names', 'kind']];
  const always = [['group'], ['names', 'plural']];
  const fixed = hasCondition(old, 'Established') ? [...established, ...always] : always;
  for (const path of fixed) {
    const value = stringAt(definition, 'spec', ...path);
    if (value === stringAt(old, 'spec', ...path)) continue;
    found.push(invalidValue(`spec.${path.join('.')}`, value, IMMUTABLE));
  }
}

function checkStoredVersions(
  found: Findings,
  definition: JsonObject,
  { versions }: DefinitionForm,
): void {
  const stored = listAt(definition, 'status', 'storedVersions');
  const path = 'status.storedVersions';
  if (stored.length === 0) {
    found.push(invalidValue(path, null, 'must have at least one stored version'));
    return;
  }
  const missing = new Map(stored.map((name, i) => [stringAt(name), i]));
  for (const { name, json } of versions) {
    if (json['storage'] === true && !missing.has(name)) {
      found.push(invalidValue(path, [...stored], `must have the storage version ${name}`));
    }
    missing.delete(name);
  }
  for (const [name, i] of missing) {
    const text =
      `missing from spec.versions; ${name} was previously a storage version, and must remain in ` +
      `spec.versions until a storage migration ensures no data remains persisted in ${name} and ` +
      `removes ${name} from status.storedVersions`;
    found.push(invalidValue(`${path}[${i}]`, name, text));
  }
}

const APPROVAL = 'api-approved.kubernetes.io';
const PROTECTED = /(?:^|\.)(?:k8s|kubernetes)\.io$/;
const APPROVAL_SEE = 'see https://github.com/kubernetes/enhancements/pull/1111';

type Approval = 'missing' | 'bypassed' | 'approved' | 'invalid';

function approvalOf(definition: JsonObject): Approval {
  const annotation = stringAt(definition, 'metadata', 'annotations', APPROVAL);
  if (annotation === '') return 'missing';
  if (annotation.startsWith('unapproved')) return 'bypassed';
  return isRequestUri(annotation) && /^[^/]+:\/\/[^/]/.test(annotation) ? 'approved' : 'invalid';
}

/** Groups of the community need a word of who reviewed them. */
function checkApproval(found: Findings, definition: JsonObject, old: JsonObject | null): void {
  if (!PROTECTED.test(stringAt(definition, 'spec', 'group'))) return;
  const approval = approvalOf(definition);
  if (old !== null && approvalOf(old) === approval) return;
  const path = `metadata.annotations[${APPROVAL}]`;
  const text = `protected groups must have approval annotation "${APPROVAL}"`;
  if (approval === 'missing') found.push(required(path, `${text}, ${APPROVAL_SEE}`));
  if (approval !== 'invalid') return;
  const how = 'with either a URL or a reason starting with "unapproved"';
  const value = stringAt(definition, 'metadata', 'annotations', APPROVAL);
  found.push(invalidValue(path, value, `${text} ${how}, ${APPROVAL_SEE}`));
}

function checkPreservation(found: Findings, definition: JsonObject, old: JsonObject | null): void {
  const preserves = (one: JsonObject | null): boolean =>
    objectAt(one ?? undefined, 'spec')?.['preserveUnknownFields'] === true;
  if (preserves(old) || !preserves(definition)) return;
  const text =
    'cannot set to true, set x-kubernetes-preserve-unknown-fields to true ' +
    'in spec.versions[*].schema instead';
  found.push(invalidValue('spec.preserveUnknownFields', true, text));
}

/** `validateCreate` and `validateUpdate` of `../validation.ts` reach definitions by this. */
export const DEFINITION_RULES: RuleTable = {
  'customresourcedefinitions.apiextensions.k8s.io': {
    isForeign: true,
    create: (found, object) => found.push(...validateDefinition(object, null)),
    update: (found, next, previous) => found.push(...validateDefinition(next, previous)),
    subresources: {
      status: (found, next) => {
        checkNames(found, objectAt(next, 'status', 'acceptedNames'), 'status.acceptedNames');
      },
    },
  },
};

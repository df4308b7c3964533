/** Admission policies and their bindings, with the expressions in them. */
import { admissionEnvironment } from '../cel/admission-environment.ts';
import { expressionFault } from '../cel/expression-fault.ts';
import { compileCel } from '../cel/program.ts';
import { DYN, typeText, type CelType } from '../cel/values/typing.ts';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  printed,
  required,
  tooMany,
} from '../meta/fielderrors.ts';
import { goValueOf } from '../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import {
  dns1035LabelErrors,
  dnsSubdomainErrors,
  pathSegmentErrors,
  qualifiedNameErrors,
} from '../meta/names.ts';
import { checkOperations } from './field/validation-operations.ts';
import {
  checkSelector,
  eachObject,
  invalidEach,
  oneOf,
  oneOfSet,
  type Findings,
} from './field/validation-rules.ts';
import type { Environment } from '../cel/syntax/environment.ts';

const MATCH_CONDITIONS_MAX = 64;
const UNSPECIFIED = 'expression is not specified';
const ANNOTATIONS_MAX = 20;
const ANNOTATION_BYTES_MAX = 5 * 1024;
const ACTIONS = ['Audit', 'Deny', 'Warn'];
const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];

/** Checks one expression: that it is there, compiles, and is of one of these types. */
function checkExpression(
  found: Findings,
  path: string,
  source: string,
  environment: Environment,
  types: readonly string[],
  missing = '',
): CelType {
  if (source.trim() === '') {
    found.push(required(path, missing));
    return DYN;
  }
  const compiled = compileCel(environment, source);
  if (!compiled.ok) {
    found.push(expressionFault(path, source, compiled));
    return DYN;
  }
  const { type } = compiled.program;
  const name = type.kind === 'null' ? 'null_type' : typeText(type);
  if (types.length > 0 && !types.includes(name)) {
    const wanted = types.length === 1 ? (types[0] ?? '') : `one of [${types.join(' ')}]`;
    found.push(invalidValue(path, source, `must evaluate to ${wanted} but got ${name}`));
  }
  return type;
}

/** Conditions of a webhook or policy under which it is asked at all. */
export function checkMatchConditions(
  found: Findings,
  path: string,
  owner: JsonObject,
  hasParams: boolean,
): void {
  const conditions = listAt(owner, 'matchConditions');
  if (conditions.length > MATCH_CONDITIONS_MAX) {
    found.push(tooMany(path, conditions.length, MATCH_CONDITIONS_MAX));
  }
  const names = new Set<string>();
  const environment = admissionEnvironment({ hasParams });
  eachObject(conditions, path, (condition, at) => {
    const source = stringAt(condition, 'expression').trim();
    checkExpression(found, `${at}.expression`, source, environment, ['bool']);
    const name = stringAt(condition, 'name');
    if (name === '') {
      found.push(required(`${at}.name`));
      return;
    }
    invalidEach(found, `${at}.name`, name, qualifiedNameErrors(name));
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED =
  'true false null in as break const continue else for function if import let loop package ' +
  'namespace return var void while';
const RESERVED_WORDS = new Set(RESERVED.split(' '));

/** Variables in their order: each sees those before it. */
function checkVariables(
  found: Findings,
  spec: JsonObject,
  hasParams: boolean,
): Map<string, CelType> {
  const types = new Map<string, CelType>();
  eachObject(listAt(spec, 'variables'), 'spec.variables', (variable, at) => {
    const name = stringAt(variable, 'name');
    if (name.trim() === '') found.push(required(`${at}.name`, 'name is not specified'));
    else if (!IDENTIFIER.test(name) || RESERVED_WORDS.has(name)) {
      found.push(invalidValue(`${at}.name`, name, 'must be a valid CEL identifier'));
    }
    const environment = admissionEnvironment({ hasParams, variables: new Map(types) });
    const source = stringAt(variable, 'expression');
    types.set(
      name,
      checkExpression(found, `${at}.expression`, source, environment, [], UNSPECIFIED),
    );
  });
  return types;
}

function checkMatchResources(found: Findings, path: string, match: JsonObject | undefined): void {
  if (match === undefined) return;
  oneOfSet(found, `${path}.matchPolicy`, match['matchPolicy'], ['Equivalent', 'Exact']);
  checkSelector(found, `${path}.namespaceSelector`, objectAt(match, 'namespaceSelector'));
  checkSelector(found, `${path}.objectSelector`, objectAt(match, 'objectSelector'));
  for (const field of ['resourceRules', 'excludeResourceRules']) {
    eachObject(listAt(match, field), `${path}.${field}`, (rule, at) => {
      const names = listAt(rule, 'resourceNames');
      for (const [index, one] of names.entries()) {
        const name = typeof one === 'string' ? one : '';
        const each = `${at}.resourceNames[${index}]`;
        invalidEach(found, each, name, pathSegmentErrors(name));
        if (names.indexOf(one) < index) found.push(duplicate(each, name));
      }
      checkOperations(found, at, rule);
    });
  }
}

/** What mutations can come with; a deletion has nothing to change. */
const MUTATED = ['*', 'CONNECT', 'CREATE', 'UPDATE'];

function checkMutated(found: Findings, path: string, match: JsonObject | undefined): void {
  for (const rule of listAt(match, 'resourceRules')) {
    for (const operation of listAt(rule, 'operations')) {
      oneOfSet(found, `${path}.resourceRules.operations`, operation, MUTATED);
    }
  }
}

function checkParamKind(found: Findings, kind: JsonObject): void {
  const at = 'spec.paramKind.apiVersion';
  const apiVersion = stringAt(kind, 'apiVersion');
  const parts = apiVersion.split('/');
  const version = parts.at(-1) ?? '';
  const group = parts.length > 1 ? (parts[0] ?? '') : '';
  if (apiVersion === '') found.push(required(at));
  else if (parts.length > 2) {
    found.push(invalidValue(at, apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
  } else {
    const faults = group === '' ? [] : dnsSubdomainErrors(group);
    if (faults.length > 0) found.push(invalidValue(at, group, faults.join(',')));
    const texts = dns1035LabelErrors(version);
    if (version === '') found.push(invalidValue(at, apiVersion, 'version must be specified'));
    else if (texts.length > 0) found.push(invalidValue(at, version, texts.join(',')));
  }
  const name = stringAt(kind, 'kind');
  const texts = dns1035LabelErrors(name.toLowerCase());
  if (name === '') found.push(required('spec.paramKind.kind'));
  else if (texts.length > 0) {
    const text = `may have mixed case, but should otherwise match: ${texts.join(',')}`;
    found.push(invalidValue('spec.paramKind.kind', name, text));
  }
}

function checkCommon(found: Findings, spec: JsonObject, isMutating: boolean): boolean {
  oneOfSet(found, 'spec.failurePolicy', spec['failurePolicy'], ['Fail', 'Ignore']);
  const kind = objectAt(spec, 'paramKind');
  if (kind !== undefined) checkParamKind(found, kind);
  const match = objectAt(spec, 'matchConstraints');
  const path = 'spec.matchConstraints';
  if (match === undefined) found.push(required(path));
  else {
    checkMatchResources(found, path, match);
    if (listAt(match, 'resourceRules').length === 0) found.push(required(`${path}.resourceRules`));
    if (isMutating) checkMutated(found, path, match);
  }
  checkMatchConditions(found, 'spec.matchConditions', spec, kind !== undefined);
  return kind !== undefined;
}

/** ValidatingAdmissionPolicy. */
export function checkValidatingPolicy(found: Findings, policy: JsonObject): void {
  const spec = objectAt(policy, 'spec') ?? {};
  const hasParams = checkCommon(found, spec, false);
  const types = checkVariables(found, spec, hasParams);
  const scope = { hasParams, ...(types.size > 0 ? { variables: types } : {}) };
  const environment = admissionEnvironment(scope);
  const messages = admissionEnvironment({ ...scope, hasAuthorizer: false });
  const validations = listAt(spec, 'validations');
  const annotations = listAt(spec, 'auditAnnotations');
  if (validations.length === 0 && annotations.length === 0) {
    const text = 'validations or auditAnnotations must contain at least one item';
    found.push(required('spec.validations', text));
    found.push(required('spec.auditAnnotations', text));
  }
  eachObject(validations, 'spec.validations', (validation, at) => {
    checkValidation(found, at, validation, environment, messages);
  });
  checkAnnotationRules(found, stringAt(policy, 'metadata', 'name'), spec, environment);
}

/** Annotations for the audit log, under the name of the policy. */
function checkAnnotationRules(
  found: Findings,
  policyName: string,
  spec: JsonObject,
  environment: Environment,
): void {
  const annotations = listAt(spec, 'auditAnnotations');
  const path = 'spec.auditAnnotations';
  if (annotations.length > ANNOTATIONS_MAX) {
    const type = 'admissionregistration.v1.AuditAnnotation';
    const value = printed(JSON.stringify(annotations.map((one) => goValueOf(type, one))));
    const text = `must not have more than ${ANNOTATIONS_MAX} auditAnnotations`;
    found.push(invalidValue(path, value, text));
  }
  const keys = new Set<string>();
  eachObject(annotations, path, (annotation, at) => {
    const key = stringAt(annotation, 'key');
    const name = `${policyName}/${key}`;
    invalidEach(found, `${at}.key`, name, qualifiedNameErrors(name));
    const source = stringAt(annotation, 'valueExpression');
    const where = `${at}.valueExpression`;
    if (Buffer.byteLength(source.trim()) > ANNOTATION_BYTES_MAX) {
      found.push(required(where, `must not exceed ${ANNOTATION_BYTES_MAX} bytes in length`));
    } else {
      const missing = 'valueExpression is not specified';
      checkExpression(found, where, source, environment, ['string', 'null_type'], missing);
    }
    if (keys.has(key)) found.push(duplicate(`${at}.key`, key));
    keys.add(key);
  });
}

function checkValidation(
  found: Findings,
  path: string,
  validation: JsonObject,
  environment: Environment,
  messages: Environment,
): void {
  const source = stringAt(validation, 'expression');
  checkExpression(found, `${path}.expression`, source, environment, ['bool'], UNSPECIFIED);
  const expression = stringAt(validation, 'messageExpression');
  const empty = 'must be non-empty if specified';
  if (expression !== '') {
    const at = `${path}.messageExpression`;
    if (expression.trim() === '') found.push(invalidValue(at, expression, empty));
    else checkExpression(found, at, expression, messages, ['string']);
  }
  const message = stringAt(validation, 'message');
  if (message !== '' && message.trim() === '') {
    found.push(invalidValue(`${path}.message`, message, empty));
  } else if (/[\n\r]/.test(message.trim())) {
    found.push(invalidValue(`${path}.message`, message, 'must not contain line breaks'));
  }
  oneOfSet(found, `${path}.reason`, validation['reason'], REASONS);
}

/** MutatingAdmissionPolicy. */
export function checkMutatingPolicy(found: Findings, policy: JsonObject): void {
  const spec = objectAt(policy, 'spec') ?? {};
  const hasParams = checkCommon(found, spec, true);
  const types = checkVariables(found, spec, hasParams);
  const environment = admissionEnvironment({ hasParams, variables: types, makesPatches: true });
  const mutations = listAt(spec, 'mutations');
  if (mutations.length === 0) {
    found.push(required('spec.mutations', 'mutations must contain at least one item'));
  }
  eachObject(mutations, 'spec.mutations', (mutation, at) => {
    checkMutation(found, at, mutation, environment);
  });
  oneOf(found, 'spec.reinvocationPolicy', spec['reinvocationPolicy'], ['IfNeeded', 'Never']);
}

function checkMutation(
  found: Findings,
  path: string,
  mutation: JsonObject,
  environment: Environment,
): void {
  const type = stringAt(mutation, 'patchType');
  const types = ['ApplyConfiguration', 'JSONPatch'];
  oneOf(found, `${path}.patchType`, type, types);
  if (!types.includes(type)) return;
  const isPatch = type === 'JSONPatch';
  const [field, other] = isPatch
    ? ['jsonPatch', 'applyConfiguration']
    : ['applyConfiguration', 'jsonPatch'];
  if (objectAt(mutation, field) === undefined) {
    found.push(required(`${path}.${field}`, `must be specified when patchType is ${type}`));
  } else {
    const source = stringAt(mutation, field, 'expression').trim();
    const wanted = isPatch ? 'list(JSONPatch)' : 'Object';
    checkExpression(found, `${path}.${field}.expression`, source, environment, [wanted]);
  }
  if (objectAt(mutation, other) === undefined) return;
  const text = `must not be specified when patchType is ${type}`;
  found.push(invalidValue(`${path}.${other}`, `{${other}}`, text));
}

/** The binding of a mutating policy. */
export function checkMutatingBinding(found: Findings, binding: JsonObject): void {
  checkBinding(found, binding);
  checkMutated(found, 'spec.matchResources', objectAt(binding, 'spec', 'matchResources'));
}

function checkBinding(found: Findings, binding: JsonObject): void {
  const spec = objectAt(binding, 'spec') ?? {};
  const policy = stringAt(spec, 'policyName');
  if (policy === '') found.push(required('spec.policyName'));
  else invalidEach(found, 'spec.policyName', policy, dnsSubdomainErrors(policy));
  const reference = objectAt(spec, 'paramRef');
  if (reference !== undefined) checkParamRef(found, 'spec.paramRef', reference);
  checkMatchResources(found, 'spec.matchResources', objectAt(spec, 'matchResources'));
}

function checkParamRef(found: Findings, path: string, reference: JsonObject): void {
  const name = stringAt(reference, 'name');
  const selector = objectAt(reference, 'selector');
  const exclusive = 'name and selector are mutually exclusive';
  if (name !== '') {
    invalidEach(found, `${path}.name`, name, pathSegmentErrors(name));
    if (selector !== undefined) found.push(forbiddenField(`${path}.name`, exclusive));
  }
  if (selector !== undefined) {
    checkSelector(found, `${path}.selector`, selector);
    if (name !== '') found.push(forbiddenField(`${path}.selector`, exclusive));
  } else if (name === '') {
    found.push(required(path, 'one of name or selector must be specified'));
  }
  oneOf(found, `${path}.parameterNotFoundAction`, reference['parameterNotFoundAction'], [
    'Deny',
    'Allow',
  ]);
}

/** A binding of a validating policy says what a violation leads to. */
export function checkValidatingBinding(found: Findings, binding: JsonObject): void {
  checkBinding(found, binding);
  const path = 'spec.validationActions';
  const actions = listAt(binding, 'spec', 'validationActions');
  for (const [index, action] of actions.entries()) {
    oneOfSet(found, `${path}[${index}]`, action, ACTIONS);
    if (actions.indexOf(action) < index) found.push(duplicate(`${path}[${index}]`, action));
  }
  if (actions.includes('Deny') && actions.includes('Warn')) {
    const text =
      'must not contain both Deny and Warn (repeating the same validation failure information ' +
      'in the API response and headers serves no purpose)';
    found.push(invalidValue(path, [...actions], text));
  }
  if (actions.length === 0) {
    found.push(required(path, 'at least one validation action is required'));
  }
}

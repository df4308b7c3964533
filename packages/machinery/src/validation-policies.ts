/** Admission policies and their bindings, with the expressions in them. */
import { admissionEnvironment } from './cel/admission-environment.ts';
import type { Environment } from './cel/checker.ts';
import { compileCel, failureText } from './cel/program.ts';
import { DYN, typeText, type CelType } from './cel/typing.ts';
import { duplicate, forbiddenField, invalidValue, required, tooMany } from './fielderrors.ts';
import { listAt, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json-value.ts';
import { qualifiedNameErrors } from './names.ts';
import { checkOperations } from './validation-operations.ts';
import { checkSelector, eachObject, oneOf, type Findings } from './validation-rules.ts';

const MATCH_CONDITIONS_MAX = 64;
const ACTIONS = ['Audit', 'Deny', 'Warn'];
const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];

/** Checks one expression: that it is there, compiles, and is of one of these types. */
function checkExpression(
  found: Findings,
  path: string,
  source: string,
  environment: Environment,
  kinds: readonly CelType['kind'][],
): CelType {
  if (source.trim() === '') {
    found.push(required(path, 'expression is not specified'));
    return DYN;
  }
  const compiled = compileCel(environment, source);
  if (!compiled.ok) {
    found.push(invalidValue(path, source, failureText(compiled)));
    return DYN;
  }
  const { type } = compiled.program;
  if (kinds.length > 0 && type.kind !== 'dyn' && !kinds.includes(type.kind)) {
    const names = kinds.map((kind) => (kind === 'null' ? 'null_type' : kind));
    const wanted =
      names.length === 1
        ? `must evaluate to ${names[0] ?? ''}`
        : `must evaluate to one of [${names.join(' ')}]`;
    found.push(invalidValue(path, source, `${wanted} but got ${typeText(type)}`));
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
    return;
  }
  const names = new Set<string>();
  const environment = admissionEnvironment({ hasParams });
  eachObject(conditions, path, (condition, at) => {
    checkExpression(found, `${at}.expression`, stringAt(condition, 'expression'), environment, [
      'bool',
    ]);
    const name = stringAt(condition, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    else {
      for (const text of qualifiedNameErrors(name)) {
        found.push(invalidValue(`${at}.name`, name, text));
      }
    }
    names.add(name);
  });
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Variables in their order: each sees those before it. */
function checkVariables(
  found: Findings,
  spec: JsonObject,
  hasParams: boolean,
): Map<string, CelType> {
  const types = new Map<string, CelType>();
  eachObject(listAt(spec, 'variables'), 'spec.variables', (variable, at) => {
    const name = stringAt(variable, 'name');
    if (name === '') found.push(required(`${at}.name`, 'name is not specified'));
    else if (!IDENTIFIER.test(name)) {
      found.push(invalidValue(`${at}.name`, name, 'name is not a valid CEL identifier'));
    } else if (types.has(name)) found.push(duplicate(`${at}.name`, name));
    const environment = admissionEnvironment({ hasParams, variables: new Map(types) });
    const source = stringAt(variable, 'expression');
    types.set(name, checkExpression(found, `${at}.expression`, source, environment, []));
  });
  return types;
}

function checkMatchResources(found: Findings, path: string, match: JsonObject | undefined): void {
  if (match === undefined) return;
  const matches = ['Equivalent', 'Exact'];
  oneOf(found, `${path}.matchPolicy`, match['matchPolicy'], matches, true);
  checkSelector(found, `${path}.namespaceSelector`, objectAt(match, 'namespaceSelector'));
  checkSelector(found, `${path}.objectSelector`, objectAt(match, 'objectSelector'));
  for (const field of ['resourceRules', 'excludeResourceRules']) {
    eachObject(listAt(match, field), `${path}.${field}`, (rule, at) => {
      checkOperations(found, at, rule);
    });
  }
}

function checkCommon(found: Findings, spec: JsonObject): boolean {
  const kind = objectAt(spec, 'paramKind');
  if (kind !== undefined) {
    for (const field of ['apiVersion', 'kind']) {
      if (stringAt(kind, field) === '') found.push(required(`spec.paramKind.${field}`));
    }
  }
  const match = objectAt(spec, 'matchConstraints');
  if (match === undefined) found.push(required('spec.matchConstraints'));
  else if (listAt(match, 'resourceRules').length === 0) {
    found.push(required('spec.matchConstraints.resourceRules'));
  }
  checkMatchResources(found, 'spec.matchConstraints', match);
  oneOf(found, 'spec.failurePolicy', spec['failurePolicy'], ['Fail', 'Ignore'], true);
  checkMatchConditions(found, 'spec.matchConditions', spec, kind !== undefined);
  return kind !== undefined;
}

/** ValidatingAdmissionPolicy. */
export function checkValidatingPolicy(found: Findings, policy: JsonObject): void {
  const spec = objectAt(policy, 'spec') ?? {};
  const hasParams = checkCommon(found, spec);
  const types = checkVariables(found, spec, hasParams);
  const environment = admissionEnvironment({ hasParams, variables: types });
  const validations = listAt(spec, 'validations');
  const annotations = listAt(spec, 'auditAnnotations');
  if (validations.length === 0 && annotations.length === 0) {
    const text = 'validations or auditAnnotations must contain at least one item';
    found.push(required('spec.validations', text));
    found.push(required('spec.auditAnnotations', text));
  }
  eachObject(validations, 'spec.validations', (validation, at) => {
    checkValidation(found, at, validation, environment);
  });
  const keys = new Set<string>();
  eachObject(annotations, 'spec.auditAnnotations', (annotation, at) => {
    const key = stringAt(annotation, 'key');
    if (key === '') found.push(required(`${at}.key`, 'key is not specified'));
    else if (keys.has(key)) found.push(duplicate(`${at}.key`, key));
    keys.add(key);
    const source = stringAt(annotation, 'valueExpression');
    checkExpression(found, `${at}.valueExpression`, source, environment, ['string', 'null']);
  });
}

function checkValidation(
  found: Findings,
  path: string,
  validation: JsonObject,
  environment: Environment,
): void {
  const source = stringAt(validation, 'expression');
  checkExpression(found, `${path}.expression`, source, environment, ['bool']);
  const { message } = validation;
  if (typeof message === 'string' && message !== '') {
    if (message.trim() === '') {
      const text = 'message must be non-empty if specified';
      found.push(invalidValue(`${path}.message`, message, text));
    } else if (message.includes('\n')) {
      const text = 'message must not contain line breaks';
      found.push(invalidValue(`${path}.message`, message, text));
    }
  } else if (source.trim().includes('\n')) {
    const text = 'message must be specified if expression contains line breaks';
    found.push(required(`${path}.message`, text));
  }
  const expression = stringAt(validation, 'messageExpression');
  if (expression !== '') {
    checkExpression(found, `${path}.messageExpression`, expression, environment, ['string']);
  }
  oneOf(found, `${path}.reason`, validation['reason'], REASONS, true);
}

/** MutatingAdmissionPolicy. */
export function checkMutatingPolicy(found: Findings, policy: JsonObject): void {
  const spec = objectAt(policy, 'spec') ?? {};
  const hasParams = checkCommon(found, spec);
  const types = checkVariables(found, spec, hasParams);
  const environment = admissionEnvironment({ hasParams, variables: types, makesPatches: true });
  oneOf(found, 'spec.reinvocationPolicy', spec['reinvocationPolicy'], ['IfNeeded', 'Never']);
  const mutations = listAt(spec, 'mutations');
  if (mutations.length === 0) found.push(required('spec.mutations'));
  eachObject(mutations, 'spec.mutations', (mutation, at) => {
    const type = stringAt(mutation, 'patchType');
    const field = type === 'JSONPatch' ? 'jsonPatch' : 'applyConfiguration';
    oneOf(found, `${at}.patchType`, type, ['ApplyConfiguration', 'JSONPatch']);
    const source = stringAt(mutation, field, 'expression');
    if (objectAt(mutation, field) === undefined) {
      found.push(required(`${at}.${field}`, `must be specified when patchType is ${type}`));
      return;
    }
    const kinds: readonly CelType['kind'][] = type === 'JSONPatch' ? ['list'] : ['object'];
    checkExpression(found, `${at}.${field}.expression`, source, environment, kinds);
  });
}

/** The binding of a policy of either kind. */
export function checkPolicyBinding(found: Findings, binding: JsonObject): void {
  const spec = objectAt(binding, 'spec') ?? {};
  if (stringAt(spec, 'policyName') === '') found.push(required('spec.policyName'));
  const reference = objectAt(spec, 'paramRef');
  if (reference !== undefined) {
    const path = 'spec.paramRef';
    const hasName = stringAt(reference, 'name') !== '';
    const hasSelector = objectAt(reference, 'selector') !== undefined;
    if (hasName && hasSelector) {
      const text = 'name and selector are mutually exclusive';
      found.push(forbiddenField(`${path}.name`, text));
    } else if (!hasName && !hasSelector) {
      found.push(required(path, 'one of name or selector must be specified'));
    }
    const action = reference['parameterNotFoundAction'];
    if (action === undefined || action === '') {
      found.push(required(`${path}.parameterNotFoundAction`));
    } else oneOf(found, `${path}.parameterNotFoundAction`, action, ['Allow', 'Deny']);
  }
  checkMatchResources(found, 'spec.matchResources', objectAt(spec, 'matchResources'));
}

/** A binding of a validating policy says what a violation leads to. */
export function checkValidatingBinding(found: Findings, binding: JsonObject): void {
  checkPolicyBinding(found, binding);
  const path = 'spec.validationActions';
  const actions = listAt(binding, 'spec', 'validationActions');
  if (actions.length === 0) found.push(required(path));
  for (const [index, action] of actions.entries()) {
    oneOf(found, `${path}[${index}]`, action, ACTIONS);
    if (actions.indexOf(action) < index) found.push(duplicate(`${path}[${index}]`, action));
  }
  if (actions.includes('Deny') && actions.includes('Warn')) {
    const text =
      'must not contain both Deny and Warn (repeating the same validation failure information ' +
      'in the API response and headers serves no purpose)';
    found.push(invalidValue(path, [...actions], text));
  }
}

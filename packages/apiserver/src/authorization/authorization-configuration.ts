/**
 * `AuthorizationConfiguration` of apiserver.config.k8s.io: which authorizers are asked, in which
 * order, and how webhooks among them are reached. Findings have upstream's words and paths.
 */
import { compileCel, failureText, type Program } from '@megaplane/machinery/cel/program';
import {
  aggregate,
  duplicate,
  fieldErrorText,
  invalidValue,
  notSupported,
  required,
  tooMany,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';
import { dnsSubdomainErrors } from '@megaplane/machinery/names';
import { durationMs } from '../request/query.ts';
import { CONDITION_TYPE, REVIEW_ENVIRONMENT } from './review-questions.ts';
import type { WebhookAuthorizerOptions } from './webhook-authorizer.ts';

/** Modes that this server knows, as `--authorization-mode` lists them. */
export const MODES = ['AlwaysAllow', 'AlwaysDeny', 'Node', 'RBAC', 'Webhook'] as const;
export type Mode = (typeof MODES)[number];

/** One authorizer of the chain; `webhook` only where the type says so. */
export interface ModeEntry {
  readonly mode: Mode;
  readonly name: string;
  readonly webhook: WebhookEntry | null;
}

/** A webhook that is not connected yet. */
export interface WebhookEntry extends Omit<WebhookAuthorizerOptions, 'target'> {
  /** Absolute path; '' reaches the server that runs in the same cluster. */
  readonly kubeconfigFile: string;
}

const VERSIONS: ReadonlySet<string> = new Set(
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
);
const CONDITIONS_MAX = 64;
const TIMEOUT_MS_MAX = 30_000;

/** Reads a configuration file. Throws an Error with all findings. */
export function readAuthorizationConfiguration(value: JsonValue): ModeEntry[] {
  if (!isObject(value)) throw new Error('the file holds no object');
  const [kind, version] = [stringAt(value, 'kind'), stringAt(value, 'apiVersion')];
  if (kind !== 'AuthorizationConfiguration' || !VERSIONS.has(version)) {
    throw new Error(
      `it is of ${version}, ${kind}, not of apiserver.config.k8s.io/v1, AuthorizationConfiguration`,
    );
  }
  const findings: FieldError[] = [];
  const given = listAt(value, 'authorizers');
  if (given.length === 0) {
    findings.push(required('authorizers', 'at least one authorization mode must be defined'));
  }
  const types = new Set<string>();
  const names = new Set<string>();
  const entries = given.flatMap((one, index) => {
    const path = `authorizers[${index}]`;
    const type = stringAt(one, 'type');
    if (!checkType(type, path, types, findings)) return [];
    const name = stringAt(one, 'name');
    checkName(name, path, names, findings);
    const webhook = readWebhook(one, type, path, findings);
    return [{ mode: type, name, webhook }];
  });
  if (findings.length > 0) throw new Error(aggregate(findings.map(fieldErrorText)));
  return entries;
}

function checkType(
  type: string,
  path: string,
  seen: Set<string>,
  findings: FieldError[],
): type is Mode {
  if (type === '') findings.push(required(`${path}.type`));
  else if (!MODES.some((one) => one === type)) {
    findings.push(notSupported(`${path}.type`, type, MODES));
  } else if (seen.has(type) && type !== 'Webhook') findings.push(duplicate(`${path}.type`, type));
  else {
    seen.add(type);
    return true;
  }
  return false;
}

function checkName(name: string, path: string, seen: Set<string>, findings: FieldError[]): void {
  const field = `${path}.name`;
  if (name === '') findings.push(required(field));
  else if (seen.has(name)) findings.push(duplicate(field, name));
  else {
    const errors = dnsSubdomainErrors(name);
    if (errors.length > 0) {
      const text = `authorizer name is invalid: ${errors.join(', ')}`;
      findings.push(invalidValue(field, name, text));
    }
  }
  seen.add(name);
}

function readWebhook(
  one: JsonValue,
  type: string,
  path: string,
  findings: FieldError[],
): WebhookEntry | null {
  const webhook = objectAt(one, 'webhook');
  if (type !== 'Webhook') {
    if (webhook === undefined) return null;
    const text = 'may only be specified when type=Webhook';
    findings.push(invalidValue(`${path}.webhook`, 'non-null', text));
    return null;
  }
  if (webhook === undefined) {
    findings.push(required(`${path}.webhook`, 'required when type=Webhook'));
    return null;
  }
  const timeoutMs = readDuration(webhook, 'timeout', path, findings);
  if (timeoutMs > TIMEOUT_MS_MAX || timeoutMs < 0) {
    const text = 'must be > 0s and <= 30s';
    findings.push(invalidValue(`${path}.timeout`, stringAt(webhook, 'timeout'), text));
  }
  const [authorizedMs = 0, unauthorizedMs = 0] = ['authorizedTTL', 'unauthorizedTTL'].map(
    (field) => {
      const ms = readDuration(webhook, field, path, findings);
      if (ms < 0) {
        const text = 'must be > 0s';
        findings.push(invalidValue(`${path}.${field}`, stringAt(webhook, field), text));
      }
      return ms;
    },
  );
  const oneOf = (field: string, among: readonly string[]): string => {
    const found = stringAt(webhook, field);
    if (found === '') findings.push(required(`${path}.${field}`));
    else if (!among.includes(found)) findings.push(notSupported(`${path}.${field}`, found, among));
    return found;
  };
  const version = oneOf('subjectAccessReviewVersion', ['v1', 'v1beta1']);
  const policy = oneOf('failurePolicy', ['NoOpinion', 'Deny']);
  checkConditionVersion(webhook, path, findings);
  return {
    name: stringAt(one, 'name'),
    version: version === 'v1beta1' ? 'v1beta1' : 'v1',
    timeoutMs,
    authorizedMs,
    unauthorizedMs,
    deniesOnFailure: policy === 'Deny',
    kubeconfigFile: readConnection(webhook, path, findings),
    conditions: readConditions(webhook, path, findings),
  };
}

function readDuration(
  webhook: JsonValue,
  field: string,
  path: string,
  findings: FieldError[],
): number {
  const text = stringAt(webhook, field);
  const ms = text === '' || text === '0' ? 0 : durationMs(text);
  if (ms === null) findings.push(invalidValue(`${path}.${field}`, text, 'must be a duration'));
  else if (ms === 0) findings.push(required(`${path}.${field}`));
  return ms ?? 1;
}

function checkConditionVersion(webhook: JsonValue, path: string, findings: FieldError[]): void {
  const field = `${path}.matchConditionSubjectAccessReviewVersion`;
  const version = stringAt(webhook, 'matchConditionSubjectAccessReviewVersion');
  if (version === '') {
    if (listAt(webhook, 'matchConditions').length === 0) return;
    findings.push(required(field, 'required if match conditions are specified'));
  } else if (version !== 'v1') findings.push(notSupported(field, version, ['v1']));
}

function readConnection(webhook: JsonValue, path: string, findings: FieldError[]): string {
  const type = stringAt(webhook, 'connectionInfo', 'type');
  const file = stringAt(webhook, 'connectionInfo', 'kubeConfigFile');
  const field = `${path}.connectionInfo`;
  if (type === '') findings.push(required(`${field}.type`));
  else if (type === 'InClusterConfig') {
    const text = 'can only be set when type=KubeConfigFile';
    if (file !== '') findings.push(invalidValue(`${field}.kubeConfigFile`, file, text));
  } else if (type === 'KubeConfigFile') {
    if (file === '') findings.push(required(`${field}.kubeConfigFile`));
    else if (!file.startsWith('/')) {
      findings.push(invalidValue(`${field}.kubeConfigFile`, file, 'must be an absolute path'));
    }
  } else {
    const known = ['InClusterConfig', 'KubeConfigFile'];
    findings.push(notSupported(`${field}.type`, type, known));
  }
  return file;
}

function readConditions(webhook: JsonValue, path: string, findings: FieldError[]): Program[] {
  const given = listAt(webhook, 'matchConditions');
  if (given.length > CONDITIONS_MAX) {
    findings.push(tooMany(`${path}.matchConditions`, given.length, CONDITIONS_MAX));
    return [];
  }
  const seen = new Set<string>();
  return given.flatMap((one, index) => {
    const field = `${path}.matchConditions[${index}].expression`;
    const expression = stringAt(one, 'expression');
    if (expression.trim() === '') {
      findings.push(required(field));
      return [];
    }
    if (seen.has(expression)) {
      findings.push(duplicate(field, expression));
      return [];
    }
    seen.add(expression);
    const compiled = compileCel(REVIEW_ENVIRONMENT, expression);
    if (!compiled.ok) {
      findings.push(invalidValue(field, expression, failureText(compiled)));
      return [];
    }
    if (compiled.program.type !== CONDITION_TYPE && compiled.program.type.kind !== 'dyn') {
      findings.push(invalidValue(field, expression, 'must evaluate to bool'));
      return [];
    }
    return [compiled.program];
  });
}

/** What admission is configured with: webhooks, when and where they are called, and policies. */

import { duplicate, invalidValue, required } from '../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { dns1035LabelErrors, dnsSubdomainErrors } from '../meta/names.ts';
import { checkConditions } from './field/validation-conditions.ts';
import { checkWebhookReach } from './field/validation-webhook-clients.ts';
import { checkOperations } from './field/validation-operations.ts';
import {
  checkMatchConditions,
  checkMutatingPolicy,
  checkMutatingBinding,
  checkValidatingBinding,
  checkValidatingPolicy,
} from './validation-policies.ts';
import {
  checkSelector,
  eachObject,
  invalidEach,
  oneOfSet,
  type Findings,
} from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

/** What was found out about the expressions of a policy. */
function checkPolicyStatus(found: Findings, policy: JsonObject): void {
  const warnings = listAt(policy, 'status', 'typeChecking', 'expressionWarnings');
  eachObject(warnings, 'status.typeChecking.expressionWarnings', (warning, at) => {
    if (stringAt(warning, 'warning') === '') found.push(required(`${at}.warning`));
    if (stringAt(warning, 'fieldRef').trim() === '') found.push(required(`${at}.fieldRef`));
  });
  checkConditions(found, 'status.conditions', listAt(policy, 'status', 'conditions'));
}

export const ADMISSION_RULES: RuleTable = {
  'validatingwebhookconfigurations.admissionregistration.k8s.io': {
    isForeign: true,
    create: checkWebhooks,
  },
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': {
    isForeign: true,
    create: checkWebhooks,
  },
  'validatingadmissionpolicies.admissionregistration.k8s.io': {
    isForeign: true,
    create: checkValidatingPolicy,
    subresources: { status: checkPolicyStatus },
  },
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': {
    isForeign: true,
    create: checkValidatingBinding,
  },
  'mutatingadmissionpolicies.admissionregistration.k8s.io': {
    isForeign: true,
    create: checkMutatingPolicy,
  },
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': {
    isForeign: true,
    create: checkMutatingBinding,
  },
};

const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];

function checkWebhooks(found: Findings, configuration: JsonObject): void {
  const names = new Set<string>();
  eachObject(listAt(configuration, 'webhooks'), 'webhooks', (webhook, at) => {
    const name = stringAt(webhook, 'name');
    checkWebhookName(found, `${at}.name`, name);
    eachObject(listAt(webhook, 'rules'), `${at}.rules`, (rule, ruleAt) => {
      checkOperations(found, ruleAt, rule);
    });
    oneOfSet(found, `${at}.failurePolicy`, webhook['failurePolicy'], ['Fail', 'Ignore']);
    oneOfSet(found, `${at}.matchPolicy`, webhook['matchPolicy'], ['Equivalent', 'Exact']);
    const effects = webhook['sideEffects'];
    if (effects === undefined || effects === null) {
      const text = 'must specify one of None, NoneOnDryRun';
      found.push(required(`${at}.sideEffects`, text));
    } else oneOfSet(found, `${at}.sideEffects`, effects, SIDE_EFFECTS);
    const seconds = webhook['timeoutSeconds'];
    if (typeof seconds === 'number' && (seconds < 1 || seconds > 30)) {
      const text = 'the timeout value must be between 1 and 30 seconds';
      found.push(invalidValue(`${at}.timeoutSeconds`, seconds, text));
    }
    checkSelector(found, `${at}.namespaceSelector`, objectAt(webhook, 'namespaceSelector'));
    checkSelector(found, `${at}.objectSelector`, objectAt(webhook, 'objectSelector'));
    const policies = ['IfNeeded', 'Never'];
    oneOfSet(found, `${at}.reinvocationPolicy`, webhook['reinvocationPolicy'], policies);
    checkWebhookReach(found, `${at}.clientConfig`, objectAt(webhook, 'clientConfig') ?? {});
    checkMatchConditions(found, `${at}.matchConditions`, webhook, false);
    checkReviewVersions(found, at, listAt(webhook, 'admissionReviewVersions'));
    if (name === '') return;
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
}

function checkWebhookName(found: Findings, path: string, name: string): void {
  if (name === '') {
    found.push(required(path));
    return;
  }
  const texts = dnsSubdomainErrors(name);
  if (texts.length > 0) found.push(invalidValue(path, name, texts.join(',')));
  else if (name.split('.').length < 3) {
    const text = 'should be a domain with at least three segments separated by dots';
    found.push(invalidValue(path, name, text));
  }
}

const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function checkReviewVersions(found: Findings, at: string, versions: readonly JsonValue[]): void {
  const path = `${at}.admissionReviewVersions`;
  const known = REVIEW_VERSIONS.join(', ');
  if (versions.length === 0) {
    found.push(required(path, `must specify one of ${known}`));
    return;
  }
  for (const [index, version] of versions.entries()) {
    const name = typeof version === 'string' ? version : '';
    const each = `${path}[${index}]`;
    if (versions.indexOf(version) < index) {
      found.push(invalidValue(each, name, 'duplicate version'));
    } else invalidEach(found, each, name, dns1035LabelErrors(name));
  }
  if (versions.some((version) => REVIEW_VERSIONS.some((one) => one === version))) return;
  found.push(invalidValue(path, [...versions], `must include at least one of ${known}`));
}

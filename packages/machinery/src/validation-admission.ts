/** What admission is configured with: webhooks, when and where they are called, and policies. */

import { duplicate, invalidValue, required } from './fielderrors.ts';
import { listAt, objectAt, stringAt } from './json.ts';
import type { JsonObject, JsonValue } from './json-value.ts';
import { dns1035LabelErrors, dnsSubdomainErrors } from './names.ts';
import type { RuleTable } from './validation.ts';
import { checkOperations } from './validation-operations.ts';
import {
  checkMatchConditions,
  checkMutatingPolicy,
  checkPolicyBinding,
  checkValidatingBinding,
  checkValidatingPolicy,
} from './validation-policies.ts';
import {
  checkSelector,
  eachObject,
  invalidEach,
  oneOf,
  type Findings,
} from './validation-rules.ts';

export const ADMISSION_RULES: RuleTable = {
  'validatingwebhookconfigurations.admissionregistration.k8s.io': { create: checkWebhooks },
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': { create: checkWebhooks },
  'validatingadmissionpolicies.admissionregistration.k8s.io': { create: checkValidatingPolicy },
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': {
    create: checkValidatingBinding,
  },
  'mutatingadmissionpolicies.admissionregistration.k8s.io': { create: checkMutatingPolicy },
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': { create: checkPolicyBinding },
};

const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];

function checkWebhooks(found: Findings, configuration: JsonObject): void {
  const names = new Set<string>();
  eachObject(listAt(configuration, 'webhooks'), 'webhooks', (webhook, at) => {
    const name = stringAt(webhook, 'name');
    checkWebhookName(found, `${at}.name`, name);
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    const effects = webhook['sideEffects'];
    if (effects === undefined || effects === null || effects === '') {
      const text = 'must specify one of None, NoneOnDryRun';
      found.push(required(`${at}.sideEffects`, text));
    } else oneOf(found, `${at}.sideEffects`, effects, SIDE_EFFECTS);
    oneOf(found, `${at}.failurePolicy`, webhook['failurePolicy'], ['Fail', 'Ignore'], true);
    const matches = ['Equivalent', 'Exact'];
    oneOf(found, `${at}.matchPolicy`, webhook['matchPolicy'], matches, true);
    const seconds = webhook['timeoutSeconds'];
    if (typeof seconds === 'number' && (seconds < 1 || seconds > 30)) {
      const text = 'the timeout value must be between 1 and 30 seconds';
      found.push(invalidValue(`${at}.timeoutSeconds`, seconds, text));
    }
    checkReviewVersions(found, at, listAt(webhook, 'admissionReviewVersions'));
    eachObject(listAt(webhook, 'rules'), `${at}.rules`, (rule, ruleAt) => {
      checkOperations(found, ruleAt, rule);
    });
    checkClient(found, `${at}.clientConfig`, objectAt(webhook, 'clientConfig') ?? {});
    checkSelector(found, `${at}.namespaceSelector`, objectAt(webhook, 'namespaceSelector'));
    checkSelector(found, `${at}.objectSelector`, objectAt(webhook, 'objectSelector'));
    checkMatchConditions(found, `${at}.matchConditions`, webhook, false);
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

function checkClient(found: Findings, path: string, client: JsonObject): void {
  const url = client['url'];
  const service = objectAt(client, 'service');
  if ((url === undefined) === (service === undefined)) {
    found.push(required(path, 'exactly one of url or service is required'));
  } else if (typeof url === 'string') checkWebhookUrl(found, `${path}.url`, url);
  else {
    for (const field of ['name', 'namespace']) {
      if (stringAt(service, field) !== '') continue;
      found.push(required(`${path}.service.${field}`, `service ${field} is required`));
    }
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

/** A webhook's URL: https, a host, and nothing but a path behind it. */
export function checkWebhookUrl(found: Findings, path: string, text: string): void {
  const format = 'desired format: https://host[/path]';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) {
    found.push(required(path, `url must be a valid URL: parse error; ${format}`));
    return;
  }
  if (url.protocol !== 'https:') {
    const value = url.protocol.slice(0, -1);
    found.push(invalidValue(path, value, `'https' is the only allowed URL scheme; ${format}`));
  }
  if (url.host === '') {
    found.push(invalidValue(path, '', `host must be specified; ${format}`));
  }
  if (url.username !== '') {
    const detail = 'user information is not permitted in the URL';
    found.push(invalidValue(path, url.username, detail));
  }
  if (url.hash !== '') {
    found.push(invalidValue(path, url.hash.slice(1), 'fragments are not permitted in the URL'));
  }
  if (url.search !== '') {
    const detail = 'query parameters are not permitted in the URL';
    found.push(invalidValue(path, url.search.slice(1), detail));
  }
}

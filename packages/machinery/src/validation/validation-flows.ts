/** Flow schemas and priority levels (`flowcontrol.apiserver.k8s.io`). */

import { ownMember } from '@megaplane/base/members';
import { escapedJson } from '../json/quoting.ts';
import {
  CATCH_ALL_LEVEL,
  MANDATORY_SCHEMAS,
  PRECEDENCE_MAX,
} from '../meta/mandatory-flow-objects.ts';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
  type Printed,
} from '../meta/fielderrors.ts';
import { equals, listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { internalValue } from '../gotext/internal-names.ts';
import { findTypeOfKind } from '../scheme/schema.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../meta/names.ts';
import { eachObject, invalidEach, type Findings } from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

const QUEUES_MAX = 10_000_000;
const HASH_BITS_MAX = 60;
const METHODS = ['ByNamespace', 'ByUser'];
const SUBJECT_KINDS = ['Group', 'ServiceAccount', 'User'];
const VERBS = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'proxy',
  'update',
  'watch',
];
export const FLOW_RULES: RuleTable = {
  'flowschemas.flowcontrol.apiserver.k8s.io': {
    create: checkSchema,
    subresources: { status: checkConditions },
  },
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': {
    create: checkLevel,
    subresources: { status: checkConditions },
  },
};

function checkConditions(found: Findings, object: JsonObject): void {
  const types = new Set<string>();
  eachObject(listAt(object, 'status', 'conditions'), 'status.conditions', (condition, at) => {
    const type = stringAt(condition, 'type');
    if (types.has(type)) found.push(duplicate(`${at}.type`, type));
    types.add(type);
    if (type === '') found.push(required(`${at}.type`));
  });
}

function checkSchema(found: Findings, schema: JsonObject): void {
  const name = stringAt(schema, 'metadata', 'name');
  const spec = objectAt(schema, 'spec') ?? {};
  const precedence = numberAt(spec, 'matchingPrecedence');
  const at = 'spec.matchingPrecedence';
  if (precedence <= 0) found.push(invalidValue(at, precedence, 'must be a positive value'));
  if (precedence > PRECEDENCE_MAX) {
    found.push(invalidValue(at, precedence, `must not be greater than ${PRECEDENCE_MAX}`));
  }
  if (precedence === 1 && name !== 'exempt') {
    const text = "only the schema named 'exempt' may have matchingPrecedence 1";
    found.push(invalidValue(at, precedence, text));
  }
  const method = objectAt(spec, 'distinguisherMethod');
  if (method !== undefined && !METHODS.includes(stringAt(method, 'type'))) {
    // upstream names the whole method, as Go prints its own form of it
    const shown = printed(escapedJson({ Type: stringAt(method, 'type') }));
    found.push(notSupported('spec.distinguisherMethod.type', shown, METHODS));
  }
  const level = stringAt(spec, 'priorityLevelConfiguration', 'name');
  const levelAt = 'spec.priorityLevelConfiguration.name';
  if (level === '') found.push(required(levelAt, 'must reference a priority level'));
  else invalidEach(found, levelAt, level, dnsSubdomainErrors(level));
  eachObject(listAt(spec, 'rules'), 'spec.rules', (rule, path) => checkRule(found, path, rule));
  const mandatory = ownMember(MANDATORY_SCHEMAS, name);
  if (mandatory !== undefined && !equals(mandatory, spec)) {
    found.push(
      invalidValue('spec', shownSpec(schema), `spec of '${name}' must equal the fixed value`),
    );
  }
  checkConditions(found, schema);
}

/** The spec as upstream's own types print it. */
function shownSpec(object: JsonObject): Printed | JsonObject {
  const spec = objectAt(object, 'spec') ?? {};
  const type = findTypeOfKind(stringAt(object, 'apiVersion'), stringAt(object, 'kind'));
  const shape = type?.field('spec')?.shape;
  return shape?.kind === 'object' ? internalValue(shape.type, spec) : spec;
}

function checkRule(found: Findings, at: string, rule: JsonObject): void {
  const subjects = listAt(rule, 'subjects');
  if (subjects.length === 0) {
    found.push(required(`${at}.subjects`, 'subjects must contain at least one value'));
  }
  eachObject(subjects, `${at}.subjects`, (subject, path) => checkSubject(found, path, subject));
  const resources = listAt(rule, 'resourceRules');
  const urls = listAt(rule, 'nonResourceRules');
  if (resources.length === 0 && urls.length === 0) {
    const text = 'at least one of resourceRules and nonResourceRules has to be non-empty';
    found.push(required(at, text));
  }
  eachObject(resources, `${at}.resourceRules`, (one, path) => checkResources(found, path, one));
  eachObject(urls, `${at}.nonResourceRules`, (one, path) => checkUrls(found, path, one));
}

/** The member that goes with each kind, in upstream's order of complaints. */
const MEMBERS: Readonly<Record<string, { readonly own: string; readonly others: string[] }>> = {
  ServiceAccount: { own: 'serviceAccount', others: ['user', 'group'] },
  User: { own: 'user', others: ['serviceAccount', 'group'] },
  Group: { own: 'group', others: ['serviceAccount', 'user'] },
};
const KIND_OF: Readonly<Record<string, string>> = {
  serviceAccount: 'ServiceAccount',
  user: 'User',
  group: 'Group',
};

function checkSubject(found: Findings, at: string, subject: JsonObject): void {
  const kind = stringAt(subject, 'kind');
  const members = ownMember(MEMBERS, kind);
  if (members === undefined) {
    found.push(notSupported(`${at}.kind`, kind, SUBJECT_KINDS));
    return;
  }
  const { own, others } = members;
  const value = objectAt(subject, own);
  if (value === undefined) {
    found.push(required(`${at}.${own}`, `${own} is required when subject kind is '${kind}'`));
  } else if (kind === 'ServiceAccount') checkAccount(found, `${at}.${own}`, value);
  else if (stringAt(value, 'name') === '') found.push(required(`${at}.${own}.name`));
  for (const other of others) {
    if (objectAt(subject, other) === undefined) continue;
    const text = `${other} is forbidden when subject kind is not '${ownMember(KIND_OF, other)}'`;
    found.push(forbiddenField(`${at}.${other}`, text));
  }
}

function checkAccount(found: Findings, at: string, account: JsonObject): void {
  const name = stringAt(account, 'name');
  if (name === '') found.push(required(`${at}.name`));
  else if (name !== '*') invalidEach(found, `${at}.name`, name, dnsSubdomainErrors(name));
  const namespace = stringAt(account, 'namespace');
  if (namespace === '') {
    found.push(required(`${at}.namespace`, 'must specify namespace for service account'));
  } else invalidEach(found, `${at}.namespace`, namespace, dnsLabelErrors(namespace));
}

function checkVerbs(found: Findings, at: string, rule: JsonObject): void {
  const path = `${at}.verbs`;
  const verbs = listAt(rule, 'verbs');
  if (verbs.length === 0) found.push(required(path, 'verbs must contain at least one value'));
  else if (verbs.includes('*')) checkAlone(found, path, verbs, 'verbs');
  else if (verbs.some((verb) => typeof verb !== 'string' || !VERBS.includes(verb))) {
    found.push(notSupported(path, [...verbs], VERBS));
  }
}

function checkAlone(found: Findings, path: string, list: readonly JsonValue[], what: string): void {
  if (list.length < 2 || !list.includes('*')) return;
  const text = `if '*' is present, must not specify other ${what}`;
  found.push(invalidValue(path, [...list], text));
}

function checkResources(found: Findings, at: string, rule: JsonObject): void {
  checkVerbs(found, at, rule);
  const groups = listAt(rule, 'apiGroups');
  if (groups.length === 0) {
    const text = 'resource rules must supply at least one api group';
    found.push(required(`${at}.apiGroups`, text));
  }
  checkAlone(found, `${at}.apiGroups`, groups, 'api groups');
  const resources = listAt(rule, 'resources');
  if (resources.length === 0) {
    const text = 'resource rules must supply at least one resource';
    found.push(required(`${at}.resources`, text));
  }
  checkAlone(found, `${at}.resources`, resources, 'resources');
  checkNamespaces(found, `${at}.namespaces`, rule);
}

function checkNamespaces(found: Findings, at: string, rule: JsonObject): void {
  const namespaces = listAt(rule, 'namespaces');
  if (namespaces.length === 0 && rule['clusterScope'] !== true) {
    const text = 'resource rules that are not cluster scoped must supply at least one namespace';
    found.push(required(at, text));
  } else if (namespaces.includes('*')) checkAlone(found, at, namespaces, 'namespaces');
  else {
    for (const [index, namespace] of namespaces.entries()) {
      const intro = "each member of this list must be '*' or a DNS-1123 label; ";
      const texts = dnsLabelErrors(textOf(namespace)).map((text) => intro + text);
      invalidEach(found, `${at}[${index}]`, namespace, texts);
    }
  }
}

function checkUrls(found: Findings, at: string, rule: JsonObject): void {
  checkVerbs(found, at, rule);
  const path = `${at}.nonResourceURLs`;
  const urls = listAt(rule, 'nonResourceURLs');
  if (urls.length === 0) {
    found.push(required(path, 'nonResourceURLs must contain at least one value'));
  } else if (urls.includes('*')) checkAlone(found, path, urls, 'non-resource URLs');
  else {
    for (const [index, url] of urls.entries()) {
      const text = urlFault(textOf(url));
      if (text !== '') found.push(invalidValue(`${path}[${index}]`, url, text));
    }
  }
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : '';
}

function urlFault(url: string): string {
  if (url === '') return 'must not be empty';
  if (url === '/') return '';
  if (!url.startsWith('/')) return 'must start with slash';
  if (url.includes(' ')) return 'must not contain white-space';
  if (url.includes('//')) return 'must not contain double slash';
  const stars = url.split('*').length - 1;
  return stars > 1 || (stars === 1 && !url.endsWith('/*'))
    ? 'wildcard can only do suffix matching'
    : '';
}

function checkLevel(found: Findings, level: JsonObject): void {
  const name = stringAt(level, 'metadata', 'name');
  const spec = objectAt(level, 'spec') ?? {};
  const type = stringAt(spec, 'type');
  if ((name === 'exempt') !== (type === 'Exempt')) {
    const text = "must be 'Exempt' if and only if `name` is 'exempt'";
    found.push(invalidValue('spec.type', type, text));
  }
  checkLevelType(found, type, spec);
  if (name === 'exempt' && !equals({ ...spec, exempt: {} }, { type: 'Exempt', exempt: {} })) {
    const text = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value";
    found.push(invalidValue('spec', shownSpec(level), text));
  } else if (name === 'catch-all' && !equals(spec, CATCH_ALL_LEVEL)) {
    const text = `spec of '${name}' must equal the fixed value`;
    found.push(invalidValue('spec', shownSpec(level), text));
  }
  checkConditions(found, level);
}

function checkLevelType(found: Findings, type: string, spec: JsonObject): void {
  const { limited, exempt } = spec;
  if (type === 'Exempt') {
    if (limited !== undefined) {
      found.push(forbiddenField('spec.limited', 'must be nil if the type is not Limited'));
    }
    if (isObject(exempt)) {
      checkShares(found, 'spec.exempt', exempt);
      checkLendable(found, 'spec.exempt', exempt);
    }
  } else if (type === 'Limited') {
    if (exempt !== undefined) {
      found.push(forbiddenField('spec.exempt', 'must be nil if the type is Limited'));
    }
    if (isObject(limited)) checkLimited(found, limited);
    else found.push(required('spec.limited', 'must not be empty when type is Limited'));
  } else found.push(notSupported('spec.type', type, ['Exempt', 'Limited']));
}

function checkShares(found: Findings, at: string, { nominalConcurrencyShares }: JsonObject): void {
  if (typeof nominalConcurrencyShares !== 'number' || nominalConcurrencyShares >= 0) return;
  const path = `${at}.nominalConcurrencyShares`;
  found.push(invalidValue(path, nominalConcurrencyShares, 'must be a non-negative integer'));
}

function checkLendable(found: Findings, at: string, { lendablePercent }: JsonObject): void {
  if (typeof lendablePercent !== 'number') return;
  if (lendablePercent >= 0 && lendablePercent <= 100) return;
  const text = 'must be between 0 and 100, inclusive';
  found.push(invalidValue(`${at}.lendablePercent`, lendablePercent, text));
}

function checkLimited(found: Findings, limited: JsonObject): void {
  const at = 'spec.limited';
  checkShares(found, at, limited);
  checkResponse(found, `${at}.limitResponse`, objectAt(limited, 'limitResponse') ?? {});
  checkLendable(found, at, limited);
  const borrowing = limited['borrowingLimitPercent'];
  if (typeof borrowing === 'number' && borrowing < 0) {
    const text = 'if specified, must be a non-negative integer';
    found.push(invalidValue(`${at}.borrowingLimitPercent`, borrowing, text));
  }
}

function checkResponse(found: Findings, at: string, response: JsonObject): void {
  const type = stringAt(response, 'type');
  const queuing = objectAt(response, 'queuing');
  if (type === 'Reject') {
    if (queuing === undefined) return;
    const text = 'must be nil if limited.limitResponse.type is not Limited';
    found.push(forbiddenField(`${at}.queuing`, text));
  } else if (type === 'Queue') {
    if (queuing !== undefined) checkQueuing(found, `${at}.queuing`, queuing);
    else {
      const text = 'must not be empty if limited.limitResponse.type is Limited';
      found.push(required(`${at}.queuing`, text));
    }
  } else found.push(notSupported(`${at}.type`, type, ['Queue', 'Reject']));
}

function checkQueuing(found: Findings, at: string, queuing: JsonObject): void {
  const [queues, handSize] = [numberAt(queuing, 'queues'), numberAt(queuing, 'handSize')];
  const invalid = (field: string, text: string): void => {
    found.push(invalidValue(`${at}.${field}`, numberAt(queuing, field), text));
  };
  if (numberAt(queuing, 'queueLengthLimit') <= 0) invalid('queueLengthLimit', 'must be positive');
  if (queues <= 0) invalid('queues', 'must be positive');
  else if (queues > QUEUES_MAX) invalid('queues', `must not be greater than ${QUEUES_MAX}`);
  const bits = Math.ceil(Math.log2(queues) * handSize);
  if (handSize <= 0) invalid('handSize', 'must be positive');
  else if (handSize > queues) {
    invalid('handSize', `should not be greater than queues (${queues})`);
  } else if (bits > HASH_BITS_MAX) {
    const sizes = `deckSize ${queues} and handSize ${handSize}`;
    const text = `required entropy bits of ${sizes} should not be greater than ${HASH_BITS_MAX}`;
    invalid('handSize', text);
  }
}

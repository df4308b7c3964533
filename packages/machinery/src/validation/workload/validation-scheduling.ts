/**
 * Groups of pods and workloads (`scheduling.k8s.io/v1alpha2`), as kube-apiserver v1.36 judges them
 * where none of their own feature gates but GenericWorkload is on.
 */
import { ownMember } from '@megaplane/base/members';
import { duplicate, invalidValue, printed, required, tooMany } from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../../meta/names.ts';
import { checkConditions } from '../field/validation-conditions.ts';
import {
  eachObject,
  IMMUTABLE,
  invalidEach,
  isSame,
  type Findings,
} from '../field/validation-rules.ts';
import type { RuleTable } from '../field/rule-table.ts';

const TEMPLATES_MAX = 8;

export const SCHEDULING_RULES: RuleTable = {
  'podgroups.scheduling.k8s.io': {
    create: checkGroup,
    update: (found, next, previous) => {
      for (const member of ['podGroupTemplateRef', 'schedulingPolicy']) {
        checkKept(found, `spec.${member}`, next, previous);
      }
    },
    subresources: {
      status: (found, group) => {
        checkConditions(found, 'status.conditions', listAt(group, 'status', 'conditions'));
      },
    },
  },
  'workloads.scheduling.k8s.io': {
    create: checkWorkload,
    update: (found, next, previous) => {
      // A controller may be named later, and is kept then.
      if (objectAt(previous, 'spec', 'controllerRef') === undefined) checkController(found, next);
      else checkKept(found, 'spec.controllerRef', next, previous);
      checkKept(found, 'spec.podGroupTemplates', next, previous);
    },
  },
};

function checkKept(found: Findings, path: string, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [next, previous].map((one) => memberAt(one, path));
  if (!isSame(after, before)) found.push(invalidValue(path, null, IMMUTABLE));
}

function memberAt(object: JsonObject, path: string): JsonValue | undefined {
  return ownMember(objectAt(object, 'spec'), path.slice('spec.'.length));
}

function checkGroup(found: Findings, group: JsonObject): void {
  const reference = objectAt(group, 'spec', 'podGroupTemplateRef');
  if (reference !== undefined) checkReference(found, 'spec.podGroupTemplateRef', reference);
  checkPolicy(found, 'spec.schedulingPolicy', objectAt(group, 'spec', 'schedulingPolicy') ?? {});
}

function checkReference(found: Findings, path: string, reference: JsonObject): void {
  const workload = reference['workload'];
  if (!isObject(workload)) return checkUnion(found, path, reference, ['workload']);
  const inner = `${path}.workload`;
  checkName(found, `${inner}.workloadName`, workload, dnsSubdomainErrors);
  checkName(found, `${inner}.podGroupTemplateName`, workload, dnsLabelErrors);
}

function checkName(
  found: Findings,
  path: string,
  object: JsonObject,
  faultsOf: (name: string) => string[],
): void {
  const name = stringAt(object, path.slice(path.lastIndexOf('.') + 1));
  if (name === '') found.push(required(path));
  else invalidEach(found, path, name, faultsOf(name));
}

function checkPolicy(found: Findings, path: string, policy: JsonObject): void {
  checkUnion(found, path, policy, ['basic', 'gang']);
  const { gang } = policy;
  if (!isObject(gang)) return;
  const count = numberAt(gang, 'minCount');
  const at = `${path}.gang.minCount`;
  if (count === 0) found.push(required(at));
  else if (count < 1) found.push(invalidValue(at, count, 'must be greater than or equal to 1'));
}

/** One of the members has to be there, and no other. */
function checkUnion(
  found: Findings,
  path: string,
  union: JsonObject,
  members: readonly string[],
): void {
  const given = members.filter((member) => isObject(ownMember(union, member)));
  if (given.length === 1) return;
  const names = members.map((member) => `\`${member}\``).join(', ');
  if (given.length === 0) found.push(invalidValue(path, '', `must specify one of: ${names}`));
  else {
    const shown = printed(`"{${given.join(', ')}}"`);
    found.push(invalidValue(path, shown, `must specify exactly one of: ${names}`));
  }
}

function checkWorkload(found: Findings, workload: JsonObject): void {
  checkController(found, workload);
  const path = 'spec.podGroupTemplates';
  const templates = listAt(workload, 'spec', 'podGroupTemplates');
  if (templates.length === 0) return void found.push(required(path));
  if (templates.length > TEMPLATES_MAX) {
    return void found.push(tooMany(path, templates.length, TEMPLATES_MAX));
  }
  const names = new Set<string>();
  eachObject(templates, path, (template, at) => {
    const name = stringAt(template, 'name');
    if (names.has(name)) found.push(duplicate(at, shownTemplate(template)));
    names.add(name);
  });
  eachObject(templates, path, (template, at) => {
    checkName(found, `${at}.name`, template, dnsLabelErrors);
    checkPolicy(found, `${at}.schedulingPolicy`, objectAt(template, 'schedulingPolicy') ?? {});
  });
}

/** Go writes a member that has no omitempty. */
function shownTemplate({ schedulingConstraints = null, ...rest }: JsonObject): JsonObject {
  const { name = '', schedulingPolicy = {}, ...others } = rest;
  return { name, schedulingPolicy, schedulingConstraints, ...others };
}

function checkController(found: Findings, workload: JsonObject): void {
  const reference = objectAt(workload, 'spec', 'controllerRef');
  if (reference === undefined) return;
  const path = 'spec.controllerRef';
  const group = stringAt(reference, 'apiGroup');
  if (group !== '') invalidEach(found, `${path}.apiGroup`, group, dnsSubdomainErrors(group));
  checkName(found, `${path}.kind`, reference, segmentErrors);
  checkName(found, `${path}.name`, reference, segmentErrors);
}

function segmentErrors(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%']
    .filter((text) => name.includes(text))
    .map((text) => `may not contain '${text}'`);
}

/** What can be wrong with the arguments of plugins, in upstream's words. */
import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  fieldErrorText,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from '@megaplane/machinery/fielderrors';
import { printed } from '@megaplane/machinery/fielderrors';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import { parseGoDuration } from '@megaplane/machinery/times';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { qualifiedNameErrors } from '@megaplane/machinery/names';
import { requirementErrors } from '@megaplane/machinery/selectors';
import { listAt, memberAt, numberAt, textAt } from './schema/members.ts';
import { NODE_OPERATORS } from '../api/node-selector.ts';

type Check = (args: JsonObject, path: string) => (FieldError | string)[];

function labelName(name: string, path: string): FieldError[] {
  return qualifiedNameErrors(name).map((text) => invalidValue(path, name, text));
}

function preemption(args: JsonObject, path: string): FieldError[] {
  const percentage = numberAt(args, 'minCandidateNodesPercentage');
  const absolute = numberAt(args, 'minCandidateNodesAbsolute');
  const [one, other] = [`${path}.minCandidateNodesPercentage`, `${path}.minCandidateNodesAbsolute`];
  const found: FieldError[] = [];
  if (percentage < 0 || percentage > 100) {
    found.push(invalidValue(one, percentage, 'not in valid range [0, 100]'));
  }
  if (absolute < 0) found.push(invalidValue(other, absolute, 'not in valid range [0, inf)'));
  if (percentage === 0 && absolute === 0) {
    const text = 'cannot be zero at the same time as';
    found.push(invalidValue(one, 0, `${text} minCandidateNodesAbsolute`));
    found.push(invalidValue(other, 0, `${text} minCandidateNodesPercentage`));
  }
  return found;
}

function interPodAffinity(args: JsonObject, path: string): FieldError[] {
  const weight = numberAt(args, 'hardPodAffinityWeight');
  if (weight >= 0 && weight <= 100) return [];
  const field = `${path}.hardPodAffinityWeight`;
  return [invalidValue(field, weight, 'not in valid range [0, 100]')];
}

function expressionErrors(requirement: JsonValue, path: string): FieldError[] {
  const operator = textAt(requirement, 'operator');
  if (!Object.hasOwn(NODE_OPERATORS, operator)) {
    return [notSupported(`${path}.operator`, operator, Object.keys(NODE_OPERATORS))];
  }
  const known = NODE_OPERATORS[operator as keyof typeof NODE_OPERATORS];
  const isAbsent = memberAt(requirement, 'values') === undefined;
  const values = listAt(requirement, 'values').filter((value) => typeof value === 'string');
  return requirementErrors(textAt(requirement, 'key'), known, isAbsent ? undefined : values, path);
}

function fieldErrors(one: JsonValue, path: string): FieldError[] {
  const operator = textAt(one, 'operator');
  if (operator !== 'In' && operator !== 'NotIn') {
    return [notSupported(`${path}.operator`, operator, ['In', 'NotIn'])];
  }
  const values = listAt(one, 'values');
  if (values.length === 1) return [];
  return [invalidValue(`${path}.values`, memberAt(one, 'values') ?? null, 'must have one element')];
}

function termErrors(term: JsonValue, path: string): (FieldError | string)[] {
  return [
    ...listAt(term, 'matchExpressions').flatMap((one, index) =>
      expressionErrors(one, `${path}.matchExpressions[${index}]`),
    ),
    ...listAt(term, 'matchFields').flatMap((one, index) =>
      fieldErrors(one, `${path}.matchFields[${index}]`),
    ),
  ];
}

function nodeAffinity(args: JsonObject, path: string): (FieldError | string)[] {
  const added = args['addedAffinity'];
  const hardTerms = memberAt(added, 'requiredDuringSchedulingIgnoredDuringExecution');
  const hard = `${path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution`;
  const soft = 'preferredDuringSchedulingIgnoredDuringExecution';
  return [
    ...listAt(hardTerms, 'nodeSelectorTerms').flatMap((term, index) =>
      termErrors(term, `${hard}.nodeSelectorTerms[${index}]`),
    ),
    ...listAt(added, soft).flatMap((one, index) =>
      numberAt(one, 'weight') === 0
        ? []
        : termErrors(
            memberAt(one, 'preference') ?? null,
            `${path}.addedAffinity.${soft}[${index}]`,
          ),
    ),
  ];
}

function balancedAllocation(args: JsonObject, path: string): FieldError[] {
  const seen = new Set<string>();
  return listAt(args, 'resources').flatMap((one, index) => {
    const found: FieldError[] = [];
    const name = textAt(one, 'name');
    const weight = numberAt(one, 'weight');
    if (seen.has(name)) found.push(duplicate(`${path}.resources[${index}].name`, name));
    seen.add(name);
    if (weight !== 1) {
      found.push(invalidValue(`${path}.resources[${index}].weight`, weight, 'must be 1'));
    }
    return found;
  });
}

/** Points from 0 to 100 in rising order, each with a score from 0 to 10. */
function shapeErrors(shape: readonly JsonValue[], path: string): FieldError[] {
  if (shape.length === 0) return [required(path, 'at least one point must be specified')];
  const found: FieldError[] = [];
  const falling = shape.findIndex(
    (point, index) =>
      index > 0 &&
      numberAt(shape[index - 1] ?? null, 'utilization') >= numberAt(point, 'utilization'),
  );
  if (falling > 0) {
    const value = numberAt(shape[falling] ?? null, 'utilization');
    const text = 'values must be sorted in increasing order';
    found.push(invalidValue(`${path}[${falling}].utilization`, value, text));
  }
  for (const [index, point] of shape.entries()) {
    for (const [member, max] of [
      ['utilization', 100],
      ['score', 10],
    ] as const) {
      const value = numberAt(point, member);
      if (value >= 0 && value <= max) continue;
      const text = `not in valid range [0, ${max}]`;
      found.push(invalidValue(`${path}[${index}].${member}`, value, text));
    }
  }
  return found;
}

const STRATEGIES = ['LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio'];

/** Paths begin at the arguments: upstream checks these when it makes the plugin. */
function resourcesFit(args: JsonObject): FieldError[] {
  const found: FieldError[] = [];
  const texts = (member: string): string[] =>
    listAt(args, member).filter((one) => typeof one === 'string');
  for (const [index, name] of texts('ignoredResources').entries()) {
    found.push(...labelName(name, `ignoredResources[${index}]`));
  }
  for (const [index, group] of texts('ignoredResourceGroups').entries()) {
    const path = `ignoredResourceGroups[${index}]`;
    const text = "resource group name can't contain '/'";
    if (group.includes('/')) found.push(invalidValue(path, group, text));
    found.push(...labelName(group, path));
  }
  const strategy = args['scoringStrategy'] ?? null;
  const type = textAt(strategy, 'type');
  if (!STRATEGIES.includes(type)) {
    found.push(notSupported('scoringStrategy.type', type, STRATEGIES));
  }
  for (const [index, one] of listAt(strategy, 'resources').entries()) {
    const weight = numberAt(one, 'weight');
    if (weight > 0 && weight <= 100) continue;
    const text = `resource weight of ${textAt(one, 'name')} not in valid range (0, 100]`;
    found.push(invalidValue(`scoringStrategy.resources[${index}].weight`, weight, text));
  }
  const ratio = memberAt(strategy, 'requestedToCapacityRatio');
  const path = 'scoringStrategy.requestedToCapacityRatio';
  if (type !== 'RequestedToCapacityRatio') {
    const text = 'must be nil when type is not RequestedToCapacityRatio';
    return isObject(ratio) ? [...found, forbiddenField(path, text)] : found;
  }
  if (!isObject(ratio)) {
    return [...found, required(path, 'must be specified when type is RequestedToCapacityRatio')];
  }
  return [...found, ...shapeErrors(listAt(ratio, 'shape'), `${path}.shape`)];
}

const ACTIONS = ['DoNotSchedule', 'ScheduleAnyway'];

function spreadConstraint(one: JsonValue, path: string): FieldError[] {
  const found: FieldError[] = [];
  const skew = numberAt(one, 'maxSkew');
  if (skew <= 0) found.push(invalidValue(`${path}.maxSkew`, skew, 'not in valid range (0, inf)'));
  const key = textAt(one, 'topologyKey');
  if (key === '') found.push(required(`${path}.topologyKey`, 'can not be empty'));
  else found.push(...labelName(key, `${path}.topologyKey`));
  const action = textAt(one, 'whenUnsatisfiable');
  if (action === '') found.push(required(`${path}.whenUnsatisfiable`, 'can not be empty'));
  else if (!ACTIONS.includes(action)) {
    found.push(notSupported(`${path}.whenUnsatisfiable`, action, ACTIONS));
  }
  if (memberAt(one, 'labelSelector') !== undefined) {
    const text = 'constraint must not define a selector, as they deduced for each pod';
    found.push(forbiddenField(`${path}.labelSelector`, text));
  }
  return found;
}

function topologySpread(args: JsonObject, path: string): FieldError[] {
  const type = textAt(args, 'defaultingType');
  const constraints = listAt(args, 'defaultConstraints');
  const found: FieldError[] = [];
  if (type !== 'System' && type !== 'List') {
    found.push(notSupported(`${path}.defaultingType`, type, ['System', 'List']));
  } else if (type === 'System' && constraints.length > 0) {
    const text = 'when .defaultConstraints are not empty';
    found.push(invalidValue(`${path}.defaultingType`, type, text));
  }
  const seen = new Set<string>();
  for (const [index, one] of constraints.entries()) {
    const where = `${path}.defaultConstraints[${index}]`;
    found.push(...spreadConstraint(one, where));
    const text = `{${textAt(one, 'topologyKey')}, ${textAt(one, 'whenUnsatisfiable')}}`;
    if (seen.has(text)) found.push(duplicate(where, text));
    seen.add(text);
  }
  return found;
}

function volumeBinding(args: JsonObject, path: string): FieldError[] {
  const found: FieldError[] = [];
  const seconds = numberAt(args, 'bindTimeoutSeconds');
  if (seconds < 0) {
    const text = 'invalid BindTimeoutSeconds, should not be a negative value';
    found.push(invalidValue(`${path}.bindTimeoutSeconds`, seconds, text));
  }
  if (args['shape'] !== undefined) {
    const points = listAt(args, 'shape').map((point) => ({
      Utilization: numberAt(point, 'utilization'),
      Score: numberAt(point, 'score'),
    }));
    const text =
      'unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring';
    found.push(invalidValue(`${path}.shape`, points, text));
  }
  return found;
}

function dynamicResources(args: JsonObject, path: string): FieldError[] {
  const nanosOf = (member: string): bigint => parseGoDuration(textAt(args, member)) ?? 0n;
  const found: FieldError[] = [];
  if (nanosOf('filterTimeout') < 0n) {
    const value = printed(JSON.stringify(textAt(args, 'filterTimeout')));
    found.push(invalidValue(`${path}.filterTimeout`, value, 'must be zero or positive'));
  }
  if (args['bindingTimeout'] !== undefined && nanosOf('bindingTimeout') < 1_000_000_000n) {
    const value = printed(JSON.stringify(textAt(args, 'bindingTimeout')));
    found.push(invalidValue(`${path}.bindingTimeout`, value, 'must be at least 1 second'));
  }
  return found;
}

const CHECKS: Readonly<Record<string, Check>> = {
  DefaultPreemption: preemption,
  DynamicResources: dynamicResources,
  InterPodAffinity: interPodAffinity,
  NodeAffinity: nodeAffinity,
  NodeResourcesBalancedAllocation: balancedAllocation,
  PodTopologySpread: topologySpread,
  VolumeBinding: volumeBinding,
};

const textOf = (found: FieldError | string): string =>
  typeof found === 'string' ? found : fieldErrorText(found);

/** Faults of completed arguments. */
export function argumentErrors(plugin: string, args: JsonObject, path: string): string[] {
  return (ownMember(CHECKS, plugin)?.(args, path) ?? []).map(textOf);
}

/** Faults of arguments that show only when a plugin is made. */
export function constructionErrors(plugin: string, args: JsonObject): string[] {
  return plugin === 'NodeResourcesFit' ? resourcesFit(args).map(textOf) : [];
}

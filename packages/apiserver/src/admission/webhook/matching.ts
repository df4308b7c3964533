/** Which writes a webhook or a policy is about: rules, selectors, versions of the same objects. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import {
  labelSelectorOf,
  matchesLabels,
  NOTHING,
  type LabelSelector,
} from '@megaplane/machinery/selectors';
import { allServed, type Served } from '../../storage/served.ts';
import { readNamespace } from '../../lister/stored-namespaces.ts';
import type { Admitted, Operation } from '../../registry/rest/admitted.ts';

/** One entry of `rules`. */
export interface ResourceRule {
  readonly operations: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  readonly versions: ReadonlySet<string>;
  readonly resources: readonly { readonly resource: string; readonly subresource: string }[];
  readonly scope: string;
  /** Empty: all names. */
  readonly names: ReadonlySet<string>;
}

/** What decides beyond the rules. */
export interface Selectors {
  readonly namespaces: LabelSelector;
  readonly objects: LabelSelector;
}

function textsOf(value: JsonValue | undefined): ReadonlySet<string> {
  const list: readonly JsonValue[] = Array.isArray(value) ? value : [];
  return new Set(list.filter((one) => typeof one === 'string'));
}

export function readRules(list: readonly JsonValue[]): readonly ResourceRule[] {
  return list.filter(isObject).map((rule) => ({
    operations: textsOf(rule['operations']),
    groups: textsOf(rule['apiGroups']),
    versions: textsOf(rule['apiVersions']),
    resources: Array.from(textsOf(rule['resources']), (text) => {
      const slash = text.indexOf('/');
      if (slash < 0) return { resource: text, subresource: '' };
      return { resource: text.slice(0, slash), subresource: text.slice(slash + 1) };
    }),
    scope: stringAt(rule, 'scope') || '*',
    names: textsOf(rule['resourceNames']),
  }));
}

/** A selector that cannot be read matches nothing; validation does not let one in. */
function selectorOf(value: JsonObject | undefined): LabelSelector {
  const parsed = labelSelectorOf(value ?? {});
  return 'error' in parsed ? NOTHING : parsed.value;
}

export function readSelectors(owner: JsonObject): Selectors {
  return {
    namespaces: selectorOf(objectAt(owner, 'namespaceSelector')),
    objects: selectorOf(objectAt(owner, 'objectSelector')),
  };
}

function has(set: ReadonlySet<string>, value: string): boolean {
  return set.has('*') || set.has(value);
}

/** Whether the rule is for this operation on this resource, whatever the object. */
export function isRuleFor(
  rule: ResourceRule,
  { resource }: Served,
  operation: Operation,
  subresource: string,
): boolean {
  if (!has(rule.operations, operation)) return false;
  if (!has(rule.groups, resource.group) || !has(rule.versions, resource.version)) return false;
  if (rule.scope === 'Namespaced' && !resource.namespaced) return false;
  if (rule.scope === 'Cluster' && resource.namespaced) return false;
  return rule.resources.some(
    (one) =>
      (one.resource === '*' || one.resource === resource.resource) &&
      (one.subresource === '*' || one.subresource === subresource),
  );
}

/**
 * The resource as the first matching rule knows it: the one of the request, or (for `Equivalent`)
 * another version of the same objects. Null where no rule is for it.
 */
export function targetOf(
  rules: readonly ResourceRule[],
  isEquivalent: boolean,
  served: Served,
  operation: Operation,
  subresource: string,
): { readonly target: Served; readonly rules: readonly ResourceRule[] } | null {
  const own = rules.filter((rule) => isRuleFor(rule, served, operation, subresource));
  if (own.length > 0) return { target: served, rules: own };
  if (!isEquivalent) return null;
  const others = sameObjects(served);
  if (others.length === 0) return null;
  for (const rule of rules) {
    const target = others.find((one) => isRuleFor(rule, one, operation, subresource));
    if (target !== undefined) return { target, rules: [rule] };
  }
  return null;
}

/** Other resources that show the same stored objects. */
function sameObjects(served: Served): readonly Served[] {
  if (!served.stored) return [];
  const all = served.custom === null ? allServed() : served.custom.kind.all();
  return all.filter((one) => one !== served && one.prefix === served.prefix);
}

/** Whether the objects' labels, and those of their namespace, are selected. */
export function isSelected({ namespaces, objects }: Selectors, write: Admitted): boolean {
  return isObjectSelected(objects, write) && isNamespaceSelected(namespaces, write);
}

function isEmpty(selector: LabelSelector): boolean {
  return selector.requirements.length === 0 && selector.nothing !== true;
}

function isObjectSelected(selector: LabelSelector, { object, previous }: Admitted): boolean {
  if (isEmpty(selector)) return true;
  return [object, previous].some(
    (one) => one !== null && matchesLabels(selector, objectAt(one, 'metadata', 'labels')),
  );
}

function isNamespaceSelected(selector: LabelSelector, write: Admitted): boolean {
  if (isEmpty(selector)) return true;
  const { served, call, object, previous, operation, subresource } = write;
  const isNamespace = served.resource.storage.name === 'namespaces';
  if (!served.resource.namespaced && !isNamespace) return true;
  // of a namespace that is written itself, its new labels count; of all else, the stored ones
  const isWritten = operation !== 'DELETE' && subresource === '';
  const own = isWritten ? object : previous;
  const found = isNamespace ? own : readNamespace(write.world, call.info.namespace);
  return matchesLabels(selector, objectAt(found ?? {}, 'metadata', 'labels'));
}

/** Whether the rules that name objects name this one. */
export function isNamed(rules: readonly ResourceRule[], name: string): boolean {
  return rules.some(({ names }) => names.size === 0 || names.has(name));
}

/** Resources that configure admission itself are never shown to webhooks and policies. */
export function isExempt({ resource }: Served): boolean {
  return resource.group === 'admissionregistration.k8s.io';
}

/** `listAt` of rules, for callers that have the owner. */
export function rulesAt(owner: JsonObject, field: string): readonly ResourceRule[] {
  return readRules(listAt(owner, field));
}

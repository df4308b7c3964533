/**
 * Whether some rules give all that others give, and what is missing (upstream's
 * `component-helpers/auth/rbac/validation`). Pure.
 */
import type { PolicyRule } from './rbac.ts';

const NOTHING: PolicyRule = { verbs: [], groups: [], resources: [], names: [], paths: [] };

/** The parts of `wanted` that no single rule of `held` gives, in upstream's words, sorted. */
export function missingRights(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): readonly string[] {
  const missing = wanted
    .flatMap(partsOf)
    .filter((part) => !held.some((rule) => covers(rule, part)));
  return Array.from(new Set(compacted(missing).map(textOf))).toSorted();
}

/** A rule as rules of one verb for one thing. */
function partsOf(rule: PolicyRule): PolicyRule[] {
  const parts: PolicyRule[] = [];
  for (const group of rule.groups) {
    for (const resource of rule.resources) {
      for (const verb of rule.verbs) {
        const part = { ...NOTHING, groups: [group], resources: [resource], verbs: [verb] };
        if (rule.names.length === 0) parts.push(part);
        else parts.push(...rule.names.map((name) => ({ ...part, names: [name] })));
      }
    }
  }
  for (const path of rule.paths) {
    for (const verb of rule.verbs) parts.push({ ...NOTHING, paths: [path], verbs: [verb] });
  }
  return parts;
}

function covers(rule: PolicyRule, part: PolicyRule): boolean {
  const has = (own: readonly string[], asked: readonly string[]): boolean =>
    own.includes('*') || asked.every((one) => own.includes(one));
  if (!has(rule.verbs, part.verbs) || !has(rule.groups, part.groups)) return false;
  if (!rule.resources.includes('*') && !part.resources.every((one) => covered(rule, one))) {
    return false;
  }
  const isNamed = rule.names.length > 0;
  const isNameHeld = part.names.length > 0 && part.names.every((one) => rule.names.includes(one));
  if (isNamed && !isNameHeld) return false;
  return part.paths.every((path) => rule.paths.some((own) => coversPath(own, path)));
}

function covered(rule: PolicyRule, resource: string): boolean {
  if (rule.resources.includes(resource)) return true;
  const slash = resource.indexOf('/');
  return slash >= 0 && rule.resources.includes(`*${resource.slice(slash)}`);
}

function coversPath(own: string, path: string): boolean {
  return own === path || (own.endsWith('*') && path.startsWith(own.replace(/\*+$/, '')));
}

/** Parts that differ in their verbs alone, as one rule. */
function compacted(parts: readonly PolicyRule[]): PolicyRule[] {
  const others: PolicyRule[] = [];
  const simple = new Map<string, PolicyRule>();
  for (const part of parts) {
    if (part.paths.length > 0) {
      others.push(part);
      continue;
    }
    const key = JSON.stringify([part.groups, part.resources, part.names]);
    const own = simple.get(key);
    const verbs = [...(own?.verbs ?? []), ...part.verbs];
    simple.set(key, { ...part, verbs });
  }
  return [...others, ...simple.values()];
}

function textOf(rule: PolicyRule): string {
  const parts = [
    ['APIGroups', rule.groups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.paths],
    ['ResourceNames', rule.names],
    ['Verbs', rule.verbs],
  ] as const;
  const texts = parts
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => `${name}:[${values.map((one) => JSON.stringify(one)).join(' ')}]`);
  return `{${texts.join(', ')}}`;
}

/**
 * Custom kinds in aggregated discovery, as text right from what is kept of their definitions: ten
 * thousand of them are told without anything being made for each.
 */
import type { CustomKind } from './custom-kind.ts';
import { verbsOf } from './custom-kind.ts';
import type { VersionFacts } from '../definition/definition-facts.ts';
import type { Kinds } from './kind-registry.ts';

const PART_VERBS = '["get","patch","update"]';

/** A group that has custom kinds only; '' where nothing of it is served. */
export function customGroupText(kinds: Kinds, group: string): string {
  const versions = kinds.versionsOf(group);
  if (versions.length === 0) return '';
  const all = kinds
    .kindsOf(group)
    .toSorted((one, other) => (one.facts.plural < other.facts.plural ? -1 : 1));
  const texts = versions.map((version) => versionText(all, group, version));
  return `{"metadata":{"name":${JSON.stringify(group)}},"versions":[${texts.join()}]}`;
}

function versionText(kinds: readonly CustomKind[], group: string, version: string): string {
  const texts: string[] = [];
  for (const kind of kinds) {
    const facts = kind.facts.versions.find((one) => one.name === version);
    if (facts?.isServed === true) texts.push(resourceText(kind, facts, group));
  }
  return `{"version":"${version}","resources":[${texts.join()}],"freshness":"Current"}`;
}

function resourceText({ facts }: CustomKind, version: VersionFacts, group: string): string {
  const { names, isNamespaced, plural } = facts;
  const { shortNames, categories } = names;
  const of = `"group":"${group}","version":"${version.name}","kind":${JSON.stringify(names.kind)}`;
  let text =
    `{"resource":"${plural}","responseKind":{${of}},` +
    `"scope":"${isNamespaced ? 'Namespaced' : 'Cluster'}",` +
    `"singularResource":${JSON.stringify(names.singular)},` +
    `"verbs":${JSON.stringify(verbsOf(facts))}`;
  if (shortNames.length > 0) text += `,"shortNames":${JSON.stringify(shortNames)}`;
  if (categories.length > 0) text += `,"categories":${JSON.stringify(categories)}`;
  const parts: string[] = [];
  if (version.hasStatus) parts.push(partText('status', of));
  if (version.scale !== null) parts.push(partText('scale', SCALE));
  return parts.length === 0 ? `${text}}` : `${text},"subresources":[${parts.join()}]}`;
}

const SCALE = '"group":"autoscaling","version":"v1","kind":"Scale"';

function partText(name: string, of: string): string {
  return `{"subresource":"${name}","responseKind":{${of}},"verbs":${PART_VERBS}}`;
}

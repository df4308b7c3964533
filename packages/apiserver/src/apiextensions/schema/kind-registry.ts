/**
 * The kinds that one server serves: the built-in ones, which all servers of the process share, and
 * those of its CustomResourceDefinitions, which come and go.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { findKind, groups, type Group, type Resource } from '@megaplane/machinery/kinds';
import { groupVersionOf } from '@megaplane/machinery/kinds';
import {
  allServed,
  findServed,
  isGroupServed,
  servedOf,
  type Served,
} from '../../storage/served.ts';
import type { Storage } from '../../storage/storage.ts';
import type { CustomKind } from './custom-kind.ts';
import { compareVersions } from '../definition/definition-facts.ts';

const NONE: readonly string[] = [];

/** Definitions that a start found and that were not read yet. */
export interface UnreadKinds {
  /** Reads the definition of that name, if there is one. */
  one(name: string): void;
  /** Reads all that are left. */
  rest(): void;
}

/** The custom kinds of one group. */
class CustomGroup {
  readonly byPlural = new Map<string, CustomKind>();
  /** Name of a resource (plural, singular, short) or of a kind -> the definition that has it. */
  readonly resourceOwners = new Map<string, string>();
  readonly kindOwners = new Map<string, string>();
  /** Counts up with every change of a kind of the group. */
  generation = 0;
  /** Those that are served, and in which versions; null until somebody asks. */
  active: CustomKind[] | null = null;
  versions: string[] | null = null;
  /** Whether built-in kinds have the name: their paths lead nowhere else, as upstream. */
  readonly isHidden: boolean;

  constructor(name: string) {
    this.isHidden = isGroupServed(name);
  }
}

type ConvertTo = (
  target: Served,
  object: JsonObject,
  then: (made: JsonObject | string) => void,
) => void;

export class Kinds {
  readonly #groups = new Map<string, CustomGroup>();
  readonly #listeners: ((group: string) => void)[] = [];
  /** Called where a kind is asked for that is not known: there may be news that nobody has read. */
  catchUp: () => void = () => {};
  /** Called when this server has written the definition of that name. */
  written: (name: string) => void = () => {};
  /** The storage of versions that a webhook makes; null for all others. */
  viewOf: (served: Served) => Storage | null = () => null;
  /** Has a kind's webhook bring an object into the version of `target`; a text says why not. */
  convertTo: ConvertTo = (_, __, then) => then('this server converts no objects');
  #unread: UnreadKinds | null = null;
  #waiting: (() => void)[] = [];
  #count = 0;

  /** From now on kinds are read when they are asked for, until it is called with null. */
  set unread(unread: UnreadKinds | null) {
    this.#unread = unread;
    if (unread !== null) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const then of waiting) then();
  }

  /** Calls `then` when every kind is known: at once, or in a later turn. */
  whenWhole(then: () => void): void {
    if (this.#unread === null) then();
    else this.#waiting.push(then);
  }

  /** Custom kinds, of all states. */
  get size(): number {
    this.#unread?.rest();
    return this.#count;
  }

  /** By what a URL names; undefined where it is unknown or not served. */
  find(group: string, version: string, plural: string): Served | undefined {
    const found = findServed(group, version, plural);
    if (found !== undefined || !group.includes('.')) return found;
    return this.#findCustom(group, version, plural) ?? this.#findLate(group, version, plural);
  }

  #findLate(group: string, version: string, plural: string): Served | undefined {
    this.catchUp();
    return this.#findCustom(group, version, plural);
  }

  #findCustom(group: string, version: string, plural: string): Served | undefined {
    const home = this.#groups.get(group);
    if (home?.isHidden === true) return undefined;
    const kind = home?.byPlural.get(plural) ?? this.#read(group, plural);
    return kind?.isActive === true ? kind.served(version) : undefined;
  }

  #read(group: string, plural: string): CustomKind | undefined {
    this.#unread?.one(`${plural}.${group}`);
    return this.#groups.get(group)?.byPlural.get(plural);
  }

  /** By what an object says of itself. */
  findKind(apiVersion: string, kind: string): Served | undefined {
    const builtin = findKind(apiVersion, kind);
    if (builtin !== undefined) return builtin.served ? servedOf(builtin) : undefined;
    const { group = '', version = '' } = groupVersionOf(apiVersion) ?? {};
    this.#unread?.rest();
    for (const one of this.#groups.get(group)?.byPlural.values() ?? []) {
      if (one.facts.names.kind === kind && one.isActive) return one.served(version);
    }
    return undefined;
  }

  /** True where a group, or a group and version, has anything that is served. */
  isGroupServed(group: string, version?: string): boolean {
    if (isGroupServed(group, version)) return true;
    for (const kind of this.kindsOf(group)) {
      if (version === undefined || kind.serves(version)) return true;
    }
    return false;
  }

  /** The custom kinds of a group that are served. */
  kindsOf(group: string): readonly CustomKind[] {
    // groups of definitions are domains
    if (group.includes('.')) this.#unread?.rest();
    const found = this.#groups.get(group);
    if (found === undefined) return [];
    return (found.active ??= [...found.byPlural.values()].filter((kind) => kind.isActive));
  }

  /** Every custom kind, served or not. */
  *custom(): Iterable<CustomKind> {
    this.#unread?.rest();
    for (const group of this.#groups.values()) yield* group.byPlural.values();
  }

  /** Groups that have custom kinds, in order of the alphabet. */
  customGroups(): string[] {
    this.#unread?.rest();
    return [...this.#groups.keys()].sort();
  }

  /** Everything that is served: the built-ins in discovery order, then custom kinds. */
  all(): Served[] {
    const found = allServed();
    for (const kind of this.custom()) if (kind.isActive) found.push(...kind.all());
    return found;
  }

  /** The versions of a group that custom kinds are served in, preferred ones first. */
  versionsOf(group: string): readonly string[] {
    // groups of definitions are domains
    if (group.includes('.')) this.#unread?.rest();
    const found = this.#groups.get(group);
    if (found === undefined) return NONE;
    return (found.versions ??= this.#versionsIn(group));
  }

  #versionsIn(group: string): string[] {
    const names = new Set(this.kindsOf(group).flatMap((kind) => kind.versions));
    return [...names].filter((name) => !isGroupServed(group, name)).sort(compareVersions);
  }

  /** One group as discovery shows it; undefined where it has nothing. */
  group(name: string): Group | undefined {
    const builtin = groups().find((one) => one.name === name);
    const versions = this.versionsOf(name).map((version) => ({
      version,
      resources: this.#resourcesOf(name, version),
    }));
    if (builtin === undefined && versions.length === 0) return undefined;
    // their APIServices have a higher priority of the version than those of built-ins
    return { name, versions: [...versions, ...(builtin?.versions ?? [])] };
  }

  #resourcesOf(group: string, version: string): Resource[] {
    return this.kindsOf(group)
      .map((kind) => kind.served(version)?.resource)
      .filter((resource) => resource !== undefined)
      .sort((one, other) => (one.resource < other.resource ? -1 : 1));
  }

  /** Counts up with every change of the group's custom kinds; 0 while it has none. */
  generationOf(group: string): number {
    this.#unread?.rest();
    return this.#groups.get(group)?.generation ?? 0;
  }

  /** Calls `listener` with the group of every kind that came, changed or went. */
  onChange(listener: (group: string) => void): void {
    this.#listeners.push(listener);
  }

  /** The kind that a definition made that was read, by `plural.group`. */
  byName(name: string): CustomKind | undefined {
    const dot = name.indexOf('.');
    return this.#groups.get(name.slice(dot + 1))?.byPlural.get(name.slice(0, dot));
  }

  /** The definition that owns a name of the group, or undefined. */
  ownerOf(group: string, what: 'resource' | 'kind', name: string): string | undefined {
    this.#unread?.rest();
    const found = this.#groups.get(group);
    return (what === 'kind' ? found?.kindOwners : found?.resourceOwners)?.get(name);
  }

  /** Gives names to a definition that is about to be written, so that no other takes them. */
  claim(group: string, what: 'resource' | 'kind', names: readonly string[], owner: string): void {
    const home = this.#home(group);
    const owners = what === 'kind' ? home.kindOwners : home.resourceOwners;
    for (const name of names) if (name !== '' && !owners.has(name)) owners.set(name, owner);
  }

  #home(group: string): CustomGroup {
    let home = this.#groups.get(group);
    if (home === undefined) this.#groups.set(group, (home = new CustomGroup(group)));
    return home;
  }

  /** Adds a kind or puts it in the place of what its definition made before. */
  set(kind: CustomKind): void {
    const { group, plural } = kind.facts;
    const home = this.#home(group);
    const previous = home.byPlural.get(plural);
    if (previous === undefined) this.#count++;
    else disown(home, previous);
    home.byPlural.set(plural, kind);
    own(home, kind);
    this.#changed(group, home);
  }

  /** Takes a kind away; gives it back, or undefined where there was none. */
  remove(name: string): CustomKind | undefined {
    const kind = this.byName(name);
    if (kind === undefined) return undefined;
    const { group, plural } = kind.facts;
    const home = this.#groups.get(group);
    if (home === undefined) return undefined;
    home.byPlural.delete(plural);
    this.#count--;
    disown(home, kind);
    if (home.byPlural.size === 0) this.#groups.delete(group);
    this.#changed(group, home);
    return kind;
  }

  #changed(group: string, home: CustomGroup): void {
    home.generation++;
    home.active = null;
    home.versions = null;
    for (const listener of this.#listeners) listener(group);
  }
}

/** Names belong to whom the status says that they were accepted for. */
function own(home: CustomGroup, { facts }: CustomKind): void {
  const { plural, singular, shortNames, kind, listKind } = facts.names;
  for (const name of [plural, singular, ...shortNames]) {
    if (name !== '' && !home.resourceOwners.has(name)) home.resourceOwners.set(name, facts.name);
  }
  for (const name of [kind, listKind]) {
    if (name !== '' && !home.kindOwners.has(name)) home.kindOwners.set(name, facts.name);
  }
}

function disown(home: CustomGroup, { facts }: CustomKind): void {
  const { plural, singular, shortNames, kind, listKind } = facts.names;
  for (const name of [plural, singular, ...shortNames]) {
    if (home.resourceOwners.get(name) === facts.name) home.resourceOwners.delete(name);
  }
  for (const name of [kind, listKind]) {
    if (home.kindOwners.get(name) === facts.name) home.kindOwners.delete(name);
  }
}

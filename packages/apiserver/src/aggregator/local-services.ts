/**
 * APIServices of what this server serves by itself: one for each group and version, as upstream's
 * autoregistration keeps them, for built-ins and for custom resources.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { groups } from '@megaplane/machinery/kinds';
import { ensure } from '../registry/rest/missing-objects.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf, rangeOf, type Served } from '../storage/served.ts';
import { EXPECT_ANY } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import { prioritiesOf } from './group-priorities.ts';
import { timestamp } from '../timestamp.ts';

const LABEL = 'kube-aggregator.kubernetes.io/automanaged';
/** The aggregator's own group is served by itself and has no object. */
const OWN_GROUP = 'apiregistration.k8s.io';
const CUSTOM_PRIORITY = 1000;
const CUSTOM_VERSION_PRIORITY = 100;

/** Keeps the objects; starts with what is stored. */
export class LocalServices {
  readonly #world: World;
  readonly #served: Served;
  /** Versions of each custom group that have an object. */
  readonly #custom = new Map<string, Set<string>>();
  readonly #changed = new Set<string>();
  #isDue = false;

  constructor(world: World) {
    this.#world = world;
    const served = findServed(OWN_GROUP, 'v1', 'apiservices');
    if (served === undefined) throw new Error('the tables have no APIServices');
    this.#served = served;
  }

  start(): void {
    const nowMs = this.#world.edge.nowMs();
    for (const object of builtinServices(nowMs)) ensure(this.#world, object);
    this.#world.kinds.whenWhole(() => this.#follow());
  }

  #follow(): void {
    this.#readStored();
    for (const group of this.#world.kinds.customGroups()) this.#changed.add(group);
    for (const group of this.#custom.keys()) this.#changed.add(group);
    this.#world.kinds.onChange((group) => {
      this.#changed.add(group);
      this.#schedule();
    });
    this.#settle();
  }

  #readStored(): void {
    const { storage } = this.#world.at(this.#served);
    const { start, end } = rangeOf(this.#served, '');
    storage.page(start, end, 0, (one) => {
      const object = decodeRow(this.#served, one, one.modRevision);
      if (stringAt(object, 'metadata', 'labels', LABEL) !== 'true') return true;
      const group = stringAt(object, 'spec', 'group');
      this.#versionsOf(group).add(stringAt(object, 'spec', 'version'));
      return true;
    });
  }

  #versionsOf(group: string): Set<string> {
    let versions = this.#custom.get(group);
    if (versions === undefined) this.#custom.set(group, (versions = new Set()));
    return versions;
  }

  /** Definitions come in bursts; their groups are looked at once for all of a turn. */
  #schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#world.edge.defer(() => {
      this.#isDue = false;
      this.#settle();
    });
  }

  #settle(): void {
    const { kinds, edge } = this.#world;
    for (const group of this.#changed) {
      const wanted = new Set(kinds.versionsOf(group));
      const present = this.#versionsOf(group);
      for (const version of wanted) {
        if (present.has(version)) continue;
        present.add(version);
        const priorities = [CUSTOM_PRIORITY, CUSTOM_VERSION_PRIORITY] as const;
        ensure(this.#world, serviceOf(group, version, 'true', priorities, edge.nowMs()));
      }
      for (const version of present) if (!wanted.has(version)) this.#remove(group, version);
      if (present.size === 0) this.#custom.delete(group);
    }
    this.#changed.clear();
  }

  #remove(group: string, version: string): void {
    this.#custom.get(group)?.delete(version);
    const { storage } = this.#world.at(this.#served);
    const key = keyOf(this.#served, '', `${version}.${group}`);
    storage.delete(key, EXPECT_ANY, () => {});
  }
}

function builtinServices(nowMs: number): JsonObject[] {
  return groups()
    .filter(({ name }) => name !== OWN_GROUP)
    .flatMap(({ name, versions }) =>
      versions.map(({ version }) =>
        serviceOf(name, version, 'onstart', prioritiesOf(name, version), nowMs),
      ),
    );
}

function serviceOf(
  group: string,
  version: string,
  managed: 'true' | 'onstart',
  [groupPriorityMinimum, versionPriority]: readonly [number, number],
  nowMs: number,
): JsonObject {
  return {
    kind: 'APIService',
    apiVersion: 'apiregistration.k8s.io/v1',
    metadata: { name: `${version}.${group}`, labels: { [LABEL]: managed } },
    spec: { ...(group === '' ? {} : { group }), version, groupPriorityMinimum, versionPriority },
    status: {
      conditions: [
        {
          type: 'Available',
          status: 'True',
          lastTransitionTime: timestamp(nowMs),
          reason: 'Local',
          message: 'Local APIServices are always available',
        },
      ],
    },
  };
}

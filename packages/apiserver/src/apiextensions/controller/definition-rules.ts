/** What CustomResourceDefinitions do beyond being stored. */
import { judgeDefinition } from '@megaplane/machinery/custom/definition';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { defineBehaviour } from '../../registry/rest/behaviour.ts';
import { finalizersOf, withMetadata } from '../../registry/rest/deletion.ts';
import { emptyRow } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import { CLEANUP_FINALIZER } from '../definition/definition-facts.ts';
import { namesAt } from '../definition/definition-names.ts';
import { nextStatus, withCondition } from '../definition/definition-status.ts';
import { timestamp } from '../../timestamp.ts';
import { DEFINITIONS_PREFIX } from '../../storage/served.ts';

const row = emptyRow();

/** Registers the rules of the kind. */
export function defineDefinitions(): void {
  defineBehaviour('customresourcedefinitions.apiextensions.k8s.io', {
    judge: judgeDefinition,
    prepareUpdate: rememberVersion,
    // a status without any is given the version that objects are stored as, as a new one is
    prepareStatus: (next) => {
      if (listAt(next, 'status', 'storedVersions').length === 0) rememberVersion(next);
    },
    claim: (next, _, { world }, done) => {
      const name = stringAt(next, 'metadata', 'name');
      done({ kind: 'held', settle: () => world.kinds.written(name), undo: () => {} });
    },
    terminate: (object, _, nowMs) => {
      if (stringAt(object, 'metadata', 'deletionTimestamp') !== '') {
        if (finalizersOf(object).length === 0) return null;
        return withMetadata(object, { deletionGracePeriodSeconds: 0 });
      }
      const finalizers = [...new Set([...finalizersOf(object), CLEANUP_FINALIZER])];
      const marked = withMetadata(object, { deletionTimestamp: timestamp(nowMs), finalizers });
      return withCondition(marked, PENDING, nowMs);
    },
  });
}

const PENDING = {
  type: 'Terminating',
  status: 'True',
  reason: 'InstanceDeletionPending',
  message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
} as const;

/** A version that objects are stored as from now on is one that there are objects of. */
function rememberVersion(next: JsonObject): void {
  const storage = listAt(next, 'spec', 'versions')
    .filter(isObject)
    .find((one) => one['storage'] === true);
  if (storage === undefined) return;
  const version = stringAt(storage, 'name');
  const stored: readonly JsonValue[] = listAt(next, 'status', 'storedVersions');
  if (stored.includes(version)) return;
  next['status'] = { ...objectAt(next, 'status'), storedVersions: [...stored, version] };
}

/** The status that a definition should have; null where it has it. */
export function statusOf(world: World, definition: JsonObject): JsonObject | null {
  const group = stringAt(definition, 'spec', 'group');
  const ownerOf = (what: 'resource' | 'kind', name: string): string | undefined => {
    const owner = world.kinds.ownerOf(group, what, name);
    return owner !== undefined && isThere(world, owner) ? owner : undefined;
  };
  return nextStatus(definition, ownerOf, world.edge.nowMs());
}

/** Names were claimed for a definition that may have failed to be written. */
function isThere({ kinds, storage }: World, name: string): boolean {
  if (kinds.byName(name) !== undefined) return true;
  return storage.get(Buffer.from(DEFINITIONS_PREFIX + name), row);
}

/** Gives a definition its names before it is read again, so that no other takes them meanwhile. */
export function claimNames({ kinds }: World, definition: JsonObject): void {
  const group = stringAt(definition, 'spec', 'group');
  const owner = stringAt(definition, 'metadata', 'name');
  const names = namesAt(objectAt(definition, 'status', 'acceptedNames'));
  kinds.claim(group, 'resource', [names.plural, names.singular, ...names.shortNames], owner);
  kinds.claim(group, 'kind', [names.kind, names.listKind], owner);
}

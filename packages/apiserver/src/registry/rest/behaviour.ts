/**
 * What a kind does beyond being stored: the few rules that no table holds. A kind without an entry
 * behaves as the tables say.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import { podGraceSeconds, type DeletionRules } from './deletion.ts';
import type { Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import type { DeleteOptions } from '../../request/options/delete-options.ts';
import type { RequestScope } from '../../lister/request-scope.ts';
import type { Services } from './services.ts';

/** Each rule changes the object in place, or refuses. Absent rules do nothing. */
export interface Behaviour {
  /** What upstream does while it decodes: comes before defaults, and counts as the client's own. */
  readonly startCreate?: (object: JsonObject, context: RuleContext) => void;
  /** The same for an update of the main resource. */
  readonly startUpdate?: (next: JsonObject) => void;
  /** A generateName is the name, with nothing behind it. */
  readonly isNamedAsPrefix?: true;
  /** After defaults: what a new object starts as, by the server's own hand. */
  readonly prepareCreate?: (object: JsonObject, context: RuleContext) => void;
  /**
   * Before an object is validated as a whole: may refuse it, and give it what it needs (addresses,
   * ports); `previous` is null for a new one.
   */
  readonly preflight?: (
    object: JsonObject,
    previous: JsonObject | null,
    context: RuleContext,
  ) => Status | null;
  /** Long work before an object is validated, in steps: makes validating it short. */
  readonly judge?: (object: JsonObject, previous: JsonObject | null) => Iterator<void>;
  /** As `preflight` for an update of the status. */
  readonly preflightStatus?: (
    next: JsonObject,
    previous: JsonObject,
    context: RuleContext,
  ) => Status | null;
  /** Before an update of the main resource is compared with what is stored. */
  readonly prepareUpdate?: (next: JsonObject, previous: JsonObject, context: RuleContext) => void;
  /**
   * How changes are counted as generations. `early`: what is dropped later counts too; `exact`: so
   * do empty lists, which are not stored; `late`: from the first change on, from what was sent.
   */
  readonly counting?: 'early' | 'exact' | 'late';
  /** Before an update of the status. */
  readonly prepareStatus?: (next: JsonObject, previous: JsonObject, context: RuleContext) => void;
  /** What an update by another subresource leaves as it was, by its name: it is nobody's. */
  readonly keepRest?: Readonly<
    Record<string, (next: JsonObject, previous: JsonObject, context: RuleContext) => void>
  >;
  /** Before an update by another subresource, by its name. */
  readonly prepareParts?: Readonly<
    Record<string, (next: JsonObject, previous: JsonObject, context: RuleContext) => void>
  >;
  /** The last step of a valid create: what costs something (addresses, ports). */
  readonly allocate?: (object: JsonObject, context: RuleContext) => Status | null;
  /** Whether the object may be deleted at all. */
  readonly admitDelete?: (object: JsonObject, context: RuleContext) => Status | null;
  /**
   * For kinds whose deletion is a life of its own (namespaces): the object as it stays while it
   * ends, or null where it can go now. Comes before the common rules.
   */
  readonly terminate?: (
    object: JsonObject,
    options: DeleteOptions,
    nowMs: number,
  ) => JsonObject | null;
  /** An update that ends an object by rules of its own kind. */
  readonly endsAfterUpdate?: (previous: JsonObject, next: JsonObject) => boolean;
  /**
   * Claims what was allocated, in records of their own, before the object is written; `previous` is
   * null at a creation. Whoever finds something taken allocates anew.
   */
  readonly claim?: (
    next: JsonObject,
    previous: JsonObject | null,
    context: RuleContext,
    done: (claim: Claim) => void,
  ) => void;
  /** What was allocated for an object that is gone. */
  readonly release?: (object: JsonObject, world: World) => void;
  /** Status of a new object is kept as sent. */
  readonly keepsStatusAtCreate?: boolean;
  /** DELETE answers the object, not a Status. */
  readonly returnsDeleted?: boolean;
  readonly deletion?: DeletionRules;
  /** Told when the default of propagation decides what happens to dependents. */
  readonly deleteWarning?: string;
}

export const PLAIN_DELETION: DeletionRules = { graceSeconds: null, orphansByDefault: false };
export const POD_DELETION: DeletionRules = {
  graceSeconds: podGraceSeconds,
  orphansByDefault: false,
};
export const ORPHANING_DELETION: DeletionRules = { graceSeconds: null, orphansByDefault: true };
export const UNCOLLECTED_DELETION: DeletionRules = { ...PLAIN_DELETION, isUncollected: true };

const NOTHING: Behaviour = {};

/** Rules by `resource` or `resource.group` (the name of the storage). */
const rules = new Map<string, Behaviour>();

/** Gives a kind its rules; later ones are added to earlier ones. */
export function defineBehaviour(storageName: string, behaviour: Behaviour): void {
  rules.set(storageName, { ...rules.get(storageName), ...behaviour });
}

const UNCLAIMED: Claim = { kind: 'held', settle: () => {}, undo: () => {} };

/** Claims what `next` needs, where its kind needs claims at all. */
export function claimFor(
  context: RuleContext,
  next: JsonObject,
  previous: JsonObject | null,
  done: (claim: Claim) => void,
): void {
  const { claim } = behaviourOf(context.served);
  if (claim === undefined) done(UNCLAIMED);
  else claim(next, previous, context, done);
}

export function behaviourOf(served: Served): Behaviour {
  return rules.get(served.resource.storage.name) ?? NOTHING;
}

/** What a claim comes to. After `taken`, nothing is held. */
export type Claim =
  | { readonly kind: 'taken'; readonly status: Status }
  | {
      readonly kind: 'held';
      /** The Service was written: what only its previous state had is given back. */
      readonly settle: () => void;
      /** It was not: what was claimed is given back. */
      readonly undo: () => void;
    };

/** Where a rule runs: whose request it is and what it may read. */
export interface RuleContext extends RequestScope {
  readonly services: Services;
}

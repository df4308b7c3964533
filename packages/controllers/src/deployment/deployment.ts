/**
 * A Deployment decides what to do next. Pure: from the objects as they are seen to a list of
 * effects, to be carried out in order; when one fails the rest is dropped and all is decided anew.
 * Changes that were decided count as done for the decisions after them.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { findCondition, mergeOf, withCondition } from '../framework/conditions.ts';
import {
  annotate,
  desiredAnnotation,
  nextRevision,
  compareRevisions,
  newReplicaSet,
} from './deployment-revisions.ts';
import { REVISION, revisionAnnotations, revisionNumber } from './deployment-revisions.ts';
import { sizeAnnotations, splitSets } from './deployment-revisions.ts';
import { rollBack, rollbackRevision, type Rollback } from './deployment-rollback.ts';
import { newSetReplicas, proportionalSizes } from './deployment-scaling.ts';
import { byAge, conditionsOf, countOf, deadlineSeconds, isPaused } from './deployment-spec.ts';
import { isRecreate, maxUnavailable, nameOf, wantedReplicas } from './deployment-spec.ts';
import {
  condition,
  countedStatus,
  deadlineInMs,
  isComplete,
  PROGRESSING,
  rolloutStatus,
  TIMED_OUT,
} from './deployment-status.ts';
import { replicasOf } from '../replicaset/replicaset.ts';

export type DeploymentEffect =
  /** A merge patch of a ReplicaSet; `event` is told when it is written. */
  | { readonly kind: 'change'; readonly name: string; readonly patch: JsonObject; event?: string }
  | { readonly kind: 'create'; readonly set: JsonObject }
  | { readonly kind: 'delete'; readonly name: string }
  /** A merge patch of the Deployment's status, with annotations where they change. */
  | { readonly kind: 'status'; readonly patch: JsonObject }
  | ({ readonly kind: 'rollback' } & Rollback)
  | { readonly kind: 'again'; readonly afterMs: number };

export interface DeploymentView {
  readonly deployment: JsonObject;
  /** The ReplicaSets that it controls; decoded for this round, they are written into. */
  readonly sets: readonly JsonObject[];
  /** Whether the ReplicaSet with a uid has pods that have not ended, going ones included. */
  hasPods(uid: string): boolean;
  /** Name of the set that was made and that no status has told of yet. */
  readonly untold: string | undefined;
}

export function planDeployment(view: DeploymentView, nowMs: number): DeploymentEffect[] {
  const plan = new Plan(view, nowMs);
  plan.decide();
  return plan.effects;
}

const isActive = (set: JsonObject): boolean => replicasOf(set) > 0;

class Plan {
  readonly effects: DeploymentEffect[] = [];
  readonly #view: DeploymentView;
  readonly #deployment: JsonObject;
  readonly #nowMs: number;
  readonly #old: JsonObject[];
  #current: JsonObject | undefined;
  #conditions: readonly JsonValue[];
  #revision: string;

  constructor(view: DeploymentView, nowMs: number) {
    this.#view = view;
    this.#deployment = view.deployment;
    this.#nowMs = nowMs;
    this.#conditions = conditionsOf(view.deployment);
    this.#revision = stringAt(view.deployment, 'metadata', 'annotations', REVISION);
    const { current, old } = splitSets(view.deployment, view.sets);
    this.#current = current;
    this.#old = old;
  }

  get #all(): JsonObject[] {
    return this.#current === undefined ? this.#old : [...this.#old, this.#current];
  }

  decide(): void {
    const deployment = this.#deployment;
    if (stringAt(deployment, 'metadata', 'deletionTimestamp') !== '') {
      this.#syncRevision();
      return this.#finish(false);
    }
    this.#notePause();
    const revision = rollbackRevision(deployment);
    if (!isPaused(deployment) && revision !== undefined) return this.#rollBack(revision);
    if (isPaused(deployment) || this.#isScaled()) {
      this.#syncRevision();
      this.#scale();
      if (isPaused(deployment) && revision === undefined) this.#cleanUp();
      return this.#finish(false);
    }
    if (isRecreate(deployment)) this.#recreate();
    else this.#roll();
    return this.#finish(true);
  }

  /** All else is decided when the Deployment that is written now is seen. */
  #rollBack(revision: bigint): void {
    this.#ensureCurrent();
    const made = rollBack(this.#deployment, this.#all, revision);
    this.effects.push({ kind: 'rollback', ...made });
  }

  /** A pause stops the deadline; its end starts it anew. */
  #notePause(): void {
    const known = findCondition(this.#conditions, PROGRESSING);
    const reason = stringAt(known, 'reason');
    if (deadlineSeconds(this.#deployment) === undefined || reason === TIMED_OUT) return;
    const paused = isPaused(this.#deployment);
    if (paused === (reason === 'DeploymentPaused')) return;
    const made = paused
      ? condition(PROGRESSING, 'Unknown', 'DeploymentPaused', 'Deployment is paused', this.#nowMs)
      : condition(
          PROGRESSING,
          'Unknown',
          'DeploymentResumed',
          'Deployment is resumed',
          this.#nowMs,
        );
    this.#conditions = withCondition(this.#conditions, made);
  }

  /** Whether the Deployment's size is another than when its sets were scaled. */
  #isScaled(): boolean {
    return this.#all.some((set) => {
      const desired = desiredAnnotation(set);
      return isActive(set) && desired !== undefined && desired !== replicasOf(this.#deployment);
    });
  }

  /** Brings the annotations of the new set, if there is one, up to date. */
  #syncRevision(): void {
    const set = this.#current;
    if (set === undefined) return;
    const deployment = this.#deployment;
    const revision = nextRevision(this.#old);
    const annotations = revisionAnnotations(deployment, set, revision);
    const minReadySeconds = numberAt(deployment, 'spec', 'minReadySeconds');
    const isOtherMinimum = numberAt(set, 'spec', 'minReadySeconds') !== minReadySeconds;
    if (Object.keys(annotations).length > 0 || isOtherMinimum) {
      annotate(set, annotations);
      const patch: JsonObject = { metadata: { annotations } };
      if (isOtherMinimum) patch['spec'] = { minReadySeconds };
      this.effects.push({ kind: 'change', name: nameOf(set), patch });
    }
    this.#revision = String(revisionNumber(set));
    if (nameOf(set) === this.#view.untold) this.#noteCreated(set);
    else this.#noteProgress('FoundNewReplicaSet', `Found new replica set "${nameOf(set)}"`, true);
  }

  #noteCreated(set: JsonObject): void {
    const message = `Created new replica set "${nameOf(set)}"`;
    this.#noteProgress('NewReplicaSetCreated', message, false);
  }

  #noteProgress(reason: string, message: string, isOnlyFirst: boolean): void {
    if (deadlineSeconds(this.#deployment) === undefined) return;
    if (isOnlyFirst && findCondition(this.#conditions, PROGRESSING) !== undefined) return;
    const made = condition(PROGRESSING, 'True', reason, message, this.#nowMs);
    this.#conditions = withCondition(this.#conditions, made);
  }

  #ensureCurrent(): JsonObject {
    if (this.#current !== undefined) {
      this.#syncRevision();
      return this.#current;
    }
    const set = newReplicaSet(this.#deployment, nextRevision(this.#old));
    this.#setSize(set, newSetReplicas(this.#deployment, [...this.#old, set], set));
    this.effects.push({ kind: 'create', set });
    this.#current = set;
    this.#revision = String(revisionNumber(set));
    this.#noteCreated(set);
    return set;
  }

  #setSize(set: JsonObject, replicas: number): void {
    set['spec'] = { ...objectAt(set, 'spec'), replicas };
  }

  /** Scales a set, with the annotations that tell for what size; true where the size changes. */
  #scaleTo(set: JsonObject, replicas: number): boolean {
    const before = replicasOf(set);
    const annotations = sizeAnnotations(this.#deployment, set);
    if (before === replicas && Object.keys(annotations).length === 0) return false;
    annotate(set, annotations);
    const patch: JsonObject = { metadata: { annotations } };
    if (before === replicas) {
      this.effects.push({ kind: 'change', name: nameOf(set), patch });
      return false;
    }
    this.#setSize(set, replicas);
    patch['spec'] = { replicas };
    const verb = before < replicas ? 'up' : 'down';
    const event = `Scaled ${verb} replica set ${nameOf(set)} to ${replicas} from ${before}`;
    this.effects.push({ kind: 'change', name: nameOf(set), patch, event });
    return true;
  }

  #scaleIfOther(set: JsonObject, replicas: number): boolean {
    return replicasOf(set) !== replicas && this.#scaleTo(set, replicas);
  }

  /** After a change of the Deployment's size: all that is left, or all in proportion. */
  #scale(): void {
    const deployment = this.#deployment;
    const replicas = replicasOf(deployment);
    const active = this.#all.filter(isActive);
    const latest = this.#current ?? this.#old.at(-1);
    const only = active.length === 0 ? latest : active.length === 1 ? active[0] : undefined;
    if (only !== undefined) {
      this.#scaleIfOther(only, replicas);
      return;
    }
    if (active.length === 0) return;
    if (this.#isSaturated()) {
      for (const set of this.#old.filter(isActive)) this.#scaleIfOther(set, 0);
      return;
    }
    if (isRecreate(deployment)) return;
    for (const [set, size] of proportionalSizes(deployment, active)) this.#scaleTo(set, size);
  }

  #isSaturated(): boolean {
    const set = this.#current;
    const replicas = replicasOf(this.#deployment);
    return (
      set !== undefined &&
      desiredAnnotation(set) === replicas &&
      replicasOf(set) === replicas &&
      numberAt(set, 'status', 'availableReplicas') === replicas
    );
  }

  #recreate(): void {
    const active = this.#old.filter(isActive);
    for (const set of active) this.#scaleTo(set, 0);
    if (active.length > 0 || this.#oldPodsRun()) {
      this.#syncRevision();
      return;
    }
    this.#scaleIfOther(this.#ensureCurrent(), replicasOf(this.#deployment));
    if (this.#isComplete()) this.#cleanUp();
  }

  #oldPodsRun(): boolean {
    if (countOf(this.#old, 'replicas') > 0) return true;
    return this.#old.some((set) => this.#view.hasPods(stringAt(set, 'metadata', 'uid')));
  }

  #roll(): void {
    const set = this.#ensureCurrent();
    if (this.#scaleIfOther(set, newSetReplicas(this.#deployment, this.#all, set))) return;
    if (this.#rollOld(set)) return;
    if (this.#isComplete()) this.#cleanUp();
  }

  /** As many of the old pods go as availability allows, those first that are of no use. */
  #rollOld(current: JsonObject): boolean {
    if (wantedReplicas(this.#old) === 0) return false;
    const minAvailable = replicasOf(this.#deployment) - maxUnavailable(this.#deployment);
    const notYet = replicasOf(current) - availableOf(current);
    let surplus = wantedReplicas(this.#all) - minAvailable - notYet;
    if (surplus <= 0) return false;
    const old = this.#old.filter(isActive).toSorted(byAge);
    let isChanged = false;
    for (const set of old) {
      const useless = replicasOf(set) - availableOf(set);
      const count = Math.min(surplus, useless);
      if (count <= 0) continue;
      surplus -= count;
      isChanged = this.#scaleTo(set, replicasOf(set) - count) || isChanged;
    }
    const available = [...old, current].reduce((sum, set) => sum + availableOf(set), 0);
    let spare = available - minAvailable;
    for (const set of old) {
      const count = Math.min(spare, replicasOf(set));
      if (count <= 0) continue;
      spare -= count;
      isChanged = this.#scaleTo(set, replicasOf(set) - count) || isChanged;
    }
    return isChanged;
  }

  #isComplete(): boolean {
    return isComplete(this.#deployment, objectAt(this.#deployment, 'status') ?? {});
  }

  /** Deletes the oldest revisions above the limit, if nothing of them runs. */
  #cleanUp(): void {
    const limit = valueAt(this.#deployment, 'spec', 'revisionHistoryLimit');
    if (typeof limit !== 'number') return;
    const alive = this.#old.filter((set) => stringAt(set, 'metadata', 'deletionTimestamp') === '');
    const surplus = alive.length - limit;
    if (surplus <= 0) return;
    const byRevision = alive.toSorted((a, b) =>
      compareRevisions(revisionNumber(a), revisionNumber(b)),
    );
    for (const set of byRevision.slice(0, surplus)) {
      const isSeen =
        numberAt(set, 'metadata', 'generation') <= numberAt(set, 'status', 'observedGeneration');
      const isEmpty = numberAt(set, 'status', 'replicas') === 0 && !isActive(set);
      if (isSeen && isEmpty) this.effects.push({ kind: 'delete', name: nameOf(set) });
    }
  }

  #finish(isRollout: boolean): void {
    const deployment = this.#deployment;
    const build = isRollout ? rolloutStatus : countedStatus;
    const status = build(deployment, this.#current, this.#all, this.#conditions, this.#nowMs);
    const patch: JsonObject = {};
    const changes = mergeOf(objectAt(deployment, 'status'), status, equals);
    if (changes !== undefined) patch['status'] = changes;
    const revision = stringAt(deployment, 'metadata', 'annotations', REVISION);
    if (this.#revision !== revision && this.#revision !== '') {
      patch['metadata'] = { annotations: { [REVISION]: this.#revision } };
    }
    if (Object.keys(patch).length > 0) this.effects.push({ kind: 'status', patch });
    const afterMs = isRollout ? deadlineInMs(deployment, status, this.#nowMs) : undefined;
    if (afterMs !== undefined) this.effects.push({ kind: 'again', afterMs });
  }
}

/**
 * Pods of a set that serve and may stay: a set that has just been made smaller still counts, in its
 * status, those that are about to go, and they must not be spent a second time.
 */
function availableOf(set: JsonObject): number {
  return Math.min(replicasOf(set), numberAt(set, 'status', 'availableReplicas'));
}

/** Whether the selector takes all pods, which is a mistake that is told and not acted on. */
export function selectsEverything(deployment: JsonObject): boolean {
  const selector = objectAt(deployment, 'spec', 'selector');
  if (selector === undefined) return false;
  const labels = Object.keys(objectAt(selector, 'matchLabels') ?? {});
  return labels.length === 0 && listAt(selector, 'matchExpressions').length === 0;
}

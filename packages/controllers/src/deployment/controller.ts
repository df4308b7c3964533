/** Deployments: carries out what `planDeployment` decides. */
import { CONTENT } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { withCondition } from '../framework/conditions.ts';
import { planDeployment, selectsEverything, type DeploymentEffect } from './deployment.ts';
import { conditionsOf, deadlineSeconds, isRecreate, nameOf } from './deployment-spec.ts';
import { isSameTemplate } from './deployment-spec.ts';
import { condition, PROGRESSING } from './deployment-status.ts';
import { Expectations } from '../framework/expectations.ts';
import { controllerUid, ObjectCache } from '../framework/object-cache.ts';
import { failureOf, ownerOfObject, PodControl, revisionOf } from '../framework/pod-control.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { PHASE_SUCCEEDED } from '../columns/replica-pods.ts';
import { replicasOf } from '../replicaset/replicaset.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import type { Rolling } from '../replicaset/rolling.ts';

const WORKERS = 5;
const ROOT = '/apis/apps/v1';
/** A key that waits for its own writes to be seen is looked at again after this, come what may. */
const EXPECTATION_LOOK_MS = 300_000;
/** What failed for a conflict is tried again so often before its sets tell of a further step. */
const RETRIES_AWAITED = 4;
const never = (): boolean => true;

export interface DeploymentControllerOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly announce: Announce;
  readonly rolling: Rolling;
}

/** One round of work, and what its own writes have come to. */
interface Round {
  readonly key: string;
  readonly deployment: JsonObject;
  readonly namespace: string;
  readonly sets: ReadonlyMap<string, JsonObject>;
  /** Versions by name of set, as our writes of this round left them. */
  readonly versions: Map<string, string>;
}

interface Claim {
  readonly verb: 'adopt' | 'release';
  readonly set: JsonObject;
}

export class DeploymentController {
  readonly #options: DeploymentControllerOptions;
  readonly #control: PodControl;
  readonly #workers: Workers<string>;
  readonly #deployments: ObjectCache;
  readonly #sets: ObjectCache;
  /** Our writes to sets, and to Deployments, that are not in view yet. */
  readonly #setWrites = new Expectations();
  readonly #ownWrites = new Expectations();
  /** Sets that were made and that no status tells of yet, by the key of their Deployment. */
  readonly #untold: Map<string, string> = new Map();

  constructor(options: DeploymentControllerOptions) {
    this.#options = options;
    const { client, informers, pods } = options;
    this.#control = new PodControl(client, options.announce);
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      options.onError,
      informers.queues.queue('deployment'),
    );
    options.rolling.workOf = (uid) => this.#workOf(uid);
    this.#workers.ended = (key) => options.rolling.ended(key);
    const synced = (): void => this.#addWaiting();
    this.#deployments = new ObjectCache(
      informers,
      `${ROOT}/deployments`,
      (key, after) => this.#changed(key, after),
      synced,
    );
    this.#sets = new ObjectCache(
      informers,
      `${ROOT}/replicasets`,
      (_key, after, before) => this.#setChanged(after, before),
      synced,
    );
    pods.listen({ changed: (row, _bytes, scan) => this.#podChanged(row, scan === null) });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /** The key of the Deployment that has not done yet what follows from what it has seen. */
  #workOf(uid: string): string | undefined {
    const key = uid === '' ? undefined : this.#deployments.keyOfUid(uid);
    if (key === undefined) return undefined;
    const { queue } = this.#workers;
    const failures = queue.failuresOf(key);
    const isAtWork = queue.isDue(key) || (failures > 0 && failures <= RETRIES_AWAITED);
    return isAtWork ? key : undefined;
  }

  #addWaiting(): void {
    for (const key of this.#setWrites.keys()) this.#workers.add(key);
    for (const key of this.#ownWrites.keys()) this.#workers.add(key);
  }

  #changed(key: string, after: JsonObject | undefined): void {
    if (after !== undefined) return this.#workers.add(key);
    this.#setWrites.forget(key);
    this.#ownWrites.forget(key);
    this.#untold.delete(key);
    return undefined;
  }

  #setChanged(after: JsonObject | undefined, before: JsonObject | undefined): void {
    for (const set of [before, after]) {
      const owner = set === undefined ? '' : controllerUid(set);
      const key = owner === '' ? undefined : this.#deployments.keyOfUid(owner);
      if (key !== undefined) this.#workers.add(key);
    }
    if (after === undefined || controllerUid(after) !== '') return;
    for (const key of this.#deployments.inNamespace(stringAt(after, 'metadata', 'namespace'))) {
      const deployment = this.#deployments.get(key);
      if (deployment !== undefined && isSelected(deployment, after)) this.#workers.add(key);
    }
  }

  /** An update by Recreate waits for the last of the old pods. */
  #podChanged(row: number, isGone: boolean): void {
    const { pods } = this.#options.pods;
    if (pods.ownerBefore < 0) return;
    if (!isGone && pods.phaseOf(row) < PHASE_SUCCEEDED) return;
    const set = this.#sets.keyOfUid(pods.uidOf(pods.ownerBefore));
    const object = set === undefined ? undefined : this.#sets.get(set);
    const key = object && this.#deployments.keyOfUid(controllerUid(object));
    const deployment = key === undefined ? undefined : this.#deployments.get(key);
    if (key !== undefined && deployment !== undefined && isRecreate(deployment)) {
      this.#workers.add(key);
    }
  }

  /** Decides before it waits for anything: each status of a set is a step of its own. */
  async #work(key: string): Promise<WorkResult> {
    const deployment = this.#deployments.get(key);
    if (deployment === undefined) return 'done';
    const nowMs = this.#options.client.timers.wallMs();
    if (!this.#setWrites.isMet(key, this.#sets.informer.revision, never, nowMs)) {
      return { againMs: EXPECTATION_LOOK_MS };
    }
    if (selectsEverything(deployment)) return this.#refuse(deployment);
    const claims = this.#claimsOf(deployment);
    if (claims.length > 0) {
      const isDone = await this.#claim(key, deployment, claims);
      return isDone ? { againMs: EXPECTATION_LOOK_MS } : 'retry';
    }
    const namespace = stringAt(deployment, 'metadata', 'namespace');
    const sets = this.#setsOf(deployment);
    const view = { deployment, sets, hasPods: this.#hasPods, untold: this.#untold.get(key) };
    const effects = planDeployment(view, nowMs);
    return this.#carryOutAll({ key, deployment, namespace }, sets, effects, nowMs);
  }

  async #carryOutAll(
    about: Pick<Round, 'key' | 'deployment' | 'namespace'>,
    sets: readonly JsonObject[],
    effects: readonly DeploymentEffect[],
    nowMs: number,
  ): Promise<WorkResult> {
    const versions: Map<string, string> = new Map(
      sets.map((set) => [nameOf(set), stringAt(set, 'metadata', 'resourceVersion')]),
    );
    const byName = new Map(sets.map((set) => [nameOf(set), set]));
    const round = { ...about, sets: byName, versions };
    let result: WorkResult = 'done';
    for (const effect of effects) {
      if (effect.kind === 'again') result = { againMs: effect.afterMs };
      else if (!(await this.#carryOut(round, effect, nowMs))) return 'retry';
    }
    return result;
  }

  readonly #hasPods = (uid: string): boolean => {
    const { pods } = this.#options.pods;
    for (let row = pods.firstOfOwner(pods.findOwner(uid)); row >= 0; row = pods.nextOfOwner(row)) {
      if (pods.phaseOf(row) < PHASE_SUCCEEDED) return true;
    }
    return false;
  };

  #setsOf(deployment: JsonObject): JsonObject[] {
    const metadata = objectAt(deployment, 'metadata');
    const namespace = stringAt(metadata, 'namespace');
    const keys = [...this.#sets.controlledBy(stringAt(metadata, 'uid'), namespace)];
    return keys.map((key) => this.#sets.get(key)).filter((set) => set !== undefined);
  }

  #refuse(deployment: JsonObject): WorkResult {
    const message = 'This deployment is selecting all pods. A non-empty selector is required.';
    this.#tell(deployment, 'Warning', 'SelectingAll', message);
    return 'done';
  }

  #tell(deployment: JsonObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { namespace, name, uid } = ownerOfObject('apps/v1', 'Deployment', deployment);
    this.#options.announce('Deployment', namespace, name, type, reason, message, uid);
  }

  /** Sets to let go of as they no longer match, and those to take that do and are nobody's. */
  #claimsOf(deployment: JsonObject): Claim[] {
    const namespace = stringAt(deployment, 'metadata', 'namespace');
    const stray = this.#setsOf(deployment).filter((set) => !isSelected(deployment, set));
    const isDeleting = stringAt(deployment, 'metadata', 'deletionTimestamp') !== '';
    const orphans: JsonObject[] = [];
    for (const set of isDeleting ? [] : this.#sets.controlledBy('', namespace)) {
      const object = this.#sets.get(set);
      if (object === undefined || !isSelected(deployment, object)) continue;
      if (stringAt(object, 'metadata', 'deletionTimestamp') === '') orphans.push(object);
    }
    return [
      ...stray.map((set) => ({ set, verb: 'release' as const })),
      ...orphans.map((set) => ({ set, verb: 'adopt' as const })),
    ];
  }

  /** True where it is done. */
  async #claim(key: string, deployment: JsonObject, claims: readonly Claim[]): Promise<boolean> {
    const owner = ownerOfObject('apps/v1', 'Deployment', deployment);
    const isAdopting = claims.some(({ verb }) => verb === 'adopt');
    if (isAdopting && !(await this.#mayAdopt(owner))) return false;
    const nowMs = this.#options.client.timers.wallMs();
    let isFailed = false;
    for (const { set, verb } of claims) {
      const path = `${ROOT}/namespaces/${owner.namespace}/replicasets/${nameOf(set)}`;
      const revision = await this.#control[verb](path, owner, revisionOf(set));
      if (revision < 0) isFailed = true;
      else this.#setWrites.expectRevision(key, revision, nowMs);
    }
    return !isFailed;
  }

  async #mayAdopt(owner: ReturnType<typeof ownerOfObject>): Promise<boolean> {
    const path = `${ROOT}/namespaces/${owner.namespace}/deployments/${owner.name}`;
    const answer = await this.#options.client.request({ method: 'GET', path });
    if (!answer.ok) return false;
    const metadata = objectAt(answer.object, 'metadata');
    return (
      stringAt(metadata, 'uid') === owner.uid && stringAt(metadata, 'deletionTimestamp') === ''
    );
  }

  /** True where it is done. */
  async #carryOut(
    round: Round,
    effect: Exclude<DeploymentEffect, { kind: 'again' }>,
    nowMs: number,
  ): Promise<boolean> {
    switch (effect.kind) {
      case 'create':
        return this.#create(round, effect.set, nowMs);
      case 'change':
        return this.#change(round, effect, nowMs);
      case 'delete':
        return this.#delete(round, effect.name);
      case 'status':
        return this.#writeStatus(round, effect.patch, nowMs);
      case 'rollback':
        return this.#rollBack(round, effect);
    }
  }

  #setPath({ namespace }: Round, name: string): string {
    return `${ROOT}/namespaces/${namespace}/replicasets/${name}`;
  }

  async #change(
    round: Round,
    { name, patch, event }: Extract<DeploymentEffect, { kind: 'change' }>,
    nowMs: number,
  ): Promise<boolean> {
    const metadata = { ...objectAt(patch, 'metadata'), resourceVersion: round.versions.get(name) };
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: this.#setPath(round, name),
      contentType: CONTENT.mergePatch,
      body: { ...patch, metadata },
    });
    if (!answer.ok) return false;
    round.versions.set(name, stringAt(answer.object, 'metadata', 'resourceVersion'));
    this.#setWrites.expectRevision(round.key, revisionOf(answer.object), nowMs);
    if (event !== undefined) this.#tell(round.deployment, 'Normal', 'ScalingReplicaSet', event);
    return true;
  }

  async #delete(round: Round, name: string): Promise<boolean> {
    const uid = stringAt(round.sets.get(name), 'metadata', 'uid');
    const answer = await this.#options.client.request({
      method: 'DELETE',
      path: this.#setPath(round, name),
      body: { preconditions: { uid }, propagationPolicy: 'Background' },
    });
    return answer.ok || answer.code === 404 || answer.code === 409;
  }

  async #create(round: Round, set: JsonObject, nowMs: number): Promise<boolean> {
    const path = `${ROOT}/namespaces/${round.namespace}/replicasets`;
    const answer = await this.#options.client.request({ method: 'POST', path, body: set });
    const name = nameOf(set);
    if (answer.ok) {
      this.#untold.set(round.key, name);
      round.versions.set(name, stringAt(answer.object, 'metadata', 'resourceVersion'));
      this.#setWrites.expectRevision(round.key, revisionOf(answer.object), nowMs);
      const message = `Scaled up replica set ${name} to ${replicasOf(set)}`;
      if (replicasOf(set) > 0) this.#tell(round.deployment, 'Normal', 'ScalingReplicaSet', message);
      return true;
    }
    if (answer.code === 409 && answer.status.reason === 'AlreadyExists') {
      await this.#resolveCollision(round, set, nowMs);
      return false;
    }
    const message = `Failed to create new replica set "${name}": ${failureOf(answer).text}`;
    if (answer.code >= 400 && deadlineSeconds(round.deployment) !== undefined) {
      const reason = 'ReplicaSetCreateError';
      const made = condition(PROGRESSING, 'False', reason, message, nowMs);
      const conditions = [...withCondition(conditionsOf(round.deployment), made)];
      await this.#writeStatus(round, { status: { conditions } }, nowMs);
    }
    this.#tell(round.deployment, 'Warning', 'ReplicaSetCreateError', message);
    return false;
  }

  /** The name is taken: by our own set that is not in view yet, or by a stranger. */
  async #resolveCollision(round: Round, set: JsonObject, nowMs: number): Promise<void> {
    const path = this.#setPath(round, nameOf(set));
    const found = await this.#options.client.request({ method: 'GET', path });
    if (!found.ok) return;
    const isOurs =
      controllerUid(found.object) === stringAt(round.deployment, 'metadata', 'uid') &&
      isSameTemplate(round.deployment, found.object);
    if (isOurs) {
      this.#setWrites.expectRevision(round.key, revisionOf(found.object), nowMs);
      return;
    }
    const collisionCount = numberAt(round.deployment, 'status', 'collisionCount') + 1;
    await this.#writeStatus(round, { status: { collisionCount } }, nowMs);
  }

  async #rollBack(
    { deployment, namespace }: Round,
    effect: Extract<DeploymentEffect, { kind: 'rollback' }>,
  ): Promise<boolean> {
    const path = `${ROOT}/namespaces/${namespace}/deployments/${nameOf(deployment)}`;
    const body = { ...effect.deployment, apiVersion: 'apps/v1', kind: 'Deployment' };
    const answer = await this.#options.client.request({ method: 'PUT', path, body });
    if (answer.ok) this.#tell(deployment, effect.type, effect.reason, effect.message);
    return answer.ok || answer.code === 404;
  }

  async #writeStatus(round: Round, patch: JsonObject, nowMs: number): Promise<boolean> {
    const { deployment, namespace } = round;
    // Our last one is not in view yet: its event brings the key back. Sets do not wait for that.
    const seen = this.#deployments.informer.revision;
    if (!this.#ownWrites.isMet(round.key, seen, never, nowMs)) return true;
    const resourceVersion = stringAt(deployment, 'metadata', 'resourceVersion');
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: `${ROOT}/namespaces/${namespace}/deployments/${nameOf(deployment)}/status`,
      contentType: CONTENT.mergePatch,
      body: { ...patch, metadata: { ...objectAt(patch, 'metadata'), resourceVersion } },
    });
    if (answer.ok) {
      this.#untold.delete(round.key);
      this.#ownWrites.expectRevision(round.key, revisionOf(answer.object), nowMs);
    }
    return answer.ok || answer.code === 404;
  }
}

function isSelected(deployment: JsonObject, set: JsonObject): boolean {
  const selector = labelSelectorOf(objectAt(deployment, 'spec', 'selector'));
  if ('error' in selector) return false;
  return matchesLabels(selector.value, objectAt(set, 'metadata', 'labels'));
}

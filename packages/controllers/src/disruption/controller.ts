/** PodDisruptionBudgets: their status follows the pods that they select. */
import { ownMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { labelSelectorOf } from '@megaplane/machinery/selectors';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import type { ApiResource } from '../framework/api-resources.ts';
import {
  budgetStatus,
  desiredHealthy,
  failedStatus,
  needsScale,
  stillEvicted,
  type BudgetCounts,
  unmanagedText,
} from './disruption.ts';
import { controllerUid, ObjectCache } from '../framework/object-cache.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { REPLICA_DELETING, REPLICA_READY } from '../columns/replica-pods.ts';
import { replicasOf } from '../replicaset/replicaset.ts';
import { lookUpScale } from '../framework/scale-lookup.ts';
import { StaleDisruptions } from './stale-disruptions.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
/** Changes of pods that come within this time are one look at a budget. */
const GATHER_MS = 20;
const ROOT = '/apis/policy/v1';
/** Who may control pods and has a number of replicas. */
const SCALED = [
  '/apis/apps/v1/replicasets',
  '/api/v1/replicationcontrollers',
  '/apis/apps/v1/statefulsets',
] as const;
const DEPLOYMENTS = '/apis/apps/v1/deployments';

export interface DisruptionControllerOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly announce: Announce;
  readonly now: () => string;
}

/** `isPassing`: asked again, it may be counted. */
interface Uncounted {
  readonly ok: false;
  readonly message: string;
  readonly isPassing: boolean;
}

type Counted =
  | { readonly ok: true; readonly counts: BudgetCounts; readonly nextMs: number }
  | Uncounted;

function isFailed(budget: JsonObject | undefined): boolean {
  const conditions = listAt(budget, 'status', 'conditions');
  return conditions.some((one) => stringAt(one, 'reason') === 'SyncFailed');
}

export class DisruptionController {
  readonly #options: DisruptionControllerOptions;
  readonly #workers: Workers<string>;
  readonly #budgets: ObjectCache;
  readonly #selectors: Map<string, LabelProgram> = new Map();
  readonly #scaled: readonly ObjectCache[];
  readonly #deployments: ObjectCache;
  readonly #stale: StaleDisruptions;
  #resources: readonly ApiResource[] = [];

  constructor(options: DisruptionControllerOptions) {
    this.#options = options;
    const { client, informers, pods } = options;
    this.#workers = new Workers(
      client.timers,
      WORKERS,
      (key) => this.#work(key),
      options.onError,
      informers.queues.queue('disruption'),
    );
    this.#budgets = new ObjectCache(
      informers,
      `${ROOT}/poddisruptionbudgets`,
      (key, after, before) => this.#budgetChanged(key, after, before),
    );
    const changed = (_key: string, after?: JsonObject, before?: JsonObject): void =>
      this.#scaleChanged(after, before);
    this.#scaled = SCALED.map((path) => new ObjectCache(informers, path, changed));
    this.#deployments = new ObjectCache(informers, DEPLOYMENTS, changed);
    this.#stale = new StaleDisruptions(options);
    pods.listen({
      changed: (row, bytes, scan) => {
        this.#podChanged(row, bytes, scan);
        if (scan !== null) this.#stale.seen(row, bytes, scan);
      },
    });
  }

  /** Kinds that may control pods beside those that are known here. */
  setResources(found: readonly ApiResource[], isWhole: boolean): void {
    if (!isWhole && this.#resources.length > 0) return;
    const isSame = equals(found as unknown as JsonValue, this.#resources as unknown as JsonValue);
    this.#resources = found;
    if (isSame) return;
    // Kinds that had no number may have one now.
    for (const key of this.#budgets.keys()) {
      if (isFailed(this.#budgets.get(key))) this.#workers.add(key);
    }
  }

  start(): void {
    this.#stale.start();
    this.#workers.start();
  }

  stop(): void {
    this.#stale.stop();
    this.#workers.stop();
  }

  #budgetChanged(key: string, after?: JsonObject, before?: JsonObject): void {
    if (after === undefined) {
      this.#selectors.delete(key);
      return;
    }
    const selector = objectAt(after, 'spec', 'selector');
    const isOther = !equals(selector, objectAt(before, 'spec', 'selector'));
    if (isOther || !this.#selectors.has(key)) {
      const parsed = labelSelectorOf(selector);
      if (!('error' in parsed)) this.#selectors.set(key, new LabelProgram(parsed.value));
    }
    this.#workers.add(key);
  }

  /** Another number of replicas is another expectation of the budgets in its namespace. */
  #scaleChanged(after?: JsonObject, before?: JsonObject): void {
    const object = after ?? before;
    if (object === undefined) return;
    const isSame = after !== undefined && before !== undefined;
    if (isSame && replicasOf(after) === replicasOf(before)) return;
    for (const key of this.#budgets.inNamespace(stringAt(object, 'metadata', 'namespace'))) {
      this.#workers.addAfter(key, GATHER_MS);
    }
  }

  #podChanged(row: number, bytes: Buffer, scan: ObjectScan | null): void {
    const { pods } = this.#options.pods;
    const labels = pods.labelsOf(row);
    if (labels === pods.labelsBefore && pods.flags.get(row) === pods.flagsBefore) return;
    const [first = '', ...others] = this.#addSelecting(labels);
    if (others.length > 0 && scan !== null) this.#tellMany(row, first, bytes, scan);
    if (pods.labelsBefore !== labels) this.#addSelecting(pods.labelsBefore);
  }

  /** Keys of the budgets that select pods with these labels; they are counted anew. */
  #addSelecting(labels: number): string[] {
    if (labels < 0) return [];
    const { pods } = this.#options.pods;
    const keys: string[] = [];
    for (const key of this.#budgets.inNamespace(pods.namespaceOfSet(labels))) {
      const program = this.#selectors.get(key);
      if (program === undefined || !pods.matches(labels, program)) continue;
      keys.push(key);
      this.#workers.addAfter(key, GATHER_MS);
    }
    return keys;
  }

  /** Upstream counts for one of them alone; here all of them are. The pod is told as there. */
  #tellMany(row: number, first: string, bytes: Buffer, { uidStart, uidEnd }: ObjectScan): void {
    const [namespace = '', name = ''] = this.#options.pods.informer.keyOf(row).split('/');
    const chosen = JSON.stringify(first.slice(namespace.length + 1));
    const which = `${JSON.stringify(namespace)}/${JSON.stringify(name)}`;
    const many = `Pod ${which} matches multiple PodDisruptionBudgets.`;
    const text = `${many}  Chose ${chosen} arbitrarily.`;
    const uid = bytes.toString('utf8', uidStart, uidEnd);
    const reason = 'MultiplePodDisruptionBudgets';
    this.#options.announce('Pod', namespace, name, 'Warning', reason, text, uid);
  }

  async #work(key: string): Promise<WorkResult> {
    const budget = this.#budgets.get(key);
    if (budget === undefined) return 'done';
    const rows = this.#rowsOf(key);
    if (rows.length === 0) this.#tell(budget, 'Normal', 'NoPods', 'No matching pods found');
    const { pods } = this.#options.pods;
    const isUnmanaged = needsScale(budget) && rows.some((row) => pods.ownerOf(row) < 0);
    const counted = await this.#count(budget, rows);
    const { now } = this.#options;
    if (!counted.ok) {
      const text = `Failed to calculate the number of expected pods: ${counted.message}`;
      this.#tell(budget, 'Warning', 'CalculateExpectedPodCountFailed', text);
      const failed = failedStatus(budget, counted.message, now());
      const isTold = equals(failed, objectAt(budget, 'status'));
      const isWritten = isTold || (await this.#write(key, budget, failed));
      // As upstream: what has no number gets none by asking again. A pod or the budget must change.
      return isWritten && !counted.isPassing ? 'done' : 'retry';
    }
    if (isUnmanaged) this.#tell(budget, 'Warning', 'UnmanagedPods', unmanagedText(budget));
    const status = budgetStatus(budget, counted.counts, now());
    if (status !== undefined && !(await this.#write(key, budget, status))) return 'retry';
    const waitMs = counted.nextMs - this.#options.client.timers.wallMs();
    return waitMs === Infinity ? 'done' : { againMs: Math.max(0, waitMs) };
  }

  /** Rows of the pods that a budget selects. */
  #rowsOf(key: string): number[] {
    const { pods } = this.#options.pods;
    const program = this.#selectors.get(key);
    const rows: number[] = [];
    if (program === undefined) return rows;
    const namespace = key.slice(0, key.indexOf('/'));
    for (let set = pods.firstSet(namespace); set >= 0; set = pods.nextSet(set)) {
      if (!pods.matches(set, program)) continue;
      for (let row = pods.firstOfSet(set); row >= 0; row = pods.nextOfSet(row)) rows.push(row);
    }
    return rows;
  }

  async #count(budget: JsonObject, before: readonly number[]): Promise<Counted> {
    const { pods, informer } = this.#options.pods;
    const scale = needsScale(budget) ? await this.#scaleOf(before) : before.length;
    if (typeof scale === 'object') return scale;
    const desired = desiredHealthy(budget, scale);
    if (desired === undefined) {
      return { ok: false, message: 'invalid value for IntOrString', isPassing: false };
    }
    const namespace = stringAt(budget, 'metadata', 'namespace');
    // while others were asked pods came and went
    const key = `${namespace}/${stringAt(budget, 'metadata', 'name')}`;
    const rows = needsScale(budget) ? this.#rowsOf(key) : before;
    const isThere = (name: string): boolean => {
      const row = informer.find(namespace, name);
      return row >= 0 && rows.includes(row) && (pods.flags.get(row) & REPLICA_DELETING) === 0;
    };
    const nowMs = this.#options.client.timers.wallMs();
    const { evicted, late, nextMs } = stillEvicted(budget, isThere, nowMs);
    for (const name of late) this.#tellLate(budget, name);
    let healthy = 0;
    for (const row of rows) {
      const flags = pods.flags.get(row);
      if ((flags & REPLICA_DELETING) !== 0 || (flags & REPLICA_READY) === 0) continue;
      const name = informer.keyOf(row).slice(namespace.length + 1);
      if (ownMember(evicted, name) === undefined) healthy++;
    }
    return { ok: true, counts: { expected: scale, healthy, desired, evicted }, nextMs };
  }

  /** Replicas of all controllers of the pods together, or why one has no number. */
  async #scaleOf(rows: readonly number[]): Promise<number | Uncounted> {
    const { pods, informer } = this.#options.pods;
    const scales = new Map<string, number>();
    /** By uid of the controller, as rows are others after an answer: a pod of each. */
    const owned = new Map<string, string>();
    for (const row of rows) {
      const owner = pods.ownerOf(row);
      if (owner >= 0) owned.set(pods.uidOf(owner), informer.keyOf(row));
    }
    for (const [uid, pod] of owned) {
      const scaled = this.#controllerOf(uid) ?? (await this.#foreignScale(uid, pod));
      if ('ok' in scaled) return scaled;
      scales.set(scaled[0], scaled[1]);
    }
    return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
  }

  /** Of a controller of another kind, or why it has no number. */
  async #foreignScale(uid: string, pod: string): Promise<readonly [string, number] | Uncounted> {
    const found = await lookUpScale(this.#options.client, this.#resources, pod, uid);
    if (found.kind === 'scale') return [uid, found.replicas];
    if (found.kind === 'failed')
      return { ok: false, message: found.message, isPassing: found.isPassing };
    const message = `found no controllers for pod ${JSON.stringify(pod.split('/')[1] ?? '')}`;
    return { ok: false, message, isPassing: false };
  }

  /** Uid and replicas of who controls pods: a ReplicaSet stands for its Deployment. */
  #controllerOf(uid: string): readonly [uid: string, replicas: number] | undefined {
    for (const cache of this.#scaled) {
      const key = cache.keyOfUid(uid);
      const object = key === undefined ? undefined : cache.get(key);
      if (object === undefined) continue;
      const above = controllerUid(object);
      const deployment = above === '' ? undefined : this.#deployments.keyOfUid(above);
      const owner = deployment === undefined ? undefined : this.#deployments.get(deployment);
      return owner === undefined ? [uid, replicasOf(object)] : [above, replicasOf(owner)];
    }
    return undefined;
  }

  async #write(key: string, budget: JsonObject, status: JsonObject): Promise<boolean> {
    const [namespace = '', name = ''] = key.split('/');
    const path = `${ROOT}/namespaces/${namespace}/poddisruptionbudgets/${name}/status`;
    const body = { ...budget, apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', status };
    const answer = await this.#options.client.request({ method: 'PUT', path, body });
    return answer.ok || answer.code === 404;
  }

  #tell(budget: JsonObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const metadata = objectAt(budget, 'metadata');
    const [namespace, name] = [stringAt(metadata, 'namespace'), stringAt(metadata, 'name')];
    const uid = stringAt(metadata, 'uid');
    this.#options.announce('PodDisruptionBudget', namespace, name, type, reason, message, uid);
  }

  #tellLate(budget: JsonObject, pod: string): void {
    const namespace = stringAt(budget, 'metadata', 'namespace');
    const budgetName = stringAt(budget, 'metadata', 'name');
    const text = `Pod was expected by PDB ${namespace}/${budgetName} to be deleted but it wasn't`;
    this.#options.announce('Pod', namespace, pod, 'Warning', 'NotDeleted', text);
  }
}

/**
 * `fleet pods`: one CapacityRequest for each pod, as long as it lives, whether or not the pod is
 * placed. Pods are rows of an informer, requests are only followed; `PodRequests` says what to do.
 *
 * The name of a request follows from name and UID of its pod, so that to make it twice makes one.
 */
import { parseNested } from '@megaplane/base/nested-json';
import type { Client, SendDone } from '@megaplane/client/client';
import { createInformer } from '@megaplane/client/informer';
import type { Informer } from '@megaplane/client/informer';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, pathOf, skipValue, stringValue } from '@megaplane/machinery/scan';
import { OWNER_LABEL, REQUESTS_PATH, requestsPathIn } from '../contract/api.ts';
import { PodRequests } from './pod-requests.ts';
import type { Outcome, Task } from './pod-requests.ts';
import { isTerminal, projectPod } from './projection.ts';
import type { ClassPenalties } from './projection.ts';
import { RequestFollower } from './request-follower.ts';

/** Bodies of requests that wait for their turn; pods beyond are read again when it comes. */
export const BODIES_MAX = 10_000;
/** Requests under way. */
const IN_FLIGHT_MAX = 200;
const NAME_CHARACTERS_MAX = 253;
const UID_CHARACTERS = 10;
const PODS_PATH = '/api/v1/pods';
const PENDING = JSON.stringify({ status: { phase: 'Pending' } });
const CONTENT_JSON = 'application/json';
const CONTENT_MERGE = 'application/merge-patch+json';
const OWNER_UID = pathOf(OWNER_LABEL);

export interface PodsOptions {
  readonly client: Client;
  readonly classes: ClassPenalties;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** Counts since the start. */
export interface PodsMetrics {
  made: number;
  removed: number;
  failed: number;
}

export class PodsController {
  readonly metrics: PodsMetrics = { made: 0, removed: 0, failed: 0 };
  readonly requests: PodRequests = new PodRequests();
  readonly #options: PodsOptions;
  readonly #pods: Informer;
  readonly #follower: RequestFollower;
  readonly #scan = new ObjectScan();
  readonly #bodies = new Map<number, JsonObject>();
  #inFlight = 0;
  #isStopped = false;
  #cancelWake: (() => void) | null = null;
  #wakeMs = Infinity;

  constructor(options: PodsOptions) {
    const { client, log } = options;
    this.#options = options;
    this.#pods = createInformer({
      client,
      path: PODS_PATH,
      handler: {
        onUpsert: (row, _isNew, bytes, start, end) => {
          this.#podSeen(row, bytes as Buffer, start, end);
        },
        onDelete: (row) => {
          this.requests.podGone(row);
          this.#bodies.delete(row);
        },
        // requests are told to pods by name: the pods must be there before
        onSynced: () => this.#follower.start(),
        onTrouble: (message) => log('warn', message),
      },
    });
    this.#follower = new RequestFollower({
      ...{ client, path: REQUESTS_PATH, labelSelector: OWNER_LABEL },
      onListBegan: () => this.requests.listBegan(),
      onSeen: (bytes, start, end) => {
        this.#requestTold(bytes, start, end, (row, uid) => this.requests.requestSeen(row, uid));
        this.#work();
      },
      onGone: (bytes, start, end) => {
        this.#requestTold(bytes, start, end, (row, uid) => this.requests.requestGone(row, uid));
        this.#work();
      },
      onListEnded: () => {
        this.requests.listEnded();
        log('info', `${this.requests.held} requests adopted, ${this.requests.wanting} to make`);
        this.#work();
      },
      onTrouble: (message) => log('warn', message),
    });
    client.onRoom(() => this.#work());
  }

  start(): void {
    this.#pods.start();
  }

  stop(): void {
    this.#isStopped = true;
    this.#pods.stop();
    this.#follower.stop();
    this.#cancelWake?.();
  }

  #podSeen(row: number, bytes: Buffer, start: number, end: number): void {
    const scan = this.#scan;
    if (!scan.scan(bytes, start, end) || scan.uidStart < 0) return;
    const uid = bytes.latin1Slice(scan.uidStart, scan.uidEnd);
    const phase = scan.phaseStart < 0 ? '' : bytes.latin1Slice(scan.phaseStart, scan.phaseEnd);
    this.requests.podSeen(row, uid, isTerminal(phase));
    const isWanted = this.requests.stateOf(row) === 'wanting';
    if (!isWanted) this.#bodies.delete(row);
    else if (this.#bodies.size < BODIES_MAX) this.#keepBody(row, bytes, start, end);
    this.#work();
  }

  #keepBody(row: number, bytes: Buffer, start: number, end: number): void {
    const pod = parseNested(bytes.toString('utf8', start, end)) as JsonObject;
    const body = projectPod(pod, this.#options.classes);
    if (body !== undefined) this.#bodies.set(row, body);
  }

  /** Finds the pod of a request: by the first owner that is a pod, and the UID of the label. */
  #requestTold(
    bytes: Buffer,
    start: number,
    end: number,
    tell: (row: number, uid: string) => void,
  ): void {
    const scan = this.#scan;
    if (!scan.scan(bytes, start, end) || scan.namespaceStart < 0) return;
    if (scan.ownerReferencesStart < 0 || scan.labelsStart < 0) return;
    const owners = bytes.toString('utf8', scan.ownerReferencesStart, scan.ownerReferencesEnd);
    const namespace = bytes.latin1Slice(scan.namespaceStart, scan.namespaceEnd);
    const label = findPath(bytes, scan.labelsStart, scan.labelsEnd, OWNER_UID);
    if (label < 0) return;
    const labelEnd = skipValue(bytes, label, scan.labelsEnd);
    const uid = stringValue(bytes, label, labelEnd);
    for (const owner of parseNested(owners) as JsonObject[]) {
      if (stringAt(owner, 'kind') !== 'Pod') continue;
      const row = this.#pods.find(namespace, stringAt(owner, 'name'));
      if (row >= 0) tell(row, uid);
      return;
    }
  }

  /** Does what is to be done, as long as the client takes it. */
  #work(): void {
    const { client } = this.#options;
    while (!this.#isStopped && this.#inFlight < IN_FLIGHT_MAX && client.room() > 1) {
      const task = this.requests.next(client.timers.nowMs());
      if (task === undefined) break;
      this.#inFlight++;
      this.#perform(task);
    }
    const { wakeMs } = this.requests;
    if (this.#isStopped || wakeMs === this.#wakeMs) return;
    this.#cancelWake?.();
    this.#wakeMs = wakeMs;
    if (wakeMs === Infinity) return;
    const delayMs = Math.max(1, wakeMs - client.timers.nowMs());
    this.#cancelWake = client.timers.after(delayMs, () => {
      this.#wakeMs = Infinity;
      this.#work();
    });
  }

  #perform(task: Task): void {
    if (task.kind === 'remove') return this.#withPod(task, (pod) => this.#remove(task, pod));
    const body = this.#bodies.get(task.row);
    this.#bodies.delete(task.row);
    if (body !== undefined) return this.#make(task, body);
    this.#withPod(task, (pod) => {
      const made = projectPod(pod, this.#options.classes);
      if (made === undefined) this.#finish(task, 'gone');
      else this.#make(task, made);
    });
  }

  /** Reads the pod of a task; a later one of its name is not it. */
  #withPod(task: Task, use: (pod: JsonObject) => void): void {
    const key = this.#pods.keyOf(task.row);
    const slash = key.indexOf('/');
    if (slash < 0) return this.#finish(task, 'gone');
    const path = `/api/v1/namespaces/${key.slice(0, slash)}/pods/${key.slice(slash + 1)}`;
    this.#send('GET', path, CONTENT_JSON, null, (status, bytes, start, end) => {
      if (status !== 200) return this.#finish(task, outcomeOf(status));
      const pod = parseNested(Buffer.from(bytes.subarray(start, end)).toString()) as JsonObject;
      if (this.requests.isPodOf(task, stringAt(pod, 'metadata', 'uid'))) use(pod);
      else this.#finish(task, 'later');
    });
  }

  #make(task: Task, body: JsonObject): void {
    const uid = stringAt(listAt(body, 'metadata', 'ownerReferences')[0], 'uid');
    const path = requestsPathIn(stringAt(body, 'metadata', 'namespace'));
    const name = requestName(stringAt(body, 'metadata', 'generateName'), uid);
    const metadata = { ...objectAt(body, 'metadata'), name };
    const text = JSON.stringify({ ...body, metadata });
    this.#send('POST', path, CONTENT_JSON, text, (status) => {
      const isThere = status === 409;
      if (status === 201) {
        this.metrics.made++;
        // the status cannot be made with the object; without it the request is as good
        const noMatter = (): void => {};
        this.#send('PATCH', `${path}/${name}/status`, CONTENT_MERGE, PENDING, noMatter);
      } else if (!isThere) {
        this.#options.log('warn', `${path}/${name} was not made: HTTP ${status}`);
      }
      this.#finish(task, isThere ? 'done' : outcomeOf(status));
    });
  }

  /** Deletes all requests of a pod, whatever their names. */
  #remove(task: Task, pod: JsonObject): void {
    const uid = stringAt(pod, 'metadata', 'uid');
    const path = requestsPathIn(stringAt(pod, 'metadata', 'namespace'));
    const query = `?labelSelector=${encodeURIComponent(`${OWNER_LABEL}=${uid}`)}`;
    this.#send('DELETE', path + query, CONTENT_JSON, null, (status) => {
      if (status === 200) this.metrics.removed++;
      this.#finish(task, outcomeOf(status));
    });
  }

  #send(...[method, path, content, body, done]: Parameters<Client['send']>): void {
    const isTaken = this.#options.client.send(method, path, content, body, done);
    if (!isTaken) done(0, EMPTY, 0, 0, 0);
  }

  #finish(task: Task, outcome: Outcome): void {
    this.#inFlight--;
    if (outcome !== 'done') this.metrics.failed++;
    this.requests.ended(task, outcome, this.#options.client.timers.nowMs());
    this.#work();
  }
}

const EMPTY = new Uint8Array(0);

/** A name for the request of a pod, at most as long as names may be. */
export function requestName(generateName: string, uid: string): string {
  const end = uid.replaceAll(/[^0-9a-z]/g, '').slice(-UID_CHARACTERS);
  return `${generateName.slice(0, NAME_CHARACTERS_MAX - UID_CHARACTERS)}${end}`;
}

function outcomeOf(status: Parameters<SendDone>[0]): Outcome {
  if (status >= 200 && status < 300) return 'done';
  if (status === 404) return 'gone';
  return status === 400 || status === 403 || status === 422 ? 'refused' : 'later';
}

/**
 * Plays stages for the objects of one collection.
 *
 *     event ──► choose ──► waiting ──(delay)──► playing ──(last step)──► rest until the next event
 *                 ▲                                │
 *                 └──(immediateNextStage)──────────┘
 *
 * A newer state of an object takes the place of one that waits; while a stage plays it is looked
 * at when the stage is over, or at once if it waits for a server in trouble. What waits is kept as
 * bytes in a slab, by the row of the informer: beyond `WAITING_BYTES_MAX` the object is read from
 * the server when its time has come. A step that a server in trouble refuses is repeated, 1 s at
 * first and twice as long each time.
 */
import { Float64Column, Uint16Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import { Slab } from '@megaplane/base/slab';
import { TimerWheel } from '@megaplane/base/wheel';
import type { Client } from '@megaplane/client/client';
import { STATUS_NONE } from '@megaplane/client/client';
import type { EventRecorder } from '@megaplane/client/event-recorder';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { resourceVersionOf } from '@megaplane/machinery/scan';
import { TemplateError } from '../gotemplate/template-lexer.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import {
  applyRequest,
  deleteRequest,
  finalizersRequest,
  objectPath,
  patchRequest,
  type StageRequest,
  type StageResource,
} from './stage-requests.ts';
import { chooseStage, delayOf, StageError, StageSubject, type Stage } from './stage.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

/** Memory for the states of objects that wait for their delay. */
const WAITING_BYTES_MAX: number = 512 * 1024 * 1024;
const REGION_BYTES: number = 4 * 1024 * 1024;
const FIRST_REGION_BYTES: number = 2 ** 17;
/** Pauses after refusals of a server in trouble. */
export const RETRY_MS_MIN = 1000;
export const RETRY_MS_MAX: number = 32 * 60_000;
/** When the client has no room a step is tried again so soon. */
const ROOM_MS = 10;
/** Errors of one stage that are told, each kind once. */
const ERRORS_TOLD_MAX = 100;

const NO_STAGE = 0;

export interface StagePlayerOptions {
  readonly client: Client;
  readonly resource: StageResource;
  readonly stages: readonly Stage[];
  readonly recorder: EventRecorder;
  readonly metrics: SimulatorMetrics;
  /** Whether we play for the object at all. */
  isOurs(object: JsonObject): boolean;
  /** Path of the object at a row. */
  pathOf(id: number): string;
  /** Where objects that a step applies live. */
  readonly resourceOf: (apiVersion: string, kind: string) => StageResource | undefined;
  readonly onError: (message: string) => void;
}

/** A stage under way, or one whose object must be read first. */
interface Play {
  readonly object: JsonObject;
  readonly stage: Stage;
  step: number;
  failures: number;
  /** The object as the last patch left it, where the server said so. */
  answer: Buffer | null;
  /** Version of the object after the last request about it that the server took; 0: none yet. */
  version: number;
  /** What is sent when the request under way finds its object there already. */
  orElse: StageRequest | null;
}

/** See the head of the file. Give `handler` to the informer, call `tick` often. */
export class StagePlayer {
  readonly handler: InformerHandler;
  readonly #options: StagePlayerOptions;
  readonly #client: Client;
  readonly #wheel: TimerWheel;
  readonly #slab = new Slab({
    regionBytes: REGION_BYTES,
    firstRegionBytes: FIRST_REGION_BYTES,
    bytesMax: WAITING_BYTES_MAX,
  });
  /** The stage that waits, as its number + 1. */
  readonly #stage = new Uint16Column();
  readonly #refs = new Uint32Column();
  readonly #lengths = new Uint32Column();
  readonly #versions = new Float64Column();
  /** Tells a row's owner from the one before: answers of requests carry it. */
  readonly #generation = new Uint8Column();
  /** Bounded by what the client takes at once, and by the rows whose steps wait for a retry. */
  readonly #plays: Map<number, Play> = new Map();
  /** Rows that changed while they were played: their newest state. */
  readonly #newer: Map<number, Buffer> = new Map();
  readonly #told: Set<string> = new Set();

  constructor(options: StagePlayerOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#wheel = new TimerWheel({ startMs: options.client.timers.nowMs() });
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => this.#onObject(id, isNew, bytes, start, end),
      onDelete: (id) => this.#forget(id),
    };
  }

  /** Objects that wait for their delay, or are played. */
  get pending(): number {
    return this.#wheel.size + this.#plays.size;
  }

  /** Plays what is due, as far as the client has room. */
  tick(): void {
    const room = this.#client.room();
    if (room > 0) this.#wheel.advance(this.#nowMs(), (id) => this.#due(id), room);
  }

  #nowMs(): number {
    return this.#client.timers.nowMs();
  }

  #onObject(id: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): void {
    if (isNew) {
      this.#drop(id);
      this.#generation.add(id, 1);
    }
    this.#versions.set(id, resourceVersionOf(bytes, start, end));
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const play = this.#plays.get(id);
    if (play !== undefined && this.#isOutdated(id, play)) {
      this.#plays.delete(id);
      this.#newer.delete(id);
    }
    if (this.#plays.has(id)) this.#newer.set(id, Buffer.from(text));
    else this.#consider(id, text);
  }

  /** It waits to be tried again, up to half an hour, and somebody has changed its object since. */
  #isOutdated(id: number, play: Play): boolean {
    const isWaiting = play.failures > 0 && this.#wheel.isArmed(id);
    return isWaiting && this.#versions.get(id) > play.version;
  }

  /** Looks again at the state of a row for which nothing was played before. */
  consider(id: number, object: JsonObject): void {
    if (!this.#plays.has(id)) this.#consider(id, Buffer.from(JSON.stringify(object)));
  }

  /** Plays nothing any more. */
  stop(): void {
    this.#plays.clear();
    this.#newer.clear();
  }

  #forget(id: number): void {
    this.#drop(id);
    this.#generation.add(id, 1);
    this.#plays.delete(id);
    this.#newer.delete(id);
  }

  /** Nothing waits for the row any more. */
  #drop(id: number): void {
    this.#wheel.cancel(id);
    this.#stage.set(id, NO_STAGE);
    const ref = this.#refs.get(id);
    if (ref !== 0) this.#slab.free(ref);
    this.#refs.set(id, 0);
  }

  #consider(id: number, text: Buffer): void {
    this.#drop(id);
    const object = this.#parsed(text);
    if (!this.#options.isOurs(object)) return;
    const subject = new StageSubject(object);
    this.#guard(object, '', () => {
      const stage = chooseStage(this.#options.stages, subject, (n) => this.#below(n));
      if (stage === undefined) return;
      const delayMs = this.#delayOf(stage, subject);
      if (delayMs === 0 && this.#client.room() > 0) this.#begin(id, stage, object);
      else this.#wait(id, stage, delayMs, text);
    });
  }

  /** A delay that cannot be had is none, as in kwok. */
  #delayOf(stage: Stage, subject: StageSubject): number {
    let delayMs = 0;
    this.#guard(subject.object, stage.name, () => {
      delayMs = delayOf(stage, subject, this.#client.timers.wallMs(), () => this.#client.random());
    });
    return delayMs;
  }

  #below(n: number): number {
    return Math.floor(this.#client.random() * n);
  }

  /** Items of lists carry no kind, which templates may ask for. */
  #parsed(text: Buffer): JsonObject {
    const object = parseJson(text.toString('utf8')) as JsonObject;
    const { kind, apiVersion } = this.#options.resource;
    return { kind, apiVersion, ...object };
  }

  #wait(id: number, stage: Stage, delayMs: number, text: Buffer): void {
    this.#stage.set(id, this.#options.stages.indexOf(stage) + 1);
    this.#refs.set(id, this.#slab.store(text, 0, text.length));
    this.#lengths.set(id, text.length);
    this.#wheel.arm(id, this.#nowMs() + delayMs);
  }

  #due(id: number): void {
    const play = this.#plays.get(id);
    if (play !== undefined) return this.#next(id, play);
    const stage = this.#options.stages[this.#stage.get(id) - 1];
    if (stage === undefined) return;
    const ref = this.#refs.get(id);
    if (ref === 0) return this.#readAgain(id);
    const start = this.#slab.startAt(ref);
    const text = this.#slab.bytesAt(ref).subarray(start, start + this.#lengths.get(id));
    const object = this.#parsed(text);
    this.#drop(id);
    this.#begin(id, stage, object);
  }

  /** The state was not kept: plays for the one that the server has now. */
  #readAgain(id: number): void {
    const path = this.#options.pathOf(id);
    const tag = id * 256 + this.#generation.get(id);
    if (this.#client.send('GET', path, '', null, this.#onRead, tag)) return;
    this.#wheel.arm(id, this.#nowMs() + ROOM_MS);
  }

  readonly #onRead = (
    status: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    tag: number,
  ): void => {
    const id = Math.floor(tag / 256);
    const stage = this.#options.stages[this.#stage.get(id) - 1];
    if (stage === undefined || this.#generation.get(id) !== tag % 256) return;
    if (status === 404) return this.#drop(id);
    if (status !== 200) {
      this.#wheel.arm(id, this.#nowMs() + RETRY_MS_MIN * (1 + this.#client.random()));
      return;
    }
    const answer = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    // Changed since: the event that says so chooses anew.
    if (resourceVersionOf(answer, 0, answer.length) !== this.#versions.get(id)) return;
    const object = this.#parsed(answer);
    this.#drop(id);
    this.#begin(id, stage, object);
  };

  #begin(id: number, stage: Stage, object: JsonObject): void {
    const play: Play = {
      object,
      stage,
      step: 0,
      failures: 0,
      answer: null,
      version: 0,
      orElse: null,
    };
    this.#plays.set(id, play);
    this.#next(id, play);
  }

  /** Plays on from the step at hand, up to the next request. */
  #next(id: number, play: Play): void {
    const { stage, object } = play;
    const isFine = this.#guard(object, stage.name, () => {
      for (; play.step < stage.steps.length; play.step++) {
        const request = this.#requestOf(play);
        if (request === null) continue;
        this.#send(id, play, request);
        return;
      }
      this.#end(id, play);
    });
    if (!isFine) this.#end(id, play);
  }

  #requestOf({ stage, object, step: at }: Play): StageRequest | null {
    const { resource, recorder, resourceOf } = this.#options;
    const step = stage.steps[at];
    switch (step?.kind) {
      case 'event':
        recorder.event(this.#subjectOf(object), step.type, step.reason, step.message);
        return null;
      case 'finalizers':
        return finalizersRequest(step, resource, object);
      case 'delete':
        return deleteRequest(resource, object);
      case 'patch':
        return patchRequest(step, resource, object);
      case 'apply':
        return applyRequest(step, object, resourceOf);
      case undefined:
        return null;
    }
  }

  #subjectOf(object: JsonObject): Parameters<EventRecorder['event']>[0] {
    const { kind, apiVersion } = this.#options.resource;
    // kwok says no version for the two kinds that it knows itself
    const isKubelets = apiVersion === 'v1' && (kind === 'Pod' || kind === 'Node');
    const metadata = isObject(object['metadata']) ? object['metadata'] : {};
    const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
    return {
      kind,
      apiVersion: isKubelets ? '' : apiVersion,
      namespace: text(metadata['namespace']),
      name: text(metadata['name']),
      uid: text(metadata['uid']),
    };
  }

  #send(id: number, play: Play, request: StageRequest): void {
    const { method, path, contentType, body, user } = request;
    play.orElse = request.orElse;
    const tag = id * 256 + this.#generation.get(id);
    if (this.#client.send(method, path, contentType, body, this.#onAnswer, tag, user)) return;
    this.#wheel.arm(id, this.#nowMs() + ROOM_MS);
  }

  readonly #onAnswer = (
    status: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    tag: number,
  ): void => {
    const id = Math.floor(tag / 256);
    const play = this.#plays.get(id);
    if (play === undefined || this.#generation.get(id) !== tag % 256) return;
    const answer = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    if (isTrouble(status, answer)) {
      this.#options.metrics.errors++;
      const pauseMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(play.failures++, 11));
      this.#wheel.arm(id, this.#nowMs() + pauseMs * (1 + 0.2 * this.#client.random()));
      return;
    }
    const { orElse } = play;
    if (status === 409 && orElse !== null && answer.includes('"AlreadyExists"')) {
      this.#send(id, play, orElse);
      return;
    }
    const kind = play.stage.steps[play.step]?.kind;
    if (status >= 300 && status !== 404 && (status !== 409 || kind === 'apply')) {
      const where = objectPath(this.#options.resource, play.object);
      this.#tell(play.stage.name, `${where}: ${status}: ${answer.toString('utf8').slice(0, 300)}`);
    }
    // What is gone or changed meanwhile shows as an event: the rest of the stage is not for it.
    if (status >= 300) return this.#end(id, play);
    play.failures = 0;
    if (kind !== 'apply') {
      play.version = Math.max(play.version, resourceVersionOf(answer, 0, answer.length));
    }
    if (kind === 'delete') play.answer = null;
    else if (kind !== 'apply') play.answer = Buffer.from(answer);
    play.step++;
    this.#next(id, play);
  };

  /** A stage is over: the object is looked at as the server has it now. */
  #end(id: number, play: Play): void {
    if (this.#plays.get(id) !== play) return;
    this.#plays.delete(id);
    const newer = this.#newer.get(id);
    this.#newer.delete(id);
    const { answer } = play;
    const isLater =
      answer !== null && resourceVersionOf(answer, 0, answer.length) > this.#versions.get(id);
    if (play.stage.isImmediate && answer !== null && isLater) {
      this.#versions.set(id, resourceVersionOf(answer, 0, answer.length));
      this.#consider(id, answer);
    } else if (newer !== undefined && this.#versions.get(id) >= play.version) {
      // one between the stage's own requests is over: what they made is told, too
      this.#consider(id, newer);
    }
  }

  /** Runs what a user's template or expression may make fail; false if it did. */
  #guard(object: JsonObject, stage: string, run: () => void): boolean {
    try {
      run();
      return true;
    } catch (error) {
      if (!(error instanceof StageError) && !(error instanceof TemplateError)) throw error;
      this.#options.metrics.errors++;
      this.#tell(stage, `${objectPath(this.#options.resource, object)}: ${error.message}`);
      return false;
    }
  }

  #tell(stage: string, message: string): void {
    const key = `${stage} ${message.replace(/^\S+: /, '')}`;
    if (this.#told.has(key) || this.#told.size >= ERRORS_TOLD_MAX) return;
    this.#told.add(key);
    this.#options.onError(stage === '' ? message : `stage ${stage}: ${message}`);
  }
}

/** A server in trouble: the step is repeated (kwok's `shouldRetry`). */
function isTrouble(status: number, answer: Buffer): boolean {
  if (status === STATUS_NONE || status === 429 || status === 503 || status === 504) return true;
  return status === 500 && answer.includes('"ServerTimeout"');
}

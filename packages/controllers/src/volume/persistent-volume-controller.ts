/**
 * Binds claims to volumes, and says what becomes of volumes whose claim is gone, by the rules of
 * upstream's persistentvolume-binder. Everything about one claim, with the volumes that name it,
 * is one piece of work, so that two hands never write the same pair.
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { Expectations } from '../framework/expectations.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { revisionOf } from '../framework/pod-control.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { claimKeyOf, classOf, VolumeIndex } from './claim-match.ts';
import { ClaimUsers } from './claim-users.ts';
import { defaultClassOf } from './provisioning.ts';
import { VolumeMetrics } from './volume-metrics.ts';
import { syncClaim, syncVolume, type BinderView } from './syncing.ts';
import { VOLUMES, VolumeWriter } from './volume-writer.ts';

const WORKERS = 10;
/** What could not be bound is looked at again so often, as upstream does. */
const RESYNC_MS = 15_000;
/** Volumes that come together are offered together. */
const OFFER_MS = 50;
const SEEN_LOOK_MS = 500;
const CLAIMS = '/api/v1/persistentvolumeclaims';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const never = (): boolean => false;

export interface BinderControllerOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly announce: Announce;
  /** How often claims that wait are looked at again; default 15 s. */
  readonly resyncMs?: number | undefined;
}

export class BinderController {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #volumes: ObjectCache;
  readonly #claims: ObjectCache;
  readonly #classes: ObjectCache;
  readonly #index = new VolumeIndex();
  readonly #volumeWrites = new Expectations();
  readonly #claimWrites = new Expectations();
  /** Claims that are not bound, by class; '' also holds those without one. */
  readonly #pending: Map<string, Set<string>> = new Map();
  readonly #pendingClass: Map<string, string> = new Map();
  readonly #offered: Set<string> = new Set();
  readonly #announce: Announce;
  readonly #metrics: VolumeMetrics;
  /** When a claim was last told that it waits, and for what. */
  readonly #told: Map<
    string,
    { readonly reason: string; readonly revision: string; readonly atMs: number }
  > = new Map();
  readonly #users: ClaimUsers;
  readonly #resyncMs: number;
  #cancelOffer: () => void = () => {};

  constructor({ client, informers, pods, announce, onError, resyncMs }: BinderControllerOptions) {
    this.#resyncMs = resyncMs ?? RESYNC_MS;
    this.#client = client;
    this.#announce = announce;
    this.#metrics = new VolumeMetrics(informers.metrics);
    this.#users = new ClaimUsers(pods);
    this.#workers = new Workers(
      client.timers,
      WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('claims'),
    );
    this.#volumes = new ObjectCache(informers, VOLUMES, (name, after, before) =>
      this.#volumeChanged(name, after, before),
    );
    this.#claims = new ObjectCache(informers, CLAIMS, (key, after, before) =>
      this.#claimChanged(key, after, before),
    );
    this.#classes = new ObjectCache(informers, CLASSES, (name) => {
      this.#offer(name);
      this.#offer('');
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#cancelOffer();
    this.#workers.stop();
  }

  #volumeChanged(
    name: string,
    after: JsonObject | undefined,
    before: JsonObject | undefined,
  ): void {
    this.#metrics.volumeChanged(before, after);
    const isFree = this.#index.set(name, after);
    if (isFree) this.#offer(classOf(after ?? {}));
    const claims = [before, after].map((volume) => (volume ? claimKeyOf(volume) : ''));
    for (const key of claims) if (key !== '') this.#workers.add(key);
    if (after !== undefined && claimKeyOf(after) === '') this.#workers.add(name);
  }

  #claimChanged(key: string, after: JsonObject | undefined, before: JsonObject | undefined): void {
    this.#metrics.claimChanged(before, after);
    const was = this.#pendingClass.get(key);
    if (was !== undefined) {
      this.#pendingClass.delete(key);
      const keys = this.#pending.get(was);
      if (keys?.delete(key) === true && keys.size === 0) this.#pending.delete(was);
    }
    if (after === undefined || stringAt(after, 'status', 'phase') === 'Bound') {
      this.#told.delete(key);
    } else {
      const className = classOf(after);
      this.#pendingClass.set(key, className);
      const keys = this.#pending.get(className);
      if (keys === undefined) this.#pending.set(className, new Set([key]));
      else keys.add(key);
    }
    this.#workers.add(key);
    // A volume whose claim was bound elsewhere, or is gone, must hear of it.
    const volume = stringAt(after ?? before, 'spec', 'volumeName');
    if (volume === '') return;
    const object = this.#volumes.get(volume);
    const holder = object === undefined ? '' : claimKeyOf(object);
    if (holder !== '' && holder !== key) this.#workers.add(holder);
  }

  /** Something has come that claims of this class may wait for. */
  #offer(className: string): void {
    const waiting = this.#pending.get(className)?.size ?? 0;
    if (waiting === 0) return;
    const isArmed = this.#offered.size > 0;
    this.#offered.add(className);
    if (isArmed) return;
    // Looking at all who wait costs as much as there are: the more, the more rarely.
    const delayMs = Math.min(this.#resyncMs, Math.max(OFFER_MS, waiting));
    this.#cancelOffer = this.#client.timers.after(delayMs, () => {
      const classes = [...this.#offered];
      this.#offered.clear();
      for (const one of classes) {
        for (const key of this.#pending.get(one) ?? []) this.#workers.add(key);
      }
    });
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const nowMs = this.#client.timers.nowMs();
    const isSeen =
      this.#volumeWrites.isMet(key, this.#volumes.informer.revision, never, nowMs) &&
      this.#claimWrites.isMet(key, this.#claims.informer.revision, never, nowMs);
    if (!isSeen) return { againMs: SEEN_LOOK_MS };
    const view = this.#view(key);
    if (!key.includes('/')) {
      const volume = this.#volumes.get(key);
      if (volume === undefined || claimKeyOf(volume) !== '') return 'done';
      return (await syncVolume(view, volume)) === 'retry' ? 'retry' : 'done';
    }
    let again = false;
    for (const name of [...this.#index.reservedFor(key)]) {
      const volume = view.volumeOf(name);
      if (volume === undefined) continue;
      const result = await syncVolume(view, volume);
      if (result === 'retry') return 'retry';
      if (result === 'again') again = true;
    }
    const claim = view.claimOf(key);
    if (claim !== undefined) {
      const result = await syncClaim(view, claim);
      if (result === 'retry') return 'retry';
      if (result === 'again') again = true;
    }
    return again ? { againMs: this.#resyncMs } : 'done';
  }

  /** What one piece of work sees: the caches, and over them what it wrote itself. */
  #view(key: string): BinderView {
    const volumes = new Map<string, JsonObject>();
    const claims = new Map<string, JsonObject>();
    const writer = new VolumeWriter(this.#client, (kind, object) => {
      const nowMs = this.#client.timers.nowMs();
      const name = stringAt(object, 'metadata', 'name');
      if (kind === 'volume') {
        volumes.set(name, object);
        this.#volumeWrites.expectRevision(key, revisionOf(object), nowMs);
      } else {
        claims.set(`${stringAt(object, 'metadata', 'namespace')}/${name}`, object);
        this.#claimWrites.expectRevision(key, revisionOf(object), nowMs);
      }
    });
    return {
      client: this.#client,
      writer,
      volumeOf: (name) => volumes.get(name) ?? this.#volumes.get(name),
      claimOf: (claim) => claims.get(claim) ?? this.#claims.get(claim),
      classOf: (name) => this.#classes.get(name),
      defaultClass: () => defaultClassOf(this.#allClasses()),
      defaulted: (isWell) => (isWell ? this.#metrics.defaulted : this.#metrics.notDefaulted).add(),
      match: (claim, isDelayed) => {
        const found = this.#index.match(claim, isDelayed, (name) => this.#volumes.get(name));
        if (found !== undefined) this.#index.take(found);
        return found;
      },
      giveBack: (name) => void this.#index.set(name, this.#volumes.get(name)),
      waitingPods: (claim) => this.#users.waitingFor(claim),
      tell: (object, type, reason, message) => this.#tell(object, type, reason, message),
      tellWaiting: (claim, type, reason, message) => {
        const nowMs = this.#client.timers.nowMs();
        const told = this.#told.get(key);
        const revision = stringAt(claim, 'metadata', 'resourceVersion');
        const isSame = told?.reason === reason && told.revision === revision;
        if (isSame && nowMs - told.atMs < this.#resyncMs) return;
        this.#told.set(key, { reason, revision, atMs: nowMs });
        this.#tell(claim, type, reason, message);
      },
    };
  }

  *#allClasses(): Generator<JsonObject> {
    for (const name of this.#classes.keys()) {
      const found = this.#classes.get(name);
      if (found !== undefined) yield found;
    }
  }

  #tell(object: JsonObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const metadata = objectAt(object, 'metadata');
    const namespace = stringAt(metadata, 'namespace');
    const kind = namespace === '' ? 'PersistentVolume' : 'PersistentVolumeClaim';
    const [name, uid] = [stringAt(metadata, 'name'), stringAt(metadata, 'uid')];
    this.#announce(kind, namespace, name, type, reason, message, uid);
  }
}

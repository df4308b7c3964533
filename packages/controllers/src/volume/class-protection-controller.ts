/**
 * Keeps VolumeAttributesClasses that are being deleted until no claim and no volume names them
 * (upstream's volumeattributesclass-protection).
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { groupVersionOf, type ApiResource } from '../framework/api-resources.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 1;
const VERSION = 'storage.k8s.io/v1';
const CLASSES = `/apis/${VERSION}/volumeattributesclasses`;
const FINALIZER = 'kubernetes.io/vac-protection';
const MARK = Buffer.from('olumeAttributesClassName"');
const MODIFIED = ['status', 'modifyVolumeStatus', 'targetVolumeAttributesClassName'] as const;

/** Works on names of classes. */
export class ClassProtectionController {
  readonly #options: ControllerContext;
  readonly #client: Client;
  readonly #workers: Workers<string>;
  #classes: ObjectCache | undefined;
  /** By class: the claims and volumes that name it. */
  readonly #users: Map<string, Set<string>> = new Map();

  constructor(options: ControllerContext) {
    this.#options = options;
    const { client, informers, onError } = options;
    this.#client = client;
    const queue = informers.queues.queue('vacprotection');
    this.#workers = new Workers(client.timers, WORKERS, (key) => this.#work(key), onError, queue);
  }

  /** Begins once the server has the kind; without it no claim can name a class. */
  setResources(found: readonly ApiResource[]): void {
    const isServed = found.some(
      (one) => groupVersionOf(one) === VERSION && one.resource === 'volumeattributesclasses',
    );
    if (this.#classes !== undefined || !isServed) return;
    const { informers } = this.#options;
    this.#classes = new ObjectCache(informers, CLASSES, (key, after) => {
      if (after !== undefined && workOf(after) !== 'none') this.#workers.add(key);
    });
    for (const resource of ['persistentvolumeclaims', 'persistentvolumes']) {
      new ObjectCache(
        informers,
        `/api/v1/${resource}`,
        (key, after, before) => this.#userChanged(`${resource} ${key}`, after, before),
        () => {},
        (bytes) => bytes.includes(MARK),
      );
    }
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #userChanged(user: string, after: JsonObject | undefined, before: JsonObject | undefined): void {
    const now = classesOf(after);
    for (const name of classesOf(before)) {
      if (now.has(name)) continue;
      const users = this.#users.get(name);
      if (users?.delete(user) !== true || users.size > 0) continue;
      this.#users.delete(name);
      this.#workers.add(name);
    }
    for (const name of now) {
      const users = this.#users.get(name);
      if (users === undefined) this.#users.set(name, new Set([user]));
      else users.add(user);
    }
  }

  async #work(name: string): Promise<WorkResult> {
    const found = this.#classes?.get(name);
    const work = found === undefined ? 'none' : workOf(found);
    if (found === undefined || work === 'none') return 'done';
    if (work === 'release' && this.#users.has(name)) return 'done';
    const others = listAt(found, 'metadata', 'finalizers').filter((one) => one !== FINALIZER);
    const finalizers: JsonValue[] = work === 'release' ? others : [...others, FINALIZER];
    const metadata = { ...objectAt(found, 'metadata'), finalizers };
    const body = { ...found, apiVersion: VERSION, kind: 'VolumeAttributesClass', metadata };
    const path = `${CLASSES}/${name}`;
    const answer = await this.#client.request({ method: 'PUT', path, body });
    return answer.ok || answer.code === 404 ? 'done' : 'retry';
  }
}

/** What is to be done with the finalizer of a class. */
function workOf(found: JsonObject): 'protect' | 'release' | 'none' {
  const isProtected = listAt(found, 'metadata', 'finalizers').includes(FINALIZER);
  const isGoing = stringAt(found, 'metadata', 'deletionTimestamp') !== '';
  if (isProtected === isGoing) return isGoing ? 'release' : 'protect';
  return 'none';
}

/** Asked for, in use, or on the way; a volume has only the first. */
function classesOf(user: JsonObject | undefined): ReadonlySet<string> {
  const names = [
    stringAt(user, 'spec', 'volumeAttributesClassName'),
    stringAt(user, 'status', 'currentVolumeAttributesClassName'),
    stringAt(user, ...MODIFIED),
  ];
  return new Set(names.filter((name) => name !== ''));
}

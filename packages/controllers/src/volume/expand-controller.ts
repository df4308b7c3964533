/**
 * Says of claims that ask for more than they have who will make their volumes larger: a program
 * outside, always. Claims of volumes whose plug-ins were moved to drivers are told the driver's
 * name, by which its resizer knows them (upstream's persistentvolume-expander).
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { Announce } from '../framework/event-recorder.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { migratedPluginOf } from './provisioning.ts';

const WORKERS = 10;
const RESIZER = 'volume.kubernetes.io/storage-resizer';
const REASON = 'ExternalExpanding';

export interface ExpanderOptions extends ControllerContext {
  readonly announce: Announce;
}

/** Works on `namespace/name` of claims. */
export class ExpanderController {
  readonly #client: Client;
  readonly #announce: Announce;
  readonly #workers: Workers<string>;
  /** Only bound claims that ask for more than they have. */
  readonly #claims: ObjectCache;

  constructor({ client, informers, announce, onError }: ExpanderOptions) {
    this.#client = client;
    this.#announce = announce;
    const queue = informers.queues.queue('volume_expand');
    this.#workers = new Workers(client.timers, WORKERS, (key) => this.#work(key), onError, queue);
    this.#claims = new ObjectCache(
      informers,
      '/api/v1/persistentvolumeclaims',
      (key, after, before) => {
        if (after !== undefined && isNews(after, before)) this.#workers.add(key);
      },
      () => {},
      (bytes) => isShort(parseJson(bytes.toString('utf8')) as JsonObject),
    );
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(key: string): Promise<WorkResult> {
    const claim = this.#claims.get(key);
    if (claim === undefined) return 'done';
    const name = stringAt(claim, 'spec', 'volumeName');
    const path = `/api/v1/persistentvolumes/${name}`;
    const volume = await this.#client.request({ method: 'GET', path });
    if (!volume.ok) return 'retry';
    const user = objectAt(volume.object, 'spec', 'claimRef');
    const isOurs = stringAt(user, 'uid') === stringAt(claim, 'metadata', 'uid');
    const namespace = stringAt(claim, 'metadata', 'namespace');
    if (!isOurs || stringAt(user, 'namespace') !== namespace) return 'retry';
    const migrated = migratedPluginOf(volume.object);
    if (migrated === undefined) {
      // A warning, as 1.31 has it where no plug-in of its own knows the volume.
      this.#tell(claim, 'Warning', 'waiting for an external controller to expand this PVC');
      return 'done';
    }
    const waits = 'waiting for external resizer to expand the pvc';
    this.#tell(claim, 'Normal', `CSI migration enabled for ${migrated.plugin}; ${waits}`);
    return this.#setResizer(claim, migrated.driver);
  }

  #tell(claim: JsonObject, type: 'Normal' | 'Warning', message: string): void {
    const namespace = stringAt(claim, 'metadata', 'namespace');
    const name = stringAt(claim, 'metadata', 'name');
    const uid = stringAt(claim, 'metadata', 'uid');
    this.#announce('PersistentVolumeClaim', namespace, name, type, REASON, message, uid);
  }

  async #setResizer(claim: JsonObject, driver: string): Promise<WorkResult> {
    if (stringAt(claim, 'metadata', 'annotations', RESIZER) === driver) return 'done';
    const namespace = stringAt(claim, 'metadata', 'namespace');
    const name = stringAt(claim, 'metadata', 'name');
    const uid = stringAt(claim, 'metadata', 'uid');
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`,
      contentType: CONTENT.mergePatch,
      body: { metadata: { uid, annotations: { [RESIZER]: driver } } },
    });
    return answer.ok || answer.code === 404 || answer.code === 409 ? 'done' : 'retry';
  }
}

const requested = (claim: JsonObject): string =>
  stringAt(claim, 'spec', 'resources', 'requests', 'storage');
const given = (claim: JsonObject): string => stringAt(claim, 'status', 'capacity', 'storage');

function isShort(claim: JsonObject): boolean {
  return stringAt(claim, 'status', 'phase') === 'Bound' && isMore(requested(claim), given(claim));
}

/** It is told again only when it asks for yet more, or was given some of it. */
function isNews(claim: JsonObject, before: JsonObject | undefined): boolean {
  if (before === undefined) return true;
  return isMore(requested(claim), requested(before)) || isMore(given(claim), given(before));
}

function isMore(amount: string, other: string): boolean {
  const [left, right] = [parseQuantity(amount), parseQuantity(other === '' ? '0' : other)];
  if (typeof left === 'string' || typeof right === 'string') return false;
  return left.compare(right) > 0;
}

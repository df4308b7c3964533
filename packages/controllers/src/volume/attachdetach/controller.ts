/**
 * Attaches the volumes of CSI drivers to the nodes of the pods that use them, and detaches them
 * afterwards: a VolumeAttachment asks the driver's external attacher, and the node's status says
 * what is attached, so that its kubelet mounts nothing else. One node is worked on at a time, so a
 * volume of one node is never promised to two. Nodes without the annotation are their kubelet's.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { Announce } from '../../framework/event-recorder.ts';
import { findCondition } from '../../framework/conditions.ts';
import { TAINT_OUT_OF_SERVICE } from '../../columns/node-flags.ts';
import { ObjectCache } from '../../framework/object-cache.ts';
import type { ControllerContext } from '../../framework/controller-context.ts';
import type { PodRows } from '../../framework/pod-rows.ts';
import type { Counter } from '../../framework/metrics-registry.ts';
import { attachMetrics } from './attach-metrics.ts';
import { Workers, type WorkResult } from '../../framework/workers.ts';
import {
  attachmentName,
  Attachments,
  csiVolume,
  csiVolumeNamed,
  OPERATION_MS,
  pause,
  type Attachment,
  type CsiVolume,
} from './attachments.ts';
import { PlacedClaims, type PlacedPod } from './placed-claims.ts';

const WORKERS = 1;
/** A node that is not ready keeps a volume that it may have mounted for so long. */
const UNMOUNT_MS: number = 6 * 60_000;
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const MANAGED = 'volumes.kubernetes.io/controller-managed-attach-detach';

interface Wanted {
  readonly volume: CsiVolume;
  /** Name of the PersistentVolume. */
  readonly source: string;
  readonly isShared: boolean;
  readonly pods: PlacedPod[];
}

export interface AttachOptions extends ControllerContext {
  readonly announce: Announce;
  readonly pods: PodRows;
  /** Time alone detaches nothing. */
  readonly neverForcesDetach?: boolean | undefined;
}

export class AttachController {
  readonly #client: Client;
  readonly #announce: Announce;
  /** After so long a volume of a lost node is detached. */
  readonly #unmountMs: number;
  readonly #workers: Workers<string>;
  readonly #nodes: ObjectCache;
  readonly #claims: ObjectCache;
  readonly #volumes: ObjectCache;
  readonly #drivers: ObjectCache;
  readonly #objects: ObjectCache;
  readonly #placed: PlacedClaims;
  readonly #actual = new Attachments();
  readonly #forced: Counter;
  /** Nodes that wait for a volume that another one has; told of it where true. */
  readonly #waiting: Map<string, Map<string, boolean>> = new Map();

  constructor(options: AttachOptions) {
    const { client, informers, pods, announce, onError } = options;
    this.#unmountMs = options.neverForcesDetach === true ? Infinity : UNMOUNT_MS;
    this.#client = client;
    this.#announce = announce;
    this.#forced = attachMetrics(informers.metrics, this.#actual);
    const queue = informers.queues.queue('pvcs');
    this.#workers = new Workers(client.timers, WORKERS, (key) => this.#work(key), onError, queue);
    const add = (node: string): void => this.#workers.add(node);
    this.#placed = new PlacedClaims(pods, add);
    const cache = (path: string, text: string, changed: (object: JsonObject) => void) => {
      const word = Buffer.from(text);
      return new ObjectCache(
        informers,
        path,
        (_key, after, before) => changed(after ?? before ?? {}),
        () => {},
        (object) => object.includes(word),
      );
    };
    const claimChanged = (namespace: string, name: string): void => {
      for (const node of this.#placed.nodesOf(`${namespace}/${name}`)) add(node);
    };
    const nameOf = (object: JsonObject): string => stringAt(object, 'metadata', 'name');
    this.#nodes = cache('/api/v1/nodes', '"volumes', (node) => add(nameOf(node)));
    this.#claims = cache('/api/v1/persistentvolumeclaims', '"volumeName"', (claim) =>
      claimChanged(stringAt(claim, 'metadata', 'namespace'), nameOf(claim)),
    );
    this.#volumes = cache('/api/v1/persistentvolumes', '"csi"', (volume) => {
      const claim = objectAt(volume, 'spec', 'claimRef');
      claimChanged(stringAt(claim, 'namespace'), stringAt(claim, 'name'));
    });
    this.#drivers = cache('/apis/storage.k8s.io/v1/csidrivers', '"attachRequired"', () => {});
    this.#objects = cache(ATTACHMENTS, '', (one) => add(stringAt(one, 'spec', 'nodeName')));
  }

  start(): void {
    this.#recall();
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /** What was attached before this program began. */
  #recall(): void {
    for (const name of this.#nodes.keys()) {
      for (const one of listAt(this.#nodes.get(name), 'status', 'volumesAttached')) {
        const volume = csiVolumeNamed(stringAt(one, 'name'));
        if (volume !== undefined) this.#actual.add(volume, name, 'attached');
      }
    }
    for (const name of this.#objects.keys()) {
      const spec = objectAt(this.#objects.get(name), 'spec');
      const volume = this.#csiOf(stringAt(spec, 'source', 'persistentVolumeName'));
      const node = stringAt(spec, 'nodeName');
      if (volume === undefined || this.#actual.get(volume.name, node) !== undefined) continue;
      this.#actual.add(volume, node, 'uncertain');
    }
  }

  #csiOf(persistentVolume: string): CsiVolume | undefined {
    const csi = objectAt(this.#volumes.get(persistentVolume), 'spec', 'csi');
    if (csi === undefined) return undefined;
    return csiVolume(stringAt(csi, 'driver'), stringAt(csi, 'volumeHandle'));
  }

  async #work(node: string): Promise<WorkResult> {
    const wanted = this.#wantedOn(node);
    const object = this.#nodes.get(node);
    let waitMs = Infinity;
    for (const one of this.#actual.onNode(node)) {
      // A node that is gone uses what it used last.
      if (object !== undefined) one.isInUse = isInUse(object, one);
      waitMs = Math.min(waitMs, this.#progress(one, wanted.get(one.volume.name)));
    }
    for (const one of this.#actual.onNode(node)) {
      if (!wanted.has(one.volume.name)) waitMs = Math.min(waitMs, await this.#detach(one));
    }
    for (const one of wanted.values()) {
      waitMs = Math.min(waitMs, await this.#attach(node, one));
    }
    if (!(await this.#report(node))) return 'retry';
    return waitMs === Infinity ? 'done' : { againMs: Math.max(1, waitMs) };
  }

  /** What the pods of a node need; a claim counts once it and its volume name each other. */
  #wantedOn(node: string): Map<string, Wanted> {
    const found = new Map<string, Wanted>();
    const isManaged = objectAt(this.#nodes.get(node), 'metadata', 'annotations')?.[MANAGED];
    // Of a node that is gone the pods go in time; until then nothing new is attached.
    const isKnown = this.#actual.onNode(node).length > 0 && this.#nodes.get(node) === undefined;
    if (isManaged === undefined && !isKnown) return found;
    for (const pod of this.#placed.onNode(node)) {
      for (const key of pod.claims) {
        const claim = this.#claims.get(key);
        if (stringAt(claim, 'status', 'phase') !== 'Bound') continue;
        const source = stringAt(claim, 'spec', 'volumeName');
        const spec = objectAt(this.#volumes.get(source), 'spec');
        const uid = stringAt(spec, 'claimRef', 'uid');
        const volume = this.#csiOf(source);
        if (volume === undefined || uid !== stringAt(claim, 'metadata', 'uid')) continue;
        const driver = objectAt(this.#drivers.get(volume.driver), 'spec');
        if (valueAt(driver, 'attachRequired') === false) continue;
        const modes = listAt(spec, 'accessModes');
        const isMany = modes.includes('ReadWriteMany') || modes.includes('ReadOnlyMany');
        const isShared = modes.length === 0 || isMany;
        const known = found.get(volume.name);
        if (known === undefined) found.set(volume.name, { volume, source, isShared, pods: [pod] });
        else if (!known.pods.includes(pod)) known.pods.push(pod);
      }
    }
    return found;
  }

  /** Takes in what the attacher did. Returns when the operation under way is given up. */
  #progress(one: Attachment, wanted: Wanted | undefined): number {
    const object = this.#objects.get(attachmentName(one.volume, one.node));
    const leftMs = one.sinceMs + OPERATION_MS - this.#client.timers.nowMs();
    if (one.state === 'attached') {
      // Somebody took it away, or it was lost: it is attached anew if it is wanted.
      const isThere = valueAt(object, 'status', 'attached') === true;
      if (!isThere && wanted !== undefined) this.#gone(one);
      return Infinity;
    }
    if (one.state === 'uncertain') return Infinity;
    if (one.state === 'detaching') {
      if (object === undefined) return this.#gone(one);
      const isRefused = objectAt(object, 'status', 'detachError') !== undefined;
      if (!isRefused && leftMs > 0) return leftMs;
      one.isReported = true;
      one.state = 'attached';
      pause(one, this.#client.timers.nowMs());
      return Infinity;
    }
    const isGoing = stringAt(object, 'metadata', 'deletionTimestamp') !== '';
    const refusal = objectAt(object, 'status', 'attachError');
    if (isGoing) return this.#failed(one, wanted, 'volume attachment is being deleted');
    if (valueAt(object, 'status', 'attached') === true) return this.#attached(one, wanted);
    if (refusal !== undefined) return this.#failed(one, wanted, stringAt(refusal, 'message'));
    if (leftMs > 0) return leftMs;
    const { driver, handle } = one.volume;
    const text = `external-attacher of ${driver} CSI driver to attach volume ${handle}`;
    return this.#failed(one, wanted, `timed out waiting for ${text}`);
  }

  #attached(one: Attachment, wanted: Wanted | undefined): number {
    Object.assign(one, { state: 'attached', isReported: true, pauseMs: 0, pausedUntilMs: 0 });
    if (wanted === undefined) return Infinity;
    // Upstream's text ends with the space before what would follow.
    const text = `AttachVolume.Attach succeeded for volume "${wanted.source}" `;
    this.#tell(wanted.pods, 'Normal', 'SuccessfulAttachVolume', text);
    return Infinity;
  }

  #failed(one: Attachment, wanted: Wanted | undefined, why: string): number {
    one.state = 'uncertain';
    pause(one, this.#client.timers.nowMs());
    if (wanted !== undefined) {
      const text = `AttachVolume.Attach failed for volume "${wanted.source}" : ${why}`;
      this.#tell(wanted.pods, 'Warning', 'FailedAttachVolume', text);
    }
    return one.pauseMs;
  }

  #gone(one: Attachment): number {
    this.#actual.remove(one);
    const waiting = this.#waiting.get(one.volume.name);
    this.#waiting.delete(one.volume.name);
    for (const node of waiting?.keys() ?? []) this.#workers.add(node);
    return Infinity;
  }

  #tell(
    pods: readonly PlacedPod[],
    type: 'Normal' | 'Warning',
    reason: string,
    text: string,
  ): void {
    for (const { namespace, name, uid } of pods) {
      this.#announce('Pod', namespace, name, type, reason, text, uid);
    }
  }

  /** Returns when it should be looked at again. */
  async #attach(node: string, wanted: Wanted): Promise<number> {
    const nowMs = this.#client.timers.nowMs();
    const { volume } = wanted;
    const known = this.#actual.get(volume.name, node);
    if (known !== undefined) known.unwantedMs = 0;
    if (known !== undefined && known.state !== 'uncertain') return Infinity;
    if (known !== undefined && known.pausedUntilMs > nowMs) return known.pausedUntilMs - nowMs;
    const others = this.#actual.ofVolume(volume.name).filter((one) => one.node !== node);
    if (!wanted.isShared && others.some((one) => one.state !== 'uncertain')) {
      this.#wait(node, wanted, others);
      return Infinity;
    }
    const one = known ?? this.#actual.add(volume, node, 'attaching');
    Object.assign(one, { state: 'attaching', sinceMs: nowMs });
    const name = attachmentName(volume, node);
    if (this.#objects.get(name) === undefined) {
      const source = { persistentVolumeName: wanted.source };
      const body = {
        ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name } },
        spec: { attacher: volume.driver, source, nodeName: node },
      };
      const answer = await this.#client.request({ method: 'POST', path: ATTACHMENTS, body });
      if (!answer.ok && answer.code !== 409) {
        const why = `attacher.Attach failed: ${answer.status.message ?? `code ${answer.code}`}`;
        return this.#failed(one, wanted, why);
      }
    }
    return this.#progress(one, wanted);
  }

  /** Another node has the volume; the pods that wait are told once. */
  #wait(node: string, { volume, source, pods }: Wanted, others: readonly Attachment[]): void {
    const waiting = this.#waiting.get(volume.name) ?? new Map<string, boolean>();
    this.#waiting.set(volume.name, waiting);
    const isHeld = others.some((one) => one.state === 'attached');
    const isTold = waiting.get(node) === true;
    waiting.set(node, isTold || isHeld);
    if (isTold || !isHeld) return;
    const users = others.flatMap(
      (other) => this.#wantedOn(other.node).get(volume.name)?.pods ?? [],
    );
    for (const pod of pods) {
      const text = `Multi-Attach error for volume "${source}" ${multiAttachText(pod, users)}`;
      this.#tell([pod], 'Warning', 'FailedAttachVolume', text);
    }
  }

  async #detach(one: Attachment): Promise<number> {
    const nowMs = this.#client.timers.nowMs();
    if (one.state === 'attaching' || one.state === 'detaching') return Infinity;
    if (one.pausedUntilMs > nowMs) return one.pausedUntilMs - nowMs;
    if (one.unwantedMs === 0) one.unwantedMs = nowMs;
    const node = this.#nodes.get(one.node);
    const ready = findCondition(listAt(node, 'status', 'conditions'), 'Ready');
    const isHealthy = stringAt(ready, 'status') === 'True';
    const isExpired = nowMs - one.unwantedMs >= this.#unmountMs;
    const isOut = listAt(node, 'spec', 'taints').some(
      (taint) => stringAt(taint, 'key') === TAINT_OUT_OF_SERVICE,
    );
    if (one.isInUse && !isOut && (isHealthy || !isExpired)) {
      return isHealthy ? Infinity : one.unwantedMs + this.#unmountMs - nowMs;
    }
    const isSafe = isOut || isExpired || (await this.#isUnmounted(one));
    one.isReported = false;
    if (!isSafe || !(await this.#report(one.node))) return this.#kept(one);
    const path = `${ATTACHMENTS}/${attachmentName(one.volume, one.node)}`;
    const answer = await this.#client.request({ method: 'DELETE', path, body: {} });
    if (!answer.ok && answer.code !== 404) return this.#kept(one);
    if (!answer.ok) return this.#gone(one);
    const isForced = one.isInUse && (isOut || isExpired);
    if (isForced) this.#forced.add([isOut ? 'out-of-service' : 'timeout']);
    Object.assign(one, { state: 'detaching', sinceMs: nowMs });
    return this.#progress(one, undefined);
  }

  #kept(one: Attachment): number {
    one.isReported = one.state === 'attached';
    pause(one, this.#client.timers.nowMs());
    return one.pauseMs;
  }

  /** The node itself is asked: the view of it may be behind. A node that is gone uses nothing. */
  async #isUnmounted(one: Attachment): Promise<boolean> {
    const path = `/api/v1/nodes/${one.node}`;
    const answer = await this.#client.request({ method: 'GET', path });
    return answer.ok ? !isInUse(answer.object, one) : answer.code === 404;
  }

  /** Makes the node's status say what is attached; volumes of other plugins stay. */
  async #report(name: string): Promise<boolean> {
    const node = this.#nodes.get(name);
    if (node === undefined) return true;
    const before = listAt(node, 'status', 'volumesAttached');
    const isOther = (one: JsonValue): boolean =>
      csiVolumeNamed(stringAt(one, 'name')) === undefined;
    const ours = this.#actual.onNode(name).filter((one) => one.isReported);
    const after = [
      ...before.filter(isOther),
      ...ours.map(({ volume }) => ({ name: volume.name, devicePath: '' })),
    ];
    const names = (list: readonly JsonValue[]): string[] =>
      list.map((one) => stringAt(one, 'name')).toSorted();
    if (equals(names(before), names(after))) return true;
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}/status`,
      contentType: CONTENT.strategicPatch,
      body: { status: { volumesAttached: after.length === 0 ? null : after } },
    });
    return answer.ok || answer.code === 404;
  }
}

function isInUse(node: JsonObject, one: Attachment): boolean {
  return listAt(node, 'status', 'volumesInUse').includes(one.volume.name);
}

/** Pods of other namespaces are counted, not named. */
function multiAttachText(pod: PlacedPod, users: readonly PlacedPod[]): string {
  if (users.length === 0) {
    return "Volume is already exclusively attached to one node and can't be attached to another";
  }
  const near = users.filter((one) => one.namespace === pod.namespace).map((one) => one.name);
  const far = `${users.length - near.length} pod(s) in different namespaces`;
  if (near.length === 0) return `Volume is already used by ${far}`;
  const and = near.length < users.length ? ` and ${far}` : '';
  return `Volume is already used by pod(s) ${near.join(', ')}${and}`;
}

/**
 * Which volumes are attached to which nodes as far as this program knows, and how far an operation
 * has come. Names are upstream's: other programs find attachments by them.
 */
import { assert } from '@megaplane/base/assert';
import { createHash } from 'node:crypto';

/**
 * An external attacher has so long for what it was asked to do.
 * After a failure the next try waits, twice as long each time, up to the longest pause.
 */
export const OPERATION_MS = 120_000;
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 122_000;

const CSI = 'kubernetes.io/csi/';

/** A volume of a CSI driver; `name` is what `status.volumesAttached` calls it. */
export interface CsiVolume {
  readonly name: string;
  readonly driver: string;
  readonly handle: string;
}

export function csiVolume(driver: string, handle: string): CsiVolume {
  return { name: `${CSI}${driver}^${handle}`, driver, handle };
}

/** Undefined for volumes of other plugins. */
export function csiVolumeNamed(name: string): CsiVolume | undefined {
  const at = name.indexOf('^');
  if (!name.startsWith(CSI) || at < 0) return undefined;
  return csiVolume(name.slice(CSI.length, at), name.slice(at + 1));
}

/** Name of the VolumeAttachment of a volume and a node. */
export function attachmentName({ driver, handle }: CsiVolume, node: string): string {
  return `csi-${createHash('sha256')
    .update(handle + driver + node)
    .digest('hex')}`;
}

export interface Attachment {
  readonly volume: CsiVolume;
  readonly node: string;
  /** `uncertain`: an attempt failed, or somebody else asked for it; nothing is under way. */
  state: 'attaching' | 'uncertain' | 'attached' | 'detaching';
  /** Whether the node's status says so. */
  isReported: boolean;
  /** Whether the node's kubelet says that it has it mounted. */
  isInUse: boolean;
  /** When the operation that is under way began. */
  sinceMs: number;
  /** When it was first wanted gone; 0 while it is wanted. */
  unwantedMs: number;
  pauseMs: number;
  pausedUntilMs: number;
}

export class Attachments {
  readonly #onNode: Map<string, Map<string, Attachment>> = new Map();
  readonly #ofVolume: Map<string, Map<string, Attachment>> = new Map();

  get(volume: string, node: string): Attachment | undefined {
    return this.#onNode.get(node)?.get(volume);
  }

  onNode(node: string): Attachment[] {
    return [...(this.#onNode.get(node)?.values() ?? [])];
  }

  ofVolume(volume: string): Attachment[] {
    return [...(this.#ofVolume.get(volume)?.values() ?? [])];
  }

  add(volume: CsiVolume, node: string, state: Attachment['state']): Attachment {
    assert(this.get(volume.name, node) === undefined, 'a volume is attached to a node once');
    const flags = { isReported: state === 'attached', isInUse: false };
    const none = { sinceMs: 0, unwantedMs: 0, pauseMs: 0, pausedUntilMs: 0 };
    const one: Attachment = { volume, node, state, ...flags, ...none };
    put(this.#onNode, node, volume.name, one);
    put(this.#ofVolume, volume.name, node, one);
    return one;
  }

  all(): Attachment[] {
    return [...this.#onNode.values()].flatMap((volumes) => [...volumes.values()]);
  }

  remove({ volume, node }: Attachment): void {
    const byVolume = this.#ofVolume.get(volume.name)?.get(node);
    assert(byVolume === this.get(volume.name, node), 'both indexes hold the same attachments');
    cut(this.#onNode, node, volume.name);
    cut(this.#ofVolume, volume.name, node);
  }
}

/** The next try waits; until then the attachment is left alone. */
export function pause(one: Attachment, nowMs: number): void {
  one.pauseMs = one.pauseMs === 0 ? PAUSE_MS : Math.min(PAUSE_MS_MAX, one.pauseMs * 2);
  one.pausedUntilMs = nowMs + one.pauseMs;
}

type Index = Map<string, Map<string, Attachment>>;

function put(index: Index, at: string, key: string, one: Attachment): void {
  const found = index.get(at);
  if (found === undefined) index.set(at, new Map([[key, one]]));
  else found.set(key, one);
}

function cut(index: Index, at: string, key: string): void {
  const found = index.get(at);
  if (found?.delete(key) === true && found.size === 0) index.delete(at);
}

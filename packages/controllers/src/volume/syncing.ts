/** What to do with one claim or one volume: the cases of upstream's binder, in its order. */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import {
  claimKeyOf,
  classOf,
  hasClass,
  isFor,
  keyOfClaim,
  mismatchOf,
  volumeModeOf,
} from './claim-match.ts';
import * as provisioning from './provisioning.ts';
import { recycle } from './recycler.ts';
import { annotated, type VolumeWriter } from './volume-writer.ts';

/** `again`: nothing is wrong, and it is worth another look after a while. */
export type Synced = 'done' | 'retry' | 'again';

export interface BinderView {
  readonly client: Client;
  readonly writer: VolumeWriter;
  readonly volumeOf: (name: string) => JsonObject | undefined;
  readonly claimOf: (key: string) => JsonObject | undefined;
  readonly classOf: (name: string) => JsonObject | undefined;
  readonly defaultClass: () => string;
  /** A claim without a class was given the default one, or not. */
  readonly defaulted: (isWell: boolean) => void;
  /** Chooses a volume and takes it off the offer; `giveBack` where it was not bound after all. */
  readonly match: (claim: JsonObject, isDelayed: boolean) => string | undefined;
  readonly giveBack: (name: string) => void;
  readonly waitingPods: (claimKey: string) => readonly string[];
  readonly tell: (
    object: JsonObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ) => void;
  /** An event of a claim that waits, at most one of a reason in 15 s. */
  readonly tellWaiting: (
    claim: JsonObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ) => void;
}

const LOST = 'Data on the volume is lost!';

const of = (isWritten: boolean): Synced => (isWritten ? 'done' : 'retry');

export async function syncClaim(view: BinderView, claim: JsonObject): Promise<Synced> {
  const isBound = provisioning.BIND_COMPLETED in (objectAt(claim, 'metadata', 'annotations') ?? {});
  const name = stringAt(claim, 'spec', 'volumeName');
  if (isBound) return syncBoundClaim(view, claim, name);
  return name === '' ? syncFreeClaim(view, claim) : syncAskingClaim(view, claim, name);
}

/** A claim that takes any volume that suits it. */
async function syncFreeClaim(view: BinderView, claim: JsonObject): Promise<Synced> {
  const className = classOf(claim);
  const storageClass = className === '' ? undefined : view.classOf(className);
  const mode = stringAt(storageClass, 'volumeBindingMode');
  const isDelayed = mode === 'WaitForFirstConsumer';
  const chosen = view.match(claim, isDelayed);
  const volume = chosen === undefined ? undefined : view.volumeOf(chosen);
  if (chosen !== undefined && volume !== undefined) {
    const isWritten = await view.writer.bind(volume, claim);
    if (!isWritten) view.giveBack(chosen);
    return of(isWritten);
  }
  if (!hasClass(claim)) {
    const storageClassName = view.defaultClass();
    if (storageClassName !== '') {
      const spec = { ...objectAt(claim, 'spec'), storageClassName };
      const isWell = (await view.writer.claim({ ...claim, spec })) !== undefined;
      view.defaulted(isWell);
      return of(isWell);
    }
  }
  const annotations = objectAt(claim, 'metadata', 'annotations') ?? {};
  if (isDelayed && !(provisioning.SELECTED_NODE in annotations)) {
    tellDelayed(view, claim);
  } else if (className !== '') {
    return provision(view, claim, className, storageClass);
  } else {
    const text = 'no persistent volumes available for this claim and no storage class is set';
    view.tellWaiting(claim, 'Normal', 'FailedBinding', text);
  }
  const isWritten = (await view.writer.claimStatus(claim, 'Pending')) !== undefined;
  return isWritten ? 'again' : 'retry';
}

function tellDelayed(view: BinderView, claim: JsonObject): void {
  const pods = view.waitingPods(keyOfClaim(claim));
  if (pods.length === 0) {
    const text = 'waiting for first consumer to be created before binding';
    view.tellWaiting(claim, 'Normal', 'WaitForFirstConsumer', text);
    return;
  }
  const who = pods.length === 1 ? `pod ${pods[0]}` : `pods ${pods.join(',')}`;
  view.tellWaiting(claim, 'Normal', 'WaitForPodScheduled', `waiting for ${who} to be scheduled`);
}

/** Asks the program of the class for a volume, through an annotation. */
async function provision(
  view: BinderView,
  claim: JsonObject,
  className: string,
  storageClass: JsonObject | undefined,
): Promise<Synced> {
  if (storageClass === undefined) {
    const text = `storageclass.storage.k8s.io "${className}" not found`;
    view.tellWaiting(claim, 'Warning', 'ProvisioningFailed', text);
    return 'again';
  }
  const provisioner = provisioning.provisionerOf(storageClass);
  if (provisioner.kind === 'none') {
    view.tellWaiting(claim, 'Warning', 'ProvisioningFailed', provisioner.text);
    return 'again';
  }
  const { name } = provisioner;
  if (stringAt(claim, 'metadata', 'annotations', provisioning.PROVISIONER) !== name) {
    const asked = annotated(claim, {
      [provisioning.PROVISIONER_BETA]: name,
      [provisioning.PROVISIONER]: name,
    });
    if ((await view.writer.claim(asked)) === undefined) return 'retry';
  }
  const text =
    `Waiting for a volume to be created either by the external provisioner '${name}' or ` +
    'manually by the system administrator. If volume creation is delayed, please verify that ' +
    'the provisioner is running and correctly registered.';
  view.tellWaiting(claim, 'Normal', 'ExternalProvisioning', text);
  return 'again';
}

/** A claim that asks for one volume by name. */
async function syncAskingClaim(view: BinderView, claim: JsonObject, name: string): Promise<Synced> {
  const volume = view.volumeOf(name);
  const pending = async (): Promise<Synced> =>
    (await view.writer.claimStatus(claim, 'Pending')) === undefined ? 'retry' : 'again';
  if (volume === undefined) return pending();
  if (claimKeyOf(volume) === '') {
    const mismatch = mismatchOf(volume, claim);
    if (mismatch === undefined) return of(await view.writer.bind(volume, claim));
    const text = `Cannot bind to requested volume "${name}": ${mismatch}`;
    view.tellWaiting(claim, 'Warning', 'VolumeMismatch', text);
    return pending();
  }
  if (isFor(volume, claim)) return of(await view.writer.bind(volume, claim));
  const text = `volume "${name}" already bound to a different claim.`;
  view.tellWaiting(claim, 'Warning', 'FailedBinding', text);
  return pending();
}

async function syncBoundClaim(view: BinderView, claim: JsonObject, name: string): Promise<Synced> {
  const lose = async (reason: string, message: string): Promise<Synced> => {
    if (stringAt(claim, 'status', 'phase') !== 'Lost') {
      if ((await view.writer.claimStatus(claim, 'Lost')) === undefined) return 'retry';
      view.tell(claim, 'Warning', reason, message);
    }
    return 'done';
  };
  if (name === '') {
    return lose('ClaimLost', `Bound claim has lost reference to PersistentVolume. ${LOST}`);
  }
  const volume = view.volumeOf(name);
  if (volume === undefined) {
    return lose('ClaimLost', `Bound claim has lost its PersistentVolume. ${LOST}`);
  }
  const holder = stringAt(volume, 'spec', 'claimRef', 'uid');
  if (claimKeyOf(volume) === '' || holder === stringAt(claim, 'metadata', 'uid')) {
    return of(await view.writer.bind(volume, claim));
  }
  const text = 'Two claims are bound to the same volume, this one is bound incorrectly';
  return lose('ClaimMisbound', text);
}

export async function syncVolume(view: BinderView, volume: JsonObject): Promise<Synced> {
  const { writer } = view;
  const uid = stringAt(volume, 'spec', 'claimRef', 'uid');
  if (uid === '') return of((await writer.phase(volume, 'Available')) !== undefined);
  const found = await claimOf(view, volume);
  if (found === 'unknown') return 'retry';
  const claim =
    found !== undefined && stringAt(found, 'metadata', 'uid') === uid ? found : undefined;
  if (claim === undefined) return release(view, volume);
  const named = stringAt(claim, 'spec', 'volumeName');
  if (named === stringAt(volume, 'metadata', 'name')) {
    return of((await writer.phase(volume, 'Bound')) !== undefined);
  }
  if (named !== '') {
    const isMade =
      provisioning.PROVISIONED_BY in (objectAt(volume, 'metadata', 'annotations') ?? {});
    const policy = stringAt(volume, 'spec', 'persistentVolumeReclaimPolicy');
    if (isMade && policy === 'Delete') return release(view, volume);
    return of(await writer.unbind(volume));
  }
  if (volumeModeOf(volume) !== volumeModeOf(claim)) tellModes(view, volume, claim);
  return 'done';
}

/** The claim that a volume names: before it counts as gone, the server itself says so. */
async function claimOf(
  view: BinderView,
  volume: JsonObject,
): Promise<JsonObject | undefined | 'unknown'> {
  const key = claimKeyOf(volume);
  const uid = stringAt(volume, 'spec', 'claimRef', 'uid');
  const known = view.claimOf(key);
  if (known !== undefined && stringAt(known, 'metadata', 'uid') === uid) return known;
  if (['Released', 'Failed'].includes(stringAt(volume, 'status', 'phase'))) return known;
  const [namespace = '', name = ''] = key.split('/');
  const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`;
  const answer = await view.client.request({ method: 'GET', path });
  if (answer.ok) return answer.object;
  return answer.code === 404 ? undefined : 'unknown';
}

function tellModes(view: BinderView, volume: JsonObject, claim: JsonObject): void {
  const [ofVolume, ofClaim] = [volume, claim].map((one) => stringAt(one, 'metadata', 'name'));
  const why = 'due to incompatible volumeMode.';
  const toClaim = `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${ofClaim}"`;
  view.tell(volume, 'Warning', 'VolumeMismatch', `${toClaim} ${why}`);
  const toVolume = `Cannot bind PersistentVolume "${ofVolume}" to requested PersistentVolumeClaim`;
  view.tell(claim, 'Warning', 'VolumeMismatch', `${toVolume} ${why}`);
}

/** The claim is gone: the volume is Released, and its policy says what becomes of it. */
async function release(view: BinderView, volume: JsonObject): Promise<Synced> {
  const phase = stringAt(volume, 'status', 'phase');
  const released = phase === 'Failed' ? volume : await view.writer.phase(volume, 'Released');
  if (released === undefined) return 'retry';
  const policy = stringAt(volume, 'spec', 'persistentVolumeReclaimPolicy');
  if (policy !== 'Delete' && policy !== 'Recycle') return 'done';
  if (policy === 'Recycle') return reclaimByRecycling(view, released);
  const text = provisioning.deletionFailure(released);
  if (text === '' || phase === 'Failed') return 'done';
  return fail(view, released, 'VolumeFailedDelete', text);
}

async function reclaimByRecycling(view: BinderView, volume: JsonObject): Promise<Synced> {
  const reason = 'VolumeFailedRecycle';
  const outcome = await recycle(view.client, volume);
  switch (outcome.kind) {
    case 'impossible':
      return fail(view, volume, reason, 'No recycler plugin found for the volume!');
    case 'busy':
      return 'again';
    case 'failed': {
      const told = await fail(view, volume, reason, outcome.message);
      return told === 'done' ? 'again' : told;
    }
    case 'recycled':
      view.tell(volume, 'Normal', 'VolumeRecycled', 'Volume recycled');
      return of(await view.writer.unbind(volume));
  }
}

async function fail(
  view: BinderView,
  volume: JsonObject,
  reason: string,
  text: string,
): Promise<Synced> {
  if (stringAt(volume, 'status', 'phase') === 'Failed') return 'done';
  if ((await view.writer.phase(volume, 'Failed', text)) === undefined) return 'retry';
  view.tell(volume, 'Warning', reason, text);
  return 'done';
}

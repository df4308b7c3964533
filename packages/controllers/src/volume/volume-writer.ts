/**
 * Writes of the binder: a volume, a claim, and their status. Each is made on what was last seen or
 * written of the object; undefined where the server did not take it, to be tried again later.
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from './provisioning.ts';
import { capacityOf, isFor, keyOfClaim, modesOf, quantityAt } from './claim-match.ts';

export const VOLUMES = '/api/v1/persistentvolumes';

export type Written = JsonObject | undefined;

export class VolumeWriter {
  readonly #client: Client;
  /** Told of the object that the server answered. */
  readonly #written: (kind: 'volume' | 'claim', object: JsonObject) => void;

  constructor(client: Client, written: (kind: 'volume' | 'claim', object: JsonObject) => void) {
    this.#client = client;
    this.#written = written;
  }

  async volume(volume: JsonObject): Promise<Written> {
    const path = `${VOLUMES}/${stringAt(volume, 'metadata', 'name')}`;
    return this.#put('volume', path, { ...volume, apiVersion: 'v1', kind: 'PersistentVolume' });
  }

  /** Sets the phase; the object itself where it has it already. */
  async phase(volume: JsonObject, phase: string, message = ''): Promise<Written> {
    if (stringAt(volume, 'status', 'phase') === phase) return volume;
    const name = stringAt(volume, 'metadata', 'name');
    const { message: _, ...status } = objectAt(volume, 'status') ?? {};
    return this.#put('volume', `${VOLUMES}/${name}/status`, {
      ...volume,
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      status: { ...status, phase, ...(message === '' ? {} : { message }) },
    });
  }

  async claim(claim: JsonObject): Promise<Written> {
    return this.#put('claim', pathOfClaim(claim), {
      ...claim,
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
    });
  }

  /** Sets what the status says of phase and volume; the object itself where nothing changes. */
  async claimStatus(claim: JsonObject, phase: string, volume?: JsonObject): Promise<Written> {
    const before = objectAt(claim, 'status') ?? {};
    const status: JsonObject = { ...before, phase };
    if (volume === undefined) {
      delete status['accessModes'];
      delete status['capacity'];
    } else {
      status['accessModes'] = modesOf(volume);
      // A claim that is bound can be smaller than its volume on purpose, while it grows.
      const isBecoming = stringAt(before, 'phase') !== phase;
      const has = quantityAt(claim, 'status', 'capacity', 'storage');
      if (isBecoming && has.compare(capacityOf(volume)) !== 0) {
        status['capacity'] = objectAt(volume, 'spec', 'capacity') ?? {};
      }
      const attributes = stringAt(volume, 'spec', 'volumeAttributesClassName');
      if (isBecoming && attributes !== '') status['currentVolumeAttributesClassName'] = attributes;
    }
    if (equals(before, status)) return claim;
    return this.#put('claim', `${pathOfClaim(claim)}/status`, {
      ...claim,
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      status,
    });
  }

  /**
   * Ties both to each other in an order that survives a failure after each step: the volume names
   * the claim, shows so, the claim names the volume, shows so. True when all four are written.
   */
  async bind(volume: JsonObject, claim: JsonObject): Promise<boolean> {
    const named = await this.#nameClaim(volume, claim);
    const bound = named && (await this.phase(named, 'Bound'));
    if (bound === undefined) return false;
    const naming = await this.#nameVolume(claim, stringAt(bound, 'metadata', 'name'));
    return naming !== undefined && (await this.claimStatus(naming, 'Bound', bound)) !== undefined;
  }

  async #nameClaim(volume: JsonObject, claim: JsonObject): Promise<Written> {
    const uid = stringAt(claim, 'metadata', 'uid');
    const isOurs = !isFor(volume, claim);
    if (!isOurs && stringAt(volume, 'spec', 'claimRef', 'uid') === uid) return volume;
    const [namespace = '', name = ''] = keyOfClaim(claim).split('/');
    const resourceVersion = stringAt(claim, 'metadata', 'resourceVersion');
    const claimRef = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      ...{ namespace, name, uid, resourceVersion },
    };
    const next = isOurs ? annotated(volume, { [BOUND_BY_CONTROLLER]: 'yes' }) : volume;
    return this.volume({ ...next, spec: { ...objectAt(volume, 'spec'), claimRef } });
  }

  async #nameVolume(claim: JsonObject, volumeName: string): Promise<Written> {
    const isNamed = stringAt(claim, 'spec', 'volumeName') === volumeName;
    const annotations = objectAt(claim, 'metadata', 'annotations') ?? {};
    if (isNamed && BIND_COMPLETED in annotations) return claim;
    const marks = { [BIND_COMPLETED]: 'yes', ...(isNamed ? {} : { [BOUND_BY_CONTROLLER]: 'yes' }) };
    const spec = { ...objectAt(claim, 'spec'), volumeName };
    return this.claim({ ...annotated(claim, marks), spec });
  }

  /** Takes back what this controller tied; of what a user tied only the uid goes. */
  async unbind(volume: JsonObject): Promise<boolean> {
    const annotations = { ...objectAt(volume, 'metadata', 'annotations') };
    const { claimRef, ...spec } = objectAt(volume, 'spec') ?? {};
    const metadata = { ...objectAt(volume, 'metadata') };
    let next: JsonObject;
    if (BOUND_BY_CONTROLLER in annotations) {
      delete annotations[BOUND_BY_CONTROLLER];
      metadata['annotations'] = annotations;
      next = { ...volume, metadata, spec };
    } else {
      const { uid: _, ...reference } = objectAt({ claimRef: claimRef ?? null }, 'claimRef') ?? {};
      next = { ...volume, spec: { ...spec, claimRef: reference } };
    }
    const written = await this.volume(next);
    return written !== undefined && (await this.phase(written, 'Available')) !== undefined;
  }

  async #put(kind: 'volume' | 'claim', path: string, body: JsonObject): Promise<Written> {
    const answer = await this.#client.request({ method: 'PUT', path, body });
    if (!answer.ok) return undefined;
    this.#written(kind, answer.object);
    return answer.object;
  }
}

export function annotated(object: JsonObject, more: JsonObject): JsonObject {
  const metadata = objectAt(object, 'metadata');
  const annotations = { ...objectAt(metadata, 'annotations'), ...more };
  return { ...object, metadata: { ...metadata, annotations } };
}

function pathOfClaim(claim: JsonObject): string {
  const [namespace = '', name = ''] = keyOfClaim(claim).split('/');
  return `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`;
}

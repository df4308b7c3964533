/**
 * Values as kube-apiserver keeps them in etcd, and the form in which they are kept here.
 *
 * Both ends of one table: what another API server wrote is read whatever its media type (protobuf,
 * JSON), and what is written is what `--storage-media-type` says. A value that cannot be read is
 * kept as it is, so that nothing is lost; who asks for it gets an error.
 */
import { encodeCanonical, headOf, storedForm } from '@megaplane/machinery/canonical';
import { applyDefaults } from '@megaplane/machinery/defaulting';
import { decodeStoredValue } from '@megaplane/machinery/stored-value';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { allStorages, findKind, type ResourceStorage } from '@megaplane/machinery/kinds';
import { encodeAtRest } from '@megaplane/machinery/protobuf';
import { toStored } from '../conversion.ts';
import { MASTER_LEASE_PREFIX } from '../master-leases.ts';
import { packOwners, wholeValue } from '../../managedfields/whole-fields.ts';

/** What is written for built-in kinds; custom resources are JSON always. */
export type StorageMedia = 'application/vnd.kubernetes.protobuf' | 'application/json';

/** Groups whose servers upstream keep JSON, whatever the media type says. */
const JSON_PREFIXES: readonly string[] = [
  '/registry/apiextensions.k8s.io/',
  '/registry/apiregistration.k8s.io/',
];

/**
 * Upstream keeps kinds whose version is new in the one before, so that servers of the last minor
 * read them.
 */
const POLICIES_KEPT = 'admissionregistration.k8s.io/v1beta1';
const OLDER_VERSIONS: ReadonlyMap<string, string> = new Map([
  ['/registry/mutatingadmissionpolicies/', POLICIES_KEPT],
  ['/registry/mutatingadmissionpolicybindings/', POLICIES_KEPT],
  ['/registry/devicetaintrules/', 'resource.k8s.io/v1alpha3'],
]);

const BRACE_CLOSE = 0x7d;

interface Known {
  readonly storage: ResourceStorage;
  readonly head: Buffer;
  readonly isJson: boolean;
  /** The version that is written. */
  readonly kept: string;
  readonly keptHead: Buffer;
}

export class StoredValues {
  readonly #isProtobuf: boolean;
  readonly #known = new Map<string, Known>();

  constructor(media: StorageMedia) {
    this.#isProtobuf = media === 'application/vnd.kubernetes.protobuf';
    for (const storage of allStorages()) {
      const { prefix } = storage;
      const isJson = JSON_PREFIXES.some((one) => prefix.startsWith(one));
      const head = headOf(storage.apiVersion, storage.kind);
      const kept = OLDER_VERSIONS.get(prefix) ?? storage.apiVersion;
      const keptHead = headOf(kept, storage.kind);
      const known = { storage, head, isJson, kept, keptHead };
      this.#known.set(prefix, known);
      // what API servers tell of each other has this form, too
      if (storage.name === 'endpoints') this.#known.set(MASTER_LEASE_PREFIX, known);
    }
  }

  /** `key` is `/registry/...`. The result may be the very bytes that were given. */
  decode(key: string, value: Buffer): Buffer {
    const known = this.#kindOf(key);
    if (known !== undefined && isOwn(value, known.head)) return value;
    const read = decodeStoredValue(value, 0, value.length);
    if (!read.ok) return value;
    const object = ownVersion(read.object, known);
    // as upstream: what an older server left out is there for whoever reads
    applyDefaults(object);
    packOwners(object);
    return encodeCanonical(object);
  }

  /** `value` is canonical. */
  encode(key: string, value: Buffer): Buffer {
    const known = this.#kindOf(key);
    const whole = inKeptVersion(wholeValue(value), known);
    if (known === undefined || known.isJson || !this.#isProtobuf) return whole;
    return encodeAtRest(known.kept, known.storage.kind, whole) ?? whole;
  }

  /** By the longest prefix of the key that is a resource's: `/registry/services/specs/`. */
  #kindOf(key: string): Known | undefined {
    let slash = key.indexOf('/', '/registry/'.length);
    for (let parts = 0; slash >= 0 && parts < 3; parts++) {
      const known = this.#known.get(key.slice(0, slash + 1));
      if (known !== undefined) return known;
      slash = key.indexOf('/', slash + 1);
    }
    return undefined;
  }
}

/** The fields of both versions are the same. */
function inKeptVersion(whole: Buffer, known: Known | undefined): Buffer {
  if (known === undefined || known.kept === known.storage.apiVersion) return whole;
  return Buffer.concat([known.keptHead, whole.subarray(known.head.length)]);
}

/** JSON of upstream begins the same, but ends with a line feed. */
function isOwn(value: Buffer, head: Buffer): boolean {
  if (storedForm(value, 0, value.length, head) !== 'canonical') return false;
  if (value.at(-1) !== BRACE_CLOSE) return false;
  return !value.includes('"resourceVersion"') && !value.includes('"managedFields"');
}

/** Another version of the kind that is stored, in the version that is. */
function ownVersion(object: JsonObject, known: Known | undefined): JsonObject {
  const { apiVersion, kind } = object;
  if (known === undefined || apiVersion === known.storage.apiVersion) return object;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return object;
  const resource = findKind(apiVersion, kind);
  return resource === undefined ? object : toStored(object, resource);
}

/**
 * The objects of one collection as bytes in a slab, by row of their informer, with the indexes
 * that owners and selectors need. For kinds of which there are thousands: an object is decoded
 * when it changes and when somebody works on it, and lives as bytes in between.
 */
import { assert } from '@megaplane/base/assert';
import { Uint32Column } from '@megaplane/base/column';
import { Slab } from '@megaplane/base/slab';
import type { Informer } from '@megaplane/client/informer';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { SharedInformers } from './shared-informers.ts';

const BYTES_MAX: number = 8 * 2 ** 30;
const REGION_BYTES: number = 2 ** 22;
const FIRST_REGION_BYTES: number = 2 ** 17;

/** `before` is absent for a new object, `after` for one that is gone. */
export type ObjectChanged = (
  key: string,
  after: JsonObject | undefined,
  before: JsonObject | undefined,
) => void;

export class ObjectCache {
  readonly informer: Informer;
  readonly #slab = new Slab({
    regionBytes: REGION_BYTES,
    firstRegionBytes: FIRST_REGION_BYTES,
    bytesMax: BYTES_MAX,
  });
  readonly #refs = new Uint32Column();
  readonly #lengths = new Uint32Column();
  readonly #byNamespace: Map<string, Set<string>> = new Map();
  readonly #byOwner: Map<string, Set<string>> = new Map();
  readonly #byUid: Map<string, string> = new Map();
  readonly #changed: ObjectChanged;
  readonly #wants: (object: Buffer) => boolean;

  /** `wants` looks at an object's bytes: others are as if they were not there. */
  constructor(
    informers: SharedInformers,
    path: string,
    changed: ObjectChanged,
    synced: () => void = () => {},
    wants: (object: Buffer) => boolean = () => true,
  ) {
    this.#changed = changed;
    this.#wants = wants;
    this.informer = informers.subscribe(
      { path },
      {
        onUpsert: (row, isNew, bytes, start, end) => this.#upsert(row, isNew, bytes, start, end),
        onDelete: (row) => this.#remove(row),
        onSynced: synced,
      },
    );
  }

  /** The object `namespace/name`, or `name` of a cluster-scoped kind, decoded anew. */
  get(key: string): JsonObject | undefined {
    const slash = key.indexOf('/');
    const row = this.informer.find(key.slice(0, Math.max(0, slash)), key.slice(slash + 1));
    return row < 0 ? undefined : this.#read(row);
  }

  /** Keys of the objects in a namespace. */
  inNamespace(namespace: string): Iterable<string> {
    return this.#byNamespace.get(namespace) ?? [];
  }

  /** Keys of the objects that the owner with this uid controls; '' = those without controller. */
  controlledBy(uid: string, namespace: string): Iterable<string> {
    return this.#byOwner.get(`${namespace} ${uid}`) ?? [];
  }

  /** Key of the object with a uid. */
  keyOfUid(uid: string): string | undefined {
    return this.#byUid.get(uid);
  }

  keys(): Iterable<string> {
    return this.#byUid.values();
  }

  #read(row: number): JsonObject | undefined {
    const ref = this.#refs.get(row);
    if (ref === 0) return undefined;
    const start = this.#slab.startAt(ref);
    const text = this.#slab.bytesAt(ref).toString('utf8', start, start + this.#lengths.get(row));
    return parseJson(text) as JsonObject;
  }

  #upsert(row: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): void {
    assert(!isNew || this.#refs.get(row) === 0, 'a row is free before another object has it');
    const object = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    if (!this.#wants(object)) return this.#remove(row);
    const key = this.informer.keyOf(row);
    const before = this.#read(row);
    if (before !== undefined) this.#forget(row, key, before);
    const ref = this.#slab.store(bytes, start, end);
    if (ref === 0) throw new Error(`no memory for ${key}: more than ${BYTES_MAX} bytes are cached`);
    this.#refs.set(row, ref);
    this.#lengths.set(row, end - start);
    const after = this.#read(row);
    if (after === undefined) return;
    const namespace = stringAt(after, 'metadata', 'namespace');
    addTo(this.#byNamespace, namespace, key);
    addTo(this.#byOwner, `${namespace} ${controllerUid(after)}`, key);
    this.#byUid.set(stringAt(after, 'metadata', 'uid'), key);
    this.#changed(key, after, before);
  }

  #remove(row: number): void {
    const before = this.#read(row);
    if (before === undefined) return;
    const key = this.informer.keyOf(row);
    this.#forget(row, key, before);
    this.#refs.set(row, 0);
    this.#changed(key, undefined, before);
  }

  #forget(row: number, key: string, before: JsonObject): void {
    assert(this.#refs.get(row) !== 0, 'what is forgotten was kept');
    this.#slab.free(this.#refs.get(row));
    const namespace = stringAt(before, 'metadata', 'namespace');
    removeFrom(this.#byNamespace, namespace, key);
    removeFrom(this.#byOwner, `${namespace} ${controllerUid(before)}`, key);
    this.#byUid.delete(stringAt(before, 'metadata', 'uid'));
  }
}

function addTo(index: Map<string, Set<string>>, at: string, key: string): void {
  const found = index.get(at);
  if (found === undefined) index.set(at, new Set([key]));
  else found.add(key);
}

function removeFrom(index: Map<string, Set<string>>, at: string, key: string): void {
  const found = index.get(at);
  if (found?.delete(key) === true && found.size === 0) index.delete(at);
}

/** Uid of the owner that controls an object; '' where nobody does. */
export function controllerUid(object: JsonObject): string {
  const owner = listAt(object, 'metadata', 'ownerReferences').find(
    (one) => typeof one === 'object' && one !== null && 'controller' in one && one['controller'],
  );
  return stringAt(owner, 'uid');
}

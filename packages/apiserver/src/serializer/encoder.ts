/**
 * How stored objects become bytes of an answer. An encoder serves one resource in one negotiated
 * representation: items of a list, frames of a watch, and what stands around them.
 */
import {
  SPLICE_BYTES_MAX,
  decodeCanonical,
  storedForm,
  writeResourceVersion,
} from '@megaplane/machinery/canonical';
import { objectJson } from '@megaplane/machinery/raw-text';
import { decodeStoredValue } from '@megaplane/machinery/stored-value';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { emptyObject } from '@megaplane/machinery/normal-form';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import type { Status } from '@megaplane/machinery/status';
import { fromStored } from '../storage/conversion.ts';
import { formStored } from '../apiextensions/schema/custom-objects.ts';
import { isSealed } from '../storage/encryption/value-sealer.ts';
import { appendLean, appendShown, shownObject } from '../managedfields/shown-fields.ts';
import { JSON_TYPE } from '../request/negotiation.ts';
import type { Served } from '../storage/served.ts';
import type { Sink } from '../sink/sink.ts';
import type { Row } from '../storage/storage.ts';
import { unreadable } from './unreadable.ts';
import type { Pullable } from '../request/answer-body.ts';

/** Metadata of a list. `remaining` is null where it is not known or not told. */
export interface ListMeta {
  readonly revision: number;
  readonly continueToken: string;
  readonly remaining: number | null;
  /** The shard that is shown, as `shardInfo` tells it; '' for a whole collection. */
  readonly shard: string;
  /** The list leaves out what has changed `since`; the collection has `of` objects. */
  readonly unchanged: { readonly since: number; readonly of: number } | null;
}

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** See the head of the file. All methods append to `sink`. */
export interface Encoder {
  /** Equal ids write equal frames: what is encoded once is shared between watches. */
  readonly id: string;
  readonly contentType: string;
  openList(sink: Sink, meta: ListMeta): void;
  /** One item with its separator; `index` counts from 0. */
  item(sink: Sink, row: Row, index: number): void;
  closeList(sink: Sink): void;
  /**
   * True where the items so far were only measured, since their length stands before them: after
   * the last of them `openMeasured` is called, `heldItems` or, where they are too many to be
   * held, `item` for all of them once more, and then `closeList`.
   */
  readonly isMeasured?: boolean;
  /** Bytes of the items measured so far. */
  readonly measuredBytes?: number;
  openMeasured?(sink: Sink): void;
  heldItems?(): Pullable | null;
  /** One object alone, at `revision`. */
  object(sink: Sink, row: Row, revision: number): void;
  /** One event; `isFirst` for the first of a stream. */
  frame(sink: Sink, type: EventType, row: Row, revision: number, isFirst: boolean): void;
  bookmark(sink: Sink, revision: number, isInitialEnd: boolean, isFirst: boolean): void;
  error(sink: Sink, status: Status): void;
}

/** A version's name is no longer than a label, whichever stands in the head. */
const HEAD_BYTES_MORE = 64;
const METADATA_OPEN = Buffer.from('{"metadata":{');
const scan = new ObjectScan();

const INITIAL_END_ANNOTATION = 'k8s.io/initial-events-end';

/**
 * `{"resourceVersion":"7","continue":"...","remainingItemCount":3}`; lists of custom resources say
 * that nothing follows, too.
 */
export function listMetaText(meta: ListMeta, saysEnd = false): string {
  let text = `{"resourceVersion":"${meta.revision}"`;
  if (meta.continueToken !== '' || saysEnd) text += `,"continue":"${meta.continueToken}"`;
  if (meta.remaining !== null) text += `,"remainingItemCount":${meta.remaining}`;
  if (meta.shard !== '') text += `,"shardInfo":{"selector":${JSON.stringify(meta.shard)}}`;
  if (meta.unchanged !== null) {
    text += `,"unchanged":{"since":"${meta.unchanged.since}","of":${meta.unchanged.of}}`;
  }
  return `${text}}`;
}

/** Metadata of a bookmark. */
export function bookmarkMeta(revision: number, isInitialEnd: boolean): JsonObject {
  const metadata: JsonObject = { resourceVersion: String(revision) };
  if (isInitialEnd) metadata['annotations'] = { [INITIAL_END_ANNOTATION]: 'true' };
  return metadata;
}

/** True where the stored bytes are what is served, but for the revision. */
export function isCopied(served: Served, row: Row): boolean {
  const { custom } = served;
  if (custom !== null) return row.modRevision > custom.formedSince && isCanonical(served, row);
  return !served.isConverted && isCanonical(served, row);
}

export function isCanonical(served: Served, row: Row): boolean {
  return storedForm(row.bytes, row.start, row.end, served.head) === 'canonical';
}

/** The object of a row as the API shows it. */
export function shownRow(served: Served, row: Row, revision: number): JsonObject {
  return shownObject(decodeRow(served, row, revision));
}

/**
 * The object of a row as the cells of tables are made from it: upstream prints what versions of a
 * kind have in common, which is what is stored where only one version says all. `shown` is the row
 * as the API shows it.
 */
export function printedRow(served: Served, row: Row, shown: JsonObject): JsonObject {
  const isLess = served.isConverted && served.resource.kind === 'HorizontalPodAutoscaler';
  return isLess ? decodeStored(served, row, row.modRevision) : shown;
}

/**
 * The object of a row in the version that `served` has, with its revision. The owners of its fields
 * are as they are kept; `shownRow` writes them out.
 */
export function decodeRow(served: Served, row: Row, revision: number): JsonObject {
  const { custom } = served;
  const object = decodeStored(served, row, revision);
  const isFormed = custom === null || row.modRevision > custom.formedSince;
  return fromStored(isFormed ? object : formStored(custom, object), served.resource);
}

/** In the version that it is stored in. */
function decodeStored(served: Served, row: Row, revision: number): JsonObject {
  if (!isCanonical(served, row)) return decodeForeign(served, row, revision);
  return decodeCanonical(row.bytes, row.start, row.end, revision);
}

/**
 * A value that another program wrote into the store. What cannot be read is shown as an object of
 * its name without anything in it, so that it can be seen and deleted.
 */
function decodeForeign(served: Served, row: Row, revision: number): JsonObject {
  const { resource } = served;
  const read = decodeStoredValue(row.bytes, row.start, row.end);
  if (read.ok) {
    const { metadata, ...rest } = read.object;
    const own = typeof metadata === 'object' && !Array.isArray(metadata) ? metadata : {};
    const revised = { ...own, resourceVersion: String(revision) };
    const { kind = resource.kind, apiVersion = resource.storage.apiVersion, ...fields } = rest;
    return { kind, apiVersion, metadata: revised, ...fields };
  }
  if (isSealed(row.bytes, row.start)) {
    throw unreadable(row.key.toString('utf8', row.keyStart, row.keyEnd));
  }
  const path = row.key.toString('utf8', row.keyStart + served.prefix.length, row.keyEnd);
  const slash = resource.namespaced ? path.indexOf('/') : -1;
  const metadata: JsonObject = { name: path.slice(slash + 1) };
  if (slash >= 0) metadata['namespace'] = path.slice(0, slash);
  metadata['resourceVersion'] = String(revision);
  return { kind: resource.kind, apiVersion: resource.apiVersion, metadata };
}

/** An object of which nothing is set, as Go writes its structs. */
export function blankObject({ resource, custom }: Served, metadata: JsonObject): JsonObject {
  const { kind, apiVersion } = resource;
  const type = custom === null ? findTypeOfKind(apiVersion, kind) : undefined;
  const { metadata: _, ...fields } = type === undefined ? {} : emptyObject(type);
  return { kind, apiVersion, metadata, ...fields };
}

/** JSON of whole objects: copied from storage, the revision spliced in. */
export class JsonEncoder implements Encoder {
  readonly id: string;
  readonly contentType: string = JSON_TYPE;
  readonly #served: Served;
  readonly #isLean: boolean;
  readonly #listOpen: string;

  /** `isLean` leaves the owners of fields out. */
  constructor(served: Served, isLean = false) {
    const { apiVersion, listKind } = served.resource;
    this.#served = served;
    this.#isLean = isLean;
    this.id = `${isLean ? 'lean ' : ''}json ${apiVersion}`;
    this.#listOpen = `{"kind":"${listKind}","apiVersion":"${apiVersion}","metadata":`;
  }

  openList(sink: Sink, meta: ListMeta): void {
    const isCustom = this.#served.custom !== null;
    sink.ascii(`${this.#listOpen}${listMetaText(meta, isCustom)},"items":[`);
  }

  item(sink: Sink, row: Row, index: number): void {
    if (index > 0) sink.ascii(',');
    if (this.#served.custom !== null) {
      this.#whole(sink, row, row.modRevision);
      return;
    }
    if (!isCopied(this.#served, row)) {
      const { kind: _, apiVersion: __, ...rest } = shownRow(this.#served, row, row.modRevision);
      sink.utf8(JSON.stringify(rest));
      return;
    }
    // items of typed lists carry neither kind nor apiVersion
    sink.ensure(row.end - row.start + SPLICE_BYTES_MAX);
    sink.append(METADATA_OPEN);
    sink.length = writeResourceVersion(row.modRevision, sink.bytes, sink.length);
    const cut = row.start + this.#served.head.length;
    if (this.#isLean) appendLean(sink, row.bytes, cut, row.end);
    else appendShown(sink, row.bytes, cut, row.end);
  }

  closeList(sink: Sink): void {
    sink.ascii(']}\n');
  }

  object(sink: Sink, row: Row, revision: number): void {
    this.#whole(sink, row, revision);
    sink.ascii('\n');
  }

  frame(sink: Sink, type: EventType, row: Row, revision: number): void {
    sink.ascii(`{"type":"${type}","object":`);
    this.#whole(sink, row, revision);
    sink.ascii('}\n');
  }

  bookmark(sink: Sink, revision: number, isInitialEnd: boolean): void {
    const object = blankObject(this.#served, bookmarkMeta(revision, isInitialEnd));
    sink.ascii(`{"type":"BOOKMARK","object":${JSON.stringify(object)}}\n`);
  }

  error(sink: Sink, status: Status): void {
    sink.utf8(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`);
  }

  #whole(sink: Sink, row: Row, revision: number): void {
    if (!isCopied(this.#served, row)) {
      sink.utf8(objectJson(shownRow(this.#served, row, revision)));
      return;
    }
    sink.ensure(row.end - row.start + SPLICE_BYTES_MAX + HEAD_BYTES_MORE);
    const { bytes, start, end } = row;
    const cut = start + this.#served.head.length;
    const { custom } = this.#served;
    if (custom === null) sink.append(bytes, start, cut);
    else sink.append(custom.shownHead);
    sink.length = writeResourceVersion(revision, sink.bytes, sink.length);
    if (this.#isLean) appendLean(sink, bytes, cut, end);
    else appendShown(sink, bytes, cut, end);
  }
}

/** JSON of metadata alone (PartialObjectMetadata), copied from storage as well. */
export class MetadataEncoder implements Encoder {
  readonly id: string;
  readonly contentType: string = JSON_TYPE;
  readonly #apiVersion: string;
  readonly #head: string;
  #isEmpty = true;

  constructor(version: string) {
    this.#apiVersion = `meta.k8s.io/${version}`;
    this.id = `metadata ${version}`;
    this.#head = `{"kind":"PartialObjectMetadata","apiVersion":"${this.#apiVersion}","metadata":{`;
  }

  openList(sink: Sink, meta: ListMeta): void {
    sink.ascii(
      `{"kind":"PartialObjectMetadataList","apiVersion":"${this.#apiVersion}",` +
        `"metadata":${listMetaText(meta)},"items":`,
    );
    this.#isEmpty = true;
  }

  item(sink: Sink, row: Row, index: number): void {
    sink.ascii(index > 0 ? ',' : '[');
    this.#isEmpty = false;
    this.#metadata(sink, row, row.modRevision);
  }

  /** Upstream makes this list only when something comes into it. */
  closeList(sink: Sink): void {
    sink.ascii(this.#isEmpty ? 'null}\n' : ']}\n');
  }

  object(sink: Sink, row: Row, revision: number): void {
    this.#metadata(sink, row, revision);
    sink.ascii('\n');
  }

  frame(sink: Sink, type: EventType, row: Row, revision: number): void {
    sink.ascii(`{"type":"${type}","object":`);
    this.#metadata(sink, row, revision);
    sink.ascii('}\n');
  }

  bookmark(sink: Sink, revision: number, isInitialEnd: boolean): void {
    const metadata = bookmarkMeta(revision, isInitialEnd);
    const object = { kind: 'PartialObjectMetadata', apiVersion: this.#apiVersion, metadata };
    sink.ascii(`{"type":"BOOKMARK","object":${JSON.stringify(object)}}\n`);
  }

  error(sink: Sink, status: Status): void {
    sink.utf8(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`);
  }

  #metadata(sink: Sink, row: Row, revision: number): void {
    scan.scan(row.bytes, row.start, row.end);
    sink.ascii(this.#head);
    sink.ensure(row.end - row.start + SPLICE_BYTES_MAX);
    sink.length = writeResourceVersion(revision, sink.bytes, sink.length);
    appendShown(sink, row.bytes, scan.metadataStart + 1, scan.metadataEnd);
    sink.ascii('}');
  }
}

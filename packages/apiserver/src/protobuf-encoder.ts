/**
 * Kubernetes protobuf of stored objects. A list's envelope begins with its length, so its items are
 * collected before the first byte leaves. A list that is too long for that is encoded twice: once
 * to know its length, and once more to be sent, which costs time and no memory. Watches are encoded
 * event by event.
 */
import { assert } from '@megaplane/base/assert';
import { decodeCanonical } from '@megaplane/machinery/canonical';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import {
  encodeItem,
  encodeList,
  encodeProtobuf,
  encodeStored,
  encodeStoredItem,
  encodeWatchFrame,
  listFrame,
  varintBytes,
  varintLength,
  type ListFrame,
} from '@megaplane/machinery/protobuf';
import type { Status } from '@megaplane/machinery/status';
import {
  bookmarkMeta,
  isCopied,
  type Encoder,
  type EventType,
  type ListMeta,
  shownRow,
} from './encoder.ts';
import { shownBytes } from './managed/shown-fields.ts';
import { shownObject } from './managed/tracking.ts';
import { PROTOBUF_TYPE } from './negotiation.ts';
import type { Served } from './served.ts';
import type { Sink } from './sink.ts';
import type { Row } from './storage.ts';

const NOTHING = Buffer.alloc(0);
/** Items of one list that are held until it is complete. */
export const LIST_BYTES_HELD_MAX: number = 32 * 1024 * 1024;

/** A list is held until it is whole, measured when it is too long, or sent by its measure. */
type Pass =
  | { readonly kind: 'holding'; readonly items: Uint8Array[] }
  | { readonly kind: 'measuring' }
  | { readonly kind: 'sending'; readonly frame: ListFrame };

/** What differs between whole objects and their metadata. */
abstract class EnvelopeEncoder implements Encoder {
  readonly contentType: string = PROTOBUF_TYPE;
  abstract readonly id: string;
  #meta: JsonObject = {};
  #pass: Pass = { kind: 'holding', items: [] };
  /** Of the items, their tags and lengths included; while sending: of those to come. */
  #itemsBytes = 0;

  protected abstract decode(row: Row, revision: number): JsonObject;
  protected abstract blank(metadata: JsonObject): JsonObject;
  protected abstract readonly listApiVersion: string;
  protected abstract readonly listKind: string;
  protected abstract readonly itemKind: string;

  openList(_sink: Sink, meta: ListMeta): void {
    this.#pass = { kind: 'holding', items: [] };
    this.#itemsBytes = 0;
    this.#meta = { resourceVersion: String(meta.revision) };
    if (meta.continueToken !== '') this.#meta['continue'] = meta.continueToken;
    if (meta.remaining !== null) this.#meta['remainingItemCount'] = meta.remaining;
    if (meta.shard !== '') this.#meta['shardInfo'] = { selector: meta.shard };
  }

  item(sink: Sink, row: Row): void {
    const item = this.bare(row);
    const bytes = 1 + varintLength(item.length) + item.length;
    const pass = this.#pass;
    if (pass.kind === 'sending') {
      this.#itemsBytes -= bytes;
      sink.append(Uint8Array.of(pass.frame.itemTag));
      sink.append(varintBytes(item.length));
      sink.append(item);
      return;
    }
    this.#itemsBytes += bytes;
    if (pass.kind === 'measuring') return;
    if (this.#itemsBytes > LIST_BYTES_HELD_MAX) this.#pass = { kind: 'measuring' };
    else pass.items.push(item);
  }

  get isMeasured(): boolean {
    return this.#pass.kind === 'measuring';
  }

  openMeasured(sink: Sink): void {
    const { listApiVersion, listKind } = this;
    const frame = listFrame(listApiVersion, listKind, this.#meta, this.#itemsBytes);
    this.#pass = { kind: 'sending', frame };
    sink.append(frame.head);
  }

  closeList(sink: Sink): void {
    const pass = this.#pass;
    this.#pass = { kind: 'holding', items: [] };
    if (pass.kind === 'holding') {
      sink.append(encodeList(this.listApiVersion, this.listKind, this.#meta, pass.items));
    } else if (pass.kind === 'sending') {
      assert(this.#itemsBytes === 0, 'a list was sent that is not as long as it was measured');
      sink.append(pass.frame.tail);
    }
  }

  object(sink: Sink, row: Row, revision: number): void {
    sink.append(this.envelope(row, revision));
  }

  frame(sink: Sink, type: EventType, row: Row, revision: number): void {
    sink.append(encodeWatchFrame(type, this.envelope(row, revision)));
  }

  /** One object in its envelope. */
  protected envelope(row: Row, revision: number): Uint8Array {
    return encodeProtobuf(this.decode(row, revision)) ?? NOTHING;
  }

  /** One object as an item of a list. */
  protected bare(row: Row): Uint8Array {
    const object = this.decode(row, row.modRevision);
    return encodeItem(this.listApiVersion, this.itemKind, object) ?? NOTHING;
  }

  bookmark(sink: Sink, revision: number, isInitialEnd: boolean): void {
    this.#frame(sink, 'BOOKMARK', this.blank(bookmarkMeta(revision, isInitialEnd)));
  }

  error(sink: Sink, status: Status): void {
    this.#frame(sink, 'ERROR', status as unknown as JsonObject);
  }

  #frame(sink: Sink, type: string, object: JsonObject): void {
    sink.append(encodeWatchFrame(type, encodeProtobuf(object) ?? NOTHING));
  }
}

export class ProtobufEncoder extends EnvelopeEncoder {
  readonly id: string;
  protected readonly listApiVersion: string;
  protected readonly listKind: string;
  protected readonly itemKind: string;
  readonly #served: Served;

  constructor(served: Served) {
    super();
    this.#served = served;
    this.listApiVersion = served.resource.apiVersion;
    this.listKind = served.resource.listKind;
    this.itemKind = served.resource.kind;
    this.id = `protobuf ${this.listApiVersion}`;
  }

  protected decode(row: Row, revision: number): JsonObject {
    return shownRow(this.#served, row, revision);
  }

  protected blank(metadata: JsonObject): JsonObject {
    return { kind: this.itemKind, apiVersion: this.listApiVersion, metadata };
  }

  protected override envelope(row: Row, revision: number): Uint8Array {
    if (!isCopied(this.#served, row)) return super.envelope(row, revision);
    const { apiVersion, kind } = this.#served.resource;
    const bytes = shownBytes(row.bytes, row.start, row.end, this.#served.head.length);
    return encodeStored(apiVersion, kind, bytes, 0, bytes.length, revision) ?? NOTHING;
  }

  protected override bare(row: Row): Uint8Array {
    if (!isCopied(this.#served, row)) return super.bare(row);
    const { apiVersion, kind } = this.#served.resource;
    const bytes = shownBytes(row.bytes, row.start, row.end, this.#served.head.length);
    return encodeStoredItem(apiVersion, kind, bytes, 0, bytes.length, row.modRevision) ?? NOTHING;
  }
}

export class ProtobufMetadataEncoder extends EnvelopeEncoder {
  readonly id: string;
  protected readonly listApiVersion: string;
  protected readonly listKind = 'PartialObjectMetadataList';
  protected readonly itemKind = 'PartialObjectMetadata';

  constructor(version: string) {
    super();
    this.listApiVersion = `meta.k8s.io/${version}`;
    this.id = `protobuf metadata ${version}`;
  }

  protected decode(row: Row, revision: number): JsonObject {
    const object = shownObject(decodeCanonical(row.bytes, row.start, row.end, revision));
    return this.blank(objectAt(object, 'metadata') ?? {});
  }

  protected blank(metadata: JsonObject): JsonObject {
    return { kind: this.itemKind, apiVersion: this.listApiVersion, metadata };
  }
}

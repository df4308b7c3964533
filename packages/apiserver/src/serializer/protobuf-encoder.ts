/**
 * Kubernetes protobuf of stored objects. A list's envelope begins with its length, so its items are
 * measured before the first byte leaves, and held meanwhile. Those of a list that is too long for
 * that are encoded twice, which costs time and no memory. Items are kept for the next list that
 * shows them (`kept-encodings.ts`). Watches are encoded event by event.
 */
import { assert } from '@megaplane/base/assert';
import { decodeCanonical } from '@megaplane/machinery/canonical';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import {
  encodeItem,
  encodeProtobuf,
  encodeStored,
  encodeStoredItem,
  encodeWatchFrame,
  listFrame,
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
import type { KeptSpace } from './kept-encodings.ts';
import { HeldItems } from './list-stream.ts';
import { shownBytes, shownObject } from '../managedfields/shown-fields.ts';
import { PROTOBUF_TYPE } from '../request/negotiation.ts';
import type { Served } from '../storage/served.ts';
import type { Sink } from '../sink/sink.ts';
import type { Row } from '../storage/storage.ts';
import type { Pullable } from '../request/answer-body.ts';

const NOTHING = Buffer.alloc(0);
/** Items of one list that are held until it is complete, those apart that are kept anyway. */
export const LIST_BYTES_HELD_MAX: number = 32 * 1024 * 1024;

/** A list is measured first; its items are held unless they are too many. */
type Pass =
  | { readonly kind: 'measuring'; readonly items: Uint8Array[] | null }
  | { readonly kind: 'sending'; readonly frame: ListFrame; readonly items: Uint8Array[] | null };

const NEW_PASS: Pass = { kind: 'measuring', items: null };

/** What differs between whole objects and their metadata. */
abstract class EnvelopeEncoder implements Encoder {
  readonly contentType: string = PROTOBUF_TYPE;
  abstract readonly id: string;
  #meta: JsonObject = {};
  #pass: Pass = NEW_PASS;
  /** Of the items, their tags and lengths included; while sending: of those to come. */
  #itemsBytes = 0;
  /** Of the items that nobody else holds. */
  #heldBytes = 0;

  protected abstract decode(row: Row, revision: number): JsonObject;
  protected abstract blank(metadata: JsonObject): JsonObject;
  protected abstract readonly listApiVersion: string;
  protected abstract readonly listKind: string;
  protected abstract readonly itemKind: string;
  /** Where items are kept for other lists; null: nowhere. */
  protected abstract readonly kept: KeptSpace | null;

  openList(_sink: Sink, meta: ListMeta): void {
    this.#pass = { kind: 'measuring', items: [] };
    this.#itemsBytes = 0;
    this.#heldBytes = 0;
    this.#meta = { resourceVersion: String(meta.revision) };
    if (meta.continueToken !== '') this.#meta['continue'] = meta.continueToken;
    if (meta.remaining !== null) this.#meta['remainingItemCount'] = meta.remaining;
    if (meta.shard !== '') this.#meta['shardInfo'] = { selector: meta.shard };
  }

  item(sink: Sink, row: Row): void {
    let kept: Buffer | null = this.kept?.find(row) ?? null;
    const item = kept ?? this.bare(row);
    if (kept === null) kept = this.kept?.keep(row, item) ?? null;
    const pass = this.#pass;
    if (pass.kind === 'sending') {
      this.#append(sink, pass.frame.itemTag, item);
      return;
    }
    this.#itemsBytes += 1 + varintLength(item.length) + item.length;
    if (pass.items === null) return;
    if (kept === null) this.#heldBytes += item.length;
    if (this.#heldBytes > LIST_BYTES_HELD_MAX) this.#pass = NEW_PASS;
    else pass.items.push(kept ?? Buffer.from(item));
  }

  #append(sink: Sink, tag: number, item: Uint8Array): void {
    const { length } = sink;
    sink.ensure(16 + item.length);
    sink.bytes[sink.length++] = tag;
    let rest = item.length;
    for (; rest >= 0x80; rest >>>= 7) sink.bytes[sink.length++] = (rest & 0x7f) | 0x80;
    sink.bytes[sink.length++] = rest;
    sink.append(item);
    this.#itemsBytes -= sink.length - length;
  }

  get isMeasured(): boolean {
    return this.#pass.kind === 'measuring';
  }

  get measuredBytes(): number {
    return this.#pass.kind === 'measuring' ? this.#itemsBytes : 0;
  }

  openMeasured(sink: Sink): void {
    const { listApiVersion, listKind } = this;
    const frame = listFrame(listApiVersion, listKind, this.#meta, this.#itemsBytes);
    const { items } = this.#pass;
    this.#pass = { kind: 'sending', frame, items };
    sink.append(frame.head);
  }

  heldItems(): Pullable | null {
    const pass = this.#pass;
    if (pass.kind !== 'sending' || pass.items === null) return null;
    const { itemTag } = pass.frame;
    return new HeldItems(pass.items, (sink, item) => this.#append(sink, itemTag, item));
  }

  closeList(sink: Sink): void {
    const pass = this.#pass;
    assert(pass.kind === 'sending', 'a list is measured before it is sent');
    this.#pass = NEW_PASS;
    assert(this.#itemsBytes === 0, 'a list was sent that is not as long as it was measured');
    sink.append(pass.frame.tail);
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

  /** One object as an item of a list; good until the next one. */
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
  protected readonly kept: KeptSpace | null;
  readonly #served: Served;

  /** `keptOf` says where the items of lists are kept. */
  constructor(served: Served, keptOf: ((id: string) => KeptSpace | null) | null = null) {
    super();
    this.#served = served;
    this.listApiVersion = served.resource.apiVersion;
    this.listKind = served.resource.listKind;
    this.itemKind = served.resource.kind;
    this.id = `protobuf ${this.listApiVersion}`;
    this.kept = keptOf?.(this.id) ?? null;
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
  protected readonly kept = null;

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

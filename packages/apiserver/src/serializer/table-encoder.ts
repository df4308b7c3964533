/** Tables: what `kubectl get` prints, a row of cells per object (meta.k8s.io Table). */
import {
  columnsText,
  noRows,
  partialObjectMetadata,
  printerOf,
  rowText,
  type IncludeObject,
  type Printer,
} from '@megaplane/machinery/printing';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { SPLICE_BYTES_MAX, writeResourceVersion } from '@megaplane/machinery/canonical';
import { skipValue } from '@megaplane/machinery/scan';
import type { Status } from '@megaplane/machinery/status';
import {
  blankObject,
  bookmarkMeta,
  isCopied,
  listMetaText,
  printedRow,
  shownRow,
  type Encoder,
  type EventType,
  type ListMeta,
} from './encoder.ts';
import type { KeptSpace } from './kept-encodings.ts';
import { appendRow, packRow } from './kept-rows.ts';
import { appendShown } from '../managedfields/shown-fields.ts';
import { JSON_TYPE } from '../request/negotiation.ts';
import type { Served } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import type { Row } from '../storage/storage.ts';

const scratch = new Sink();

/** A table of one object that is stored as part of another, such as a Scale. */
export function objectTable(
  object: JsonObject,
  printer: Printer,
  version: 'v1' | 'v1beta1',
  include: IncludeObject,
  nowMs: number,
): string {
  const revision = stringAt(object, 'metadata', 'resourceVersion');
  const row = rowText(printer.row(object, nowMs), includedText(object, include, version));
  return `${tableText(version, revision, columnsText(printer), row)}\n`;
}

function tableText(version: string, revision: string, columns: string, row: string): string {
  return (
    `{"kind":"Table","apiVersion":"meta.k8s.io/${version}",` +
    `"metadata":{"resourceVersion":"${revision}"},` +
    `"columnDefinitions":${columns},"rows":[${row}]}`
  );
}

function includedText(
  object: JsonObject,
  include: IncludeObject,
  version: 'v1' | 'v1beta1',
): string {
  if (include === 'None') return 'null';
  if (include === 'Object') return JSON.stringify(object);
  return JSON.stringify(partialObjectMetadata(object, version));
}

/** Ages are those of the moment at which a row is written: a watch may last for hours. */
export class TableEncoder implements Encoder {
  readonly id: string;
  readonly contentType: string = JSON_TYPE;
  readonly #served: Served;
  readonly #printer: Printer;
  readonly #version: 'v1' | 'v1beta1';
  readonly #apiVersion: string;
  readonly #include: IncludeObject;
  readonly #nowMs: () => number;
  /** Before the metadata of a row's object. */
  readonly #objectOpen: Buffer;
  /** Where rows are kept for other lists, but for their ages; null: nowhere. */
  readonly #kept: KeptSpace | null;
  #isEmpty = true;
  /** Rows that have an order of their own, until all are there. */
  readonly #ranked: { readonly rank: number; readonly text: string }[] = [];

  constructor(
    served: Served,
    version: 'v1' | 'v1beta1',
    include: IncludeObject,
    nowMs: () => number,
    keptOf: ((id: string) => KeptSpace | null) | null = null,
  ) {
    this.#served = served;
    const { custom } = served;
    const { group, kind } = served.resource;
    this.#printer = custom === null ? printerOf(group, kind) : custom.schemas.printerOf(custom);
    this.#version = version;
    this.#apiVersion = `meta.k8s.io/${version}`;
    this.#include = include;
    this.#nowMs = nowMs;
    const columns = custom === null ? '' : ` ${custom.kind.revision}`;
    this.id = `table ${version} ${include} ${served.resource.apiVersion}${columns}`;
    this.#objectOpen = Buffer.from(
      `{"kind":"PartialObjectMetadata","apiVersion":"${this.#apiVersion}","metadata":{`,
    );
    // cells are the same whatever stands beside them
    const isKept = this.#printer.digest !== undefined;
    this.#kept = isKept ? (keptOf?.(`cells ${served.resource.apiVersion}`) ?? null) : null;
  }

  openList(sink: Sink, meta: ListMeta): void {
    sink.utf8(
      `{"kind":"Table","apiVersion":"${this.#apiVersion}","metadata":${listMetaText(meta)},` +
        `"columnDefinitions":${this.#columns()},"rows":`,
    );
    this.#isEmpty = true;
  }

  item(sink: Sink, row: Row, index: number): void {
    const { rank } = this.#printer;
    if (rank !== undefined) {
      const text = this.#row(row, row.modRevision);
      this.#ranked.push({ rank: rank(shownRow(this.#served, row, row.modRevision)), text });
      this.#isEmpty = false;
      return;
    }
    sink.ascii(index > 0 ? ',' : '[');
    this.#isEmpty = false;
    if (!this.#keptRow(sink, row)) sink.utf8(this.#row(row, row.modRevision));
  }

  /** A row of which the cells are kept; false where they are not. */
  #keptRow(sink: Sink, row: Row): boolean {
    if (this.#kept === null || this.#isWhole(row)) return false;
    let packed: Buffer | null = this.#kept.find(row);
    if (packed === null) {
      const digest = this.#printer.digest?.(row.bytes, row.start, row.end);
      packed = digest === undefined ? null : packRow(this.#printer, digest);
      if (packed === null) return false;
      this.#kept.keep(row, packed);
    }
    appendRow(sink, packed, this.#nowMs());
    if (this.#include === 'None') sink.ascii('null}');
    else {
      this.#appendMetadata(sink, row, row.modRevision);
      sink.ascii('}');
    }
    return true;
  }

  closeList(sink: Sink): void {
    if (this.#ranked.length > 0) {
      const rows = this.#ranked.splice(0).sort((a, b) => a.rank - b.rank);
      sink.utf8(`[${rows.map(({ text }) => text).join(',')}`);
    }
    if (this.#isEmpty) sink.ascii(JSON.stringify(noRows(this.#printer)));
    sink.ascii(this.#isEmpty ? '}\n' : ']}\n');
  }

  object(sink: Sink, row: Row, revision: number): void {
    sink.utf8(`${this.#table(revision, this.#columns(), this.#row(row, revision))}\n`);
  }

  frame(sink: Sink, type: EventType, row: Row, revision: number, isFirst: boolean): void {
    const columns = isFirst ? this.#columns() : 'null';
    const table = this.#table(revision, columns, this.#row(row, revision));
    sink.utf8(`{"type":"${type}","object":${table}}\n`);
  }

  bookmark(sink: Sink, revision: number, isInitialEnd: boolean, isFirst: boolean): void {
    const object = blankObject(this.#served, bookmarkMeta(revision, isInitialEnd));
    const cells = this.#printer.row(object, this.#nowMs());
    const row = rowText(cells, includedText(object, this.#include, this.#version));
    const columns = isFirst ? this.#columns() : 'null';
    const table = this.#table(revision, columns, row);
    sink.utf8(`{"type":"BOOKMARK","object":${table}}\n`);
  }

  error(sink: Sink, status: Status): void {
    sink.utf8(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`);
  }

  #columns(): string {
    return columnsText(this.#printer);
  }

  #table(revision: number, columns: string, row: string): string {
    return tableText(this.#version, `${revision}`, columns, row);
  }

  #row(row: Row, revision: number): string {
    const { bytes, start, end } = row;
    const digest = this.#isWhole(row) ? undefined : this.#printer.digest?.(bytes, start, end);
    if (digest !== undefined) {
      const printed = this.#printer.row(digest, this.#nowMs());
      return rowText(printed, this.#include === 'None' ? 'null' : this.#metadata(row, revision));
    }
    const object = shownRow(this.#served, row, revision);
    const printed = this.#printer.row(printedRow(this.#served, row, object), this.#nowMs());
    return rowText(printed, includedText(object, this.#include, this.#version));
  }

  /** True for rows that are made from all of the object. */
  #isWhole(row: Row): boolean {
    return this.#include === 'Object' || !isCopied(this.#served, row);
  }

  #metadata(row: Row, revision: number): string {
    scratch.length = 0;
    this.#appendMetadata(scratch, row, revision);
    return scratch.bytes.utf8Slice(0, scratch.length);
  }

  /** PartialObjectMetadata copied from storage, the revision spliced in. */
  #appendMetadata(sink: Sink, { bytes, start, end }: Row, revision: number): void {
    const from = start + this.#served.head.length;
    const to = skipValue(bytes, from - 1, end);
    sink.append(this.#objectOpen);
    sink.ensure(SPLICE_BYTES_MAX);
    sink.length = writeResourceVersion(revision, sink.bytes, sink.length);
    appendShown(sink, bytes, from, to);
    sink.ascii('}');
  }
}

/** Tables: what `kubectl get` prints, a row of cells per object (meta.k8s.io Table). */
import {
  columnsText,
  partialObjectMetadata,
  printerOf,
  rowText,
  type IncludeObject,
  type Printer,
} from '@megaplane/machinery/printing';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { skipValue } from '@megaplane/machinery/scan';
import type { Status } from '@megaplane/machinery/status';
import {
  bookmarkMeta,
  listMetaText,
  shownRow,
  type Encoder,
  type EventType,
  type ListMeta,
} from './encoder.ts';
import { appendShown } from './managed/shown-fields.ts';
import { JSON_TYPE } from './negotiation.ts';
import type { Served } from './served.ts';
import { Sink } from './sink.ts';
import type { Row } from './storage.ts';

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

export class TableEncoder implements Encoder {
  readonly id: string;
  readonly contentType: string = JSON_TYPE;
  readonly #served: Served;
  readonly #printer: Printer;
  readonly #version: 'v1' | 'v1beta1';
  readonly #apiVersion: string;
  readonly #include: IncludeObject;
  readonly #nowMs: number;

  constructor(served: Served, version: 'v1' | 'v1beta1', include: IncludeObject, nowMs: number) {
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
  }

  openList(sink: Sink, meta: ListMeta): void {
    sink.utf8(
      `{"kind":"Table","apiVersion":"${this.#apiVersion}","metadata":${listMetaText(meta)},` +
        `"columnDefinitions":${this.#columns()},"rows":[`,
    );
  }

  item(sink: Sink, row: Row, index: number): void {
    if (index > 0) sink.ascii(',');
    sink.utf8(this.#row(row, row.modRevision));
  }

  closeList(sink: Sink): void {
    sink.ascii(']}\n');
  }

  object(sink: Sink, row: Row, revision: number): void {
    sink.utf8(`${this.#table(revision, this.#columns(), this.#row(row, revision))}\n`);
  }

  frame(sink: Sink, type: EventType, row: Row, revision: number, isFirst: boolean): void {
    const columns = isFirst ? this.#columns() : 'null';
    const table = this.#table(revision, columns, this.#row(row, revision));
    sink.utf8(`{"type":"${type}","object":${table}}\n`);
  }

  bookmark(sink: Sink, revision: number, isInitialEnd: boolean): void {
    const metadata = JSON.stringify(bookmarkMeta(revision, isInitialEnd));
    sink.ascii(
      `{"type":"BOOKMARK","object":{"kind":"Table","apiVersion":"${this.#apiVersion}",` +
        `"metadata":${metadata},"columnDefinitions":null,"rows":[]}}\n`,
    );
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
    const isWhole = this.#include === 'Object' || this.#served.isConverted;
    const digest = isWhole ? undefined : this.#printer.digest?.(bytes, start, end);
    if (digest !== undefined) {
      const printed = this.#printer.row(digest, this.#nowMs);
      return rowText(printed, this.#include === 'None' ? 'null' : this.#metadata(row, revision));
    }
    const object = shownRow(this.#served, row, revision);
    const printed = this.#printer.row(object, this.#nowMs);
    return rowText(printed, includedText(object, this.#include, this.#version));
  }

  /** PartialObjectMetadata copied from storage, the revision spliced in. */
  #metadata({ bytes, start, end }: Row, revision: number): string {
    const from = start + this.#served.head.length;
    const to = skipValue(bytes, from - 1, end);
    scratch.length = 0;
    appendShown(scratch, bytes, from, to);
    return (
      `{"kind":"PartialObjectMetadata","apiVersion":"${this.#apiVersion}",` +
      `"metadata":{"resourceVersion":"${revision}"${scratch.bytes.utf8Slice(0, scratch.length)}}`
    );
  }
}

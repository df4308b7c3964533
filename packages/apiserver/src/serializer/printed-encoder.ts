/**
 * Tables and metadata for people: what another encoder writes as JSON is held until it is whole,
 * and printed anew as YAML or indented. Beyond `HELD_BYTES_MAX` it is passed on as it is, compact,
 * which both forms are also read as.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import type { Encoder, EventType, ListMeta } from './encoder.ts';
import { JSON_TYPE, YAML_TYPE } from '../request/negotiation.ts';
import { Sink } from '../sink/sink.ts';
import type { Row } from '../storage/storage.ts';
import { indentedJson, readableJson, yamlText } from '../request/printed-text.ts';

/** Of JSON that is held to be printed in one turn. */
export const HELD_BYTES_MAX: number = 2 * 1024 * 1024;

export class PrintedEncoder implements Encoder {
  readonly id: string;
  readonly contentType: string;
  readonly #inner: Encoder;
  readonly #isYaml: boolean;
  readonly #held = new Sink();
  #isPassing = false;

  constructor(inner: Encoder, isYaml: boolean) {
    this.#inner = inner;
    this.#isYaml = isYaml;
    this.contentType = isYaml ? YAML_TYPE : JSON_TYPE;
    this.id = `printed ${inner.id} ${this.contentType}`;
  }

  openList(_: Sink, meta: ListMeta): void {
    this.#begin();
    this.#inner.openList(this.#held, meta);
  }

  item(sink: Sink, row: Row, index: number): void {
    this.#inner.item(this.#held, row, index);
    if (this.#isPassing || this.#held.length > HELD_BYTES_MAX) this.#pass(sink);
  }

  closeList(sink: Sink): void {
    this.#inner.closeList(this.#held);
    if (this.#isPassing) this.#pass(sink);
    else this.#print(sink);
  }

  object(sink: Sink, row: Row, revision: number): void {
    this.#begin();
    this.#inner.object(this.#held, row, revision);
    this.#print(sink);
  }

  /** Events are lines of JSON, however they are asked for. */
  frame(sink: Sink, type: EventType, row: Row, revision: number, isFirst: boolean): void {
    this.#inner.frame(sink, type, row, revision, isFirst);
  }

  bookmark(sink: Sink, revision: number, isInitialEnd: boolean, isFirst: boolean): void {
    this.#inner.bookmark(sink, revision, isInitialEnd, isFirst);
  }

  error(sink: Sink, status: Status): void {
    this.#inner.error(sink, status);
  }

  #begin(): void {
    this.#held.length = 0;
    this.#isPassing = false;
  }

  #pass(sink: Sink): void {
    this.#isPassing = true;
    const { bytes, length } = this.#held;
    if (this.#isYaml) sink.utf8(readableJson(bytes.toString('utf8', 0, length)));
    else sink.append(bytes, 0, length);
    this.#held.length = 0;
  }

  #print(sink: Sink): void {
    const { bytes, length } = this.#held;
    const object = parseJson(bytes.toString('utf8', 0, length)) as JsonObject;
    sink.utf8(this.#isYaml ? yamlText(object) : indentedJson(object));
  }
}

/**
 * Tables and metadata for people: what another encoder writes as JSON is held until it is whole,
 * and printed anew as YAML or indented.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import type { Encoder, EventType, ListMeta } from './encoder.ts';
import { JSON_TYPE, YAML_TYPE } from './negotiation.ts';
import { Sink } from './sink.ts';
import type { Row } from './storage.ts';
import { yamlText } from './yaml-text.ts';

export class PrintedEncoder implements Encoder {
  readonly id: string;
  readonly contentType: string;
  readonly #inner: Encoder;
  readonly #isYaml: boolean;
  readonly #held = new Sink();

  constructor(inner: Encoder, isYaml: boolean) {
    this.#inner = inner;
    this.#isYaml = isYaml;
    this.contentType = isYaml ? YAML_TYPE : JSON_TYPE;
    this.id = `printed ${inner.id} ${this.contentType}`;
  }

  openList(_: Sink, meta: ListMeta): void {
    this.#held.length = 0;
    this.#inner.openList(this.#held, meta);
  }

  item(_: Sink, row: Row, index: number): void {
    this.#inner.item(this.#held, row, index);
  }

  closeList(sink: Sink): void {
    this.#inner.closeList(this.#held);
    this.#print(sink);
  }

  object(sink: Sink, row: Row, revision: number): void {
    this.#held.length = 0;
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

  #print(sink: Sink): void {
    const { bytes, length } = this.#held;
    const object = JSON.parse(bytes.toString('utf8', 0, length)) as JsonObject;
    sink.utf8(this.#isYaml ? yamlText(object) : JSON.stringify(object, null, 2));
  }
}

/** YAML, and indented JSON (`pretty`): for people, so the objects are parsed and printed anew. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { shownRow, JsonEncoder, type EventType, type ListMeta } from './encoder.ts';
import { JSON_TYPE, YAML_TYPE, type Negotiated } from './negotiation.ts';
import type { Served } from './served.ts';
import type { Sink } from './sink.ts';
import type { Row } from './storage.ts';
import { yamlText } from './yaml-text.ts';

/** Lists are collected and printed whole: both forms sort or indent across items. */
export class YamlEncoder extends JsonEncoder {
  override readonly id: string;
  override readonly contentType: string;
  readonly #served: Served;
  readonly #isYaml: boolean;
  #list: JsonObject = {};
  #items: JsonValue[] = [];

  constructor(served: Served, media: Negotiated) {
    super(served);
    this.#served = served;
    this.#isYaml = media.encoding === 'yaml';
    this.contentType = this.#isYaml ? YAML_TYPE : JSON_TYPE;
    this.id = `printed ${served.resource.apiVersion} ${media.encoding}`;
  }

  override openList(_sink: Sink, meta: ListMeta): void {
    const { apiVersion, listKind } = this.#served.resource;
    const metadata: JsonObject = { resourceVersion: String(meta.revision) };
    if (meta.continueToken !== '') metadata['continue'] = meta.continueToken;
    if (meta.remaining !== null) metadata['remainingItemCount'] = meta.remaining;
    if (meta.shard !== '') metadata['shardInfo'] = { selector: meta.shard };
    this.#items = [];
    this.#list = { kind: listKind, apiVersion, metadata, items: this.#items };
  }

  override item(_sink: Sink, row: Row): void {
    const { kind: _, apiVersion: __, ...rest } = shownRow(this.#served, row, row.modRevision);
    this.#items.push(rest);
  }

  override closeList(sink: Sink): void {
    this.#print(sink, this.#list);
  }

  override object(sink: Sink, row: Row, revision: number): void {
    this.#print(sink, shownRow(this.#served, row, revision));
  }

  override frame(sink: Sink, type: EventType, row: Row, revision: number): void {
    const object = shownRow(this.#served, row, revision);
    sink.utf8(`${JSON.stringify({ type, object })}\n`);
  }

  #print(sink: Sink, object: JsonObject): void {
    sink.utf8(this.#isYaml ? yamlText(object) : JSON.stringify(object, null, 2));
  }
}

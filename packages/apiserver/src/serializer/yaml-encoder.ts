/** YAML, and indented JSON (`pretty`): for people, so the objects are parsed and printed anew. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { shownRow, JsonEncoder, type EventType, type ListMeta } from './encoder.ts';
import { JSON_TYPE, YAML_TYPE, type Negotiated } from '../request/negotiation.ts';
import type { Served } from '../storage/served.ts';
import type { Sink } from '../sink/sink.ts';
import type { Row } from '../storage/storage.ts';
import { indentedJson, yamlItem, yamlText } from '../request/printed-text.ts';

/** Lists are printed item by item: both forms indent what stands within a list alike. */
export class YamlEncoder extends JsonEncoder {
  override readonly id: string;
  override readonly contentType: string;
  readonly #served: Served;
  readonly #isYaml: boolean;
  #metadata: JsonObject = {};
  #count = 0;

  constructor(served: Served, media: Negotiated) {
    super(served);
    this.#served = served;
    this.#isYaml = media.encoding === 'yaml';
    this.contentType = this.#isYaml ? YAML_TYPE : JSON_TYPE;
    this.id = `printed ${served.resource.apiVersion} ${media.encoding}`;
  }

  override openList(sink: Sink, meta: ListMeta): void {
    const { custom, resource } = this.#served;
    const { apiVersion, listKind } = resource;
    const metadata: JsonObject = { resourceVersion: String(meta.revision) };
    // lists of custom resources tell of their end, too
    if (meta.continueToken !== '' || custom !== null) metadata['continue'] = meta.continueToken;
    if (meta.remaining !== null) metadata['remainingItemCount'] = meta.remaining;
    if (meta.shard !== '') metadata['shardInfo'] = { selector: meta.shard };
    this.#metadata = metadata;
    this.#count = 0;
    // keys of YAML are sorted, so metadata stands behind the items there
    if (this.#isYaml) sink.utf8(`${yamlText({ apiVersion })}items:`);
    else sink.utf8(`${closedLater({ kind: listKind, apiVersion, metadata })},\n  "items": [`);
  }

  override item(sink: Sink, row: Row): void {
    const shown = shownRow(this.#served, row, row.modRevision);
    const { kind: _, apiVersion: __, ...bare } = shown;
    const rest = this.#served.custom === null ? bare : shown;
    const isFirst = this.#count++ === 0;
    if (this.#isYaml) sink.utf8((isFirst ? '\n' : '') + yamlItem(rest));
    else sink.utf8(`${isFirst ? '' : ','}\n    ${indentedJson(rest, 4)}`);
  }

  override closeList(sink: Sink): void {
    const isEmpty = this.#count === 0;
    if (!this.#isYaml) {
      sink.ascii(isEmpty ? ']\n}' : '\n  ]\n}');
      return;
    }
    const { listKind } = this.#served.resource;
    const rest = yamlText({ kind: listKind, metadata: this.#metadata });
    sink.utf8((isEmpty ? ' []\n' : '') + rest);
  }

  override object(sink: Sink, row: Row, revision: number): void {
    const object = shownRow(this.#served, row, revision);
    sink.utf8(this.#isYaml ? yamlText(object) : indentedJson(object));
  }

  override frame(sink: Sink, type: EventType, row: Row, revision: number): void {
    const object = shownRow(this.#served, row, revision);
    sink.utf8(`${JSON.stringify({ type, object })}\n`);
  }
}

/** The text of an object without its last brace. */
function closedLater(object: JsonObject): string {
  return indentedJson(object).slice(0, -'\n}'.length);
}

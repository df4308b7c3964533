/** Aggregated discovery as clients ask for it: who asks for it, and in which encoding. */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeItem, encodeList } from '@megaplane/machinery/protobuf';
import {
  contentType,
  encodingOf,
  parseAccept,
  PLAIN_JSON,
  type Negotiated,
} from '../request/negotiation.ts';
import { yamlText } from '../request/printed-text.ts';

export type Encoding = Negotiated['encoding'];

const VERSION = 'apidiscovery.k8s.io/v2';
const KIND = 'APIGroupDiscoveryList';
const GROUP_KIND = 'APIGroupDiscovery';

/** What the aggregated document is, behind the type of its encoding. */
export const AGGREGATED_PARAMETERS = ';g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** The encoding, where the Accept header names the aggregated document at all. */
export function aggregatedEncoding(accept: string): Encoding | null {
  for (const clause of parseAccept(accept)) {
    const encoding = encodingOf(clause);
    if (encoding === undefined) continue;
    const { parameters } = clause;
    const isList = parameters.get('as') === 'APIGroupDiscoveryList';
    const isGroup = parameters.get('g') === 'apidiscovery.k8s.io';
    if (isList && isGroup && parameters.get('v') === 'v2') return encoding;
  }
  return null;
}

/** Documents in what they were asked for beside JSON: hardly ever, and then again. */
const forms = new WeakMap<Document, Map<Encoding, Document>>();

/** An aggregated document in an encoding, where it was made before. */
export function keptForm(document: Document, encoding: Encoding): Document | undefined {
  return encoding === 'json' ? document : forms.get(document)?.get(encoding);
}

/**
 * Makes the form of an aggregated document and keeps it, a group in each step; its entity tag is
 * that of its JSON, as upstream's.
 */
export function* makeForm(document: Document, encoding: Encoding): Generator<void> {
  const made = yield* encoding === 'yaml' ? yamlForm(document) : protobufForm(document);
  const type = contentType({ ...PLAIN_JSON, encoding }, false) + AGGREGATED_PARAMETERS;
  const form: Document = { contentType: type, bytes: made, etag: document.etag };
  let own = forms.get(document);
  if (own === undefined) forms.set(document, (own = new Map()));
  own.set(encoding, form);
}

function* yamlForm({ groups = [] }: Document): Generator<void, Buffer> {
  const pieces = [Buffer.from(yamlText({ apiVersion: VERSION }))];
  for (const [index, text] of groups.entries()) {
    const items = yamlText({ items: [parseJson(text)] });
    pieces.push(Buffer.from(index === 0 ? items : items.slice('items:\n'.length)));
    yield;
  }
  pieces.push(Buffer.from(yamlText({ kind: KIND, metadata: {} })));
  return Buffer.concat(pieces);
}

function* protobufForm({ groups = [] }: Document): Generator<void, Buffer> {
  const items: Buffer[] = [];
  for (const text of groups) {
    const item = encodeItem(VERSION, GROUP_KIND, parseJson(text) as JsonObject);
    if (item === undefined) throw new Error(`the tables have no ${GROUP_KIND}`);
    items.push(item);
    yield;
  }
  return encodeList(VERSION, KIND, {}, items);
}

/** A document with its entity tag, or null where there is none at the path. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly etag: string;
  /** Texts of the groups of an aggregated document. */
  readonly groups?: readonly string[];
}

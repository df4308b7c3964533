/** Aggregated discovery as clients ask for it: who asks for it, and in which encoding. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import type { Document } from './discovery.ts';
import {
  contentType,
  encodingOf,
  parseAccept,
  PLAIN_JSON,
  type Negotiated,
} from './negotiation.ts';
import { yamlText } from './yaml-text.ts';

type Encoding = Negotiated['encoding'];

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

/** The document in an encoding; its entity tag is that of its JSON, as upstream's. */
export function inEncoding(document: Document, encoding: Encoding): Document {
  if (encoding === 'json') return document;
  let own = forms.get(document);
  if (own === undefined) forms.set(document, (own = new Map()));
  let form = own.get(encoding);
  if (form === undefined) {
    const object = JSON.parse(document.bytes.toString('utf8')) as JsonObject;
    const bytes = encoding === 'yaml' ? Buffer.from(yamlText(object)) : encodeProtobuf(object);
    if (bytes === undefined) throw new Error('the tables have no APIGroupDiscoveryList');
    const type = contentType({ ...PLAIN_JSON, encoding }, false) + AGGREGATED_PARAMETERS;
    form = { contentType: type, bytes: Buffer.from(bytes), etag: document.etag };
    own.set(encoding, form);
  }
  return form;
}

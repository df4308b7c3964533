/** Content negotiation of answers: which of the clauses of an Accept header the server serves. */
import { ownMember } from '@megaplane/base/members';
import {
  failed,
  notAcceptable,
  notAcceptableText,
  nothingAcceptable,
  success,
  type Result,
  type Status,
} from '@megaplane/machinery/status';

export const JSON_TYPE = 'application/json';
export const YAML_TYPE = 'application/yaml';
export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';
/**
 * JSON without managedFields, which are half of a pod and which programs that watch by the million
 * do not read. Servers that do not know the parameter ignore it and answer whole objects.
 */
export const LEAN_JSON_TYPE = 'application/json;managedfields=omit';

/** How an answer is encoded and into what it is transformed. */
export interface Negotiated {
  readonly encoding: 'json' | 'yaml' | 'protobuf';
  readonly transform: 'none' | 'table' | 'metadata' | 'metadataList' | 'discovery';
  /** Version of meta.k8s.io for a transform: `v1` or `v1beta1`. */
  readonly version: string;
  readonly pretty: boolean;
  /** The answer goes without managedFields. */
  readonly isLean?: boolean;
}

/** One type of an Accept header, in lower case, with its parameters. */
export interface Clause {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

export const PLAIN_JSON: Negotiated = {
  encoding: 'json',
  transform: 'none',
  version: '',
  pretty: false,
};
const LEAN_JSON: Negotiated = { ...PLAIN_JSON, isLean: true };
const ENCODINGS: Readonly<Record<string, Negotiated['encoding']>> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
  'application/*': 'json',
  '*/*': 'json',
};
const TRANSFORMS: Readonly<Record<string, Negotiated['transform']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadataList',
};

/** What the resource can be turned into; `media` are the encodings that it has. */
export interface Offer {
  readonly media: readonly string[];
  readonly tables: boolean;
  /** Of what it is turned into, there are no tables. */
  readonly isUnprinted?: boolean;
  /** What the router lets pass, where that is more than the encodings; in its refusals' order. */
  readonly routed?: readonly string[];
  /** No router stands before it that would refuse `application/*`. */
  readonly isUnrouted?: boolean;
  /** Whole objects have no protobuf form; what is made of them has. */
  readonly isUntyped?: boolean;
}

export const BUILT_IN_OFFER: Offer = {
  media: [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE],
  tables: true,
};
/** For lists: their router knows the types of watches too. */
export const LISTED_OFFER: Offer = {
  ...BUILT_IN_OFFER,
  routed: [...BUILT_IN_OFFER.media, `${JSON_TYPE};stream=watch`, `${PROTOBUF_TYPE};stream=watch`],
};
export const CUSTOM_OFFER: Offer = { ...BUILT_IN_OFFER, isUntyped: true, isUnrouted: true };
/** For what has a storage of its own, which prints nothing. */
export const UNPRINTED_OFFER: Offer = { ...BUILT_IN_OFFER, isUnprinted: true };
export const LOG_OFFER: Offer = {
  ...UNPRINTED_OFFER,
  routed: ['text/plain', ...UNPRINTED_OFFER.media],
};
export const REVIEW_OFFER: Offer = { media: BUILT_IN_OFFER.media, tables: false };
/** For what is written without a router: failures, and the documents of the aggregator. */
export const UNROUTED_OFFER: Offer = { ...REVIEW_OFFER, isUnrouted: true };

/**
 * The first clause, by weight and then by position, that can be served. A clause whose type is
 * known but whose parameters are not is skipped; if nothing is left, that decides the text of 406.
 */
export function negotiate(accept: string, offer: Offer, pretty: boolean): Result<Negotiated> {
  if (accept === '' || accept === '*/*' || accept === JSON_TYPE) {
    return success(pretty ? { ...PLAIN_JSON, pretty } : PLAIN_JSON);
  }
  if (accept === LEAN_JSON_TYPE && !pretty) return success(LEAN_JSON);
  let isTypeKnown = false;
  for (const clause of parseAccept(accept)) {
    const encoding = encodingOf(clause);
    if (encoding === undefined || !isOffered(clause.type, offer)) continue;
    isTypeKnown = true;
    if (!isServed(clause, encoding, offer)) continue;
    const transform = transformOf(clause, offer);
    if (transform === null) continue;
    // tables hold cells of any type, for which protobuf has no form
    if (transform.transform === 'table' && encoding === 'protobuf') continue;
    const isWhole = transform.transform === 'none';
    if (isWhole && encoding === 'protobuf' && offer.isUntyped === true) continue;
    const isLean = encoding === 'json' && clause.parameters.get('managedfields') === 'omit';
    const isPretty = pretty || clause.parameters.get('pretty') === '1';
    return success({ encoding, ...transform, pretty: isPretty, isLean });
  }
  if (isTypeKnown || offer.isUnrouted === true) return failed(notAcceptable(offer.media));
  return failed(nothingAcceptable(offer.routed ?? offer.media));
}

/** Whether a refusal is the router's, which asks no handler. */
export function isOfRouter({ message }: Status): boolean {
  return message?.startsWith('406: ') === true;
}

function isOffered(type: string, offer: Offer): boolean {
  if (type === 'application/*') return offer.isUnrouted === true;
  return type === '*/*' || offer.media.includes(type);
}

/** The encoding that a clause stands for; undefined where there is none. */
export function encodingOf({ type }: Clause): Negotiated['encoding'] | undefined {
  return ownMember(ENCODINGS, type);
}

/** YAML has no form for streams, and only where there are objects has the server a version. */
function isServed({ parameters }: Clause, encoding: Negotiated['encoding'], offer: Offer): boolean {
  const version = parameters.get('sv') ?? '';
  if (version !== '' && (version !== 'v1' || !offer.tables)) return false;
  const stream = parameters.get('stream') ?? '';
  return stream === '' || (stream === 'watch' && encoding !== 'yaml');
}

function transformOf(
  clause: Clause,
  offer: Offer,
): Pick<Negotiated, 'transform' | 'version'> | null {
  const { parameters } = clause;
  if (!['as', 'g', 'v'].some((name) => parameters.has(name)))
    return { transform: 'none', version: '' };
  const transform = ownMember(TRANSFORMS, parameters.get('as') ?? '');
  const version = parameters.get('v') ?? '';
  if (transform === undefined || !offer.tables) return null;
  if (transform === 'table' && offer.isUnprinted === true) return null;
  if (parameters.get('g') !== 'meta.k8s.io') return null;
  return version === 'v1' || version === 'v1beta1' ? { transform, version } : null;
}

interface Weighed {
  readonly clause: Clause;
  readonly weight: number;
}

/**
 * Clauses by falling weight, those with wildcards behind others; a weight of 0 is only the last
 * choice. Upstream's order is none by the book where both rules apply, so it is sorted by insertion
 * as there.
 */
export function parseAccept(accept: string): Clause[] {
  const sorted: Weighed[] = [];
  for (const text of accept.split(',')) {
    const weighed = weighedClause(text);
    if (weighed === null) continue;
    let at = sorted.length;
    for (let before = sorted[at - 1]; before !== undefined; before = sorted[at - 1]) {
      if (!precedes(weighed, before)) break;
      sorted[at--] = before;
    }
    sorted[at] = weighed;
  }
  return sorted.map(({ clause }) => clause);
}

function weighedClause(text: string): Weighed | null {
  const [first = '', ...rest] = text.split(';');
  const type = first.trim().toLowerCase();
  if (type === '') return null;
  const parameters = new Map<string, string>();
  for (const pair of rest) {
    const [name = '', value = '', more] = pair.split('=');
    // nothing is said by a parameter without a value, or with two
    if (value !== '' && more === undefined) {
      parameters.set(name.trim().toLowerCase(), unquote(value.trim()));
    }
  }
  return { clause: { type, parameters }, weight: Number(parameters.get('q') ?? '1') || 0 };
}

function precedes(one: Weighed, other: Weighed): boolean {
  if (one.weight > other.weight) return true;
  const [type = '', subtype = '*'] = one.clause.type.split('/');
  const [otherType = '', otherSubtype = '*'] = other.clause.type.split('/');
  if (type !== '*' && otherType === '*') return true;
  return subtype !== '*' && otherSubtype === '*';
}

function unquote(text: string): string {
  return text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** A single object was asked for as a list of metadata, or a list as one object's metadata. */
export function checkTransformShape(
  asked: Negotiated,
  isList: boolean,
  goType: string,
): Result<true> {
  const but = 'but the requested object is';
  if (asked.transform === 'metadata' && isList) {
    const text = `you requested PartialObjectMetadata, ${but} a list (${goType})`;
    return failed(notAcceptableText(text));
  }
  if (asked.transform === 'metadataList' && !isList) {
    const text = `you requested PartialObjectMetadataList, ${but} not a list (${goType})`;
    return failed(notAcceptableText(text));
  }
  return success(true);
}

/** The Content-Type of an answer. */
export function contentType(asked: Negotiated, isWatch: boolean): string {
  const base = {
    json: JSON_TYPE,
    yaml: YAML_TYPE,
    protobuf: PROTOBUF_TYPE,
  }[asked.encoding];
  return isWatch && asked.encoding === 'protobuf' ? `${base};stream=watch` : base;
}

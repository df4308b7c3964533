/** From a negotiated representation to the encoder that produces it. */
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { parseIncludeObject, partialObjectMetadata } from '@megaplane/machinery/printing';
import { success, type Result } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import { JsonEncoder, MetadataEncoder, type Encoder } from './encoder.ts';
import type { Filter } from '../request/filter.ts';
import type { KeptSpace } from './kept-encodings.ts';
import {
  BUILT_IN_OFFER,
  CUSTOM_OFFER,
  LISTED_OFFER,
  LOG_OFFER,
  REVIEW_OFFER,
  UNPRINTED_OFFER,
  checkTransformShape,
  negotiate,
  type Offer,
} from '../request/negotiation.ts';
import { PrintedEncoder } from './printed-encoder.ts';
import { ProtobufEncoder, ProtobufMetadataEncoder } from './protobuf-encoder.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { rangeOf, type KeyRange, type Served } from '../storage/served.ts';
import { TableEncoder } from './table-encoder.ts';
import { YamlEncoder } from './yaml-encoder.ts';

/** Reads the Accept header into `call.media`; the failure is a 406. */
export function negotiateCall(call: Call, served: Served): Result<true> {
  const offer = served.custom === null ? builtInOffer(call, served) : CUSTOM_OFFER;
  const accept = call.exchange.header('accept') ?? '';
  const media = negotiate(accept, offer, call.isPretty);
  if (!media.ok) return media;
  call.media = media.value;
  return success(true);
}

function builtInOffer(call: Call, served: Served): Offer {
  const { verb, subresource } = call.info;
  if (verb === 'list' || verb === 'watch') return LISTED_OFFER;
  if (isBare(call, served)) return REVIEW_OFFER;
  if (subresource === 'log') return LOG_OFFER;
  const { kind } = served.resource;
  const isUnprinted = UNPRINTED.has(subresource) || kind === 'Binding' || kind.endsWith('Review');
  return isUnprinted ? UNPRINTED_OFFER : BUILT_IN_OFFER;
}

/** Subresources that no table can be made of; nor can it of bindings and reviews. */
const UNPRINTED: ReadonlySet<string> = new Set([
  'binding',
  'ephemeralcontainers',
  'eviction',
  'finalize',
  'resize',
  'token',
]);

/** Kinds of which upstream cannot print the status alone. */
const BARE_STATUS: readonly string[] = [
  'apiservices.apiregistration.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'resourceclaims.resource.k8s.io',
];

function isBare({ info }: Call, { resource }: Served): boolean {
  return info.subresource === 'status' && BARE_STATUS.includes(resource.storage.name);
}

/** Answers with an object that was made for the request, or with its metadata where asked. */
export function sendMade(call: Call, code: number, object: JsonObject): void {
  const { media } = call;
  const [group = ''] = stringAt(object, 'apiVersion').split(/[./]/);
  const goType = `*${group}.${stringAt(object, 'kind')}`;
  const shape = checkTransformShape(media, false, goType);
  if (!shape.ok) call.fail(shape.status);
  else if (media.transform !== 'metadata') call.sendObject(code, object);
  else {
    const version = media.version === 'v1' ? 'v1' : 'v1beta1';
    call.sendObject(code, partialObjectMetadata(object, version));
  }
}

/** Where encodings of a representation are kept. */
export type KeptOf = (representation: string) => KeptSpace | null;

/**
 * The encoder for what `call.media` asks, for one object or a list of them. What outlives the
 * request, as a watch does, tells ages by a clock of its own.
 */
export function encoderOf(
  call: Call,
  served: Served,
  isList: boolean,
  keptOf: KeptOf | null = null,
  nowMs: () => number = () => call.nowMs,
): Result<Encoder> {
  const { media } = call;
  const shape = checkTransformShape(media, isList, goTypeOf(served, isList));
  if (!shape.ok) return shape;
  switch (media.transform) {
    case 'table': {
      const table = tableEncoder(call, served, keptOf, nowMs);
      return table.ok ? success(forPeople(call, table.value)) : table;
    }
    case 'metadata':
    case 'metadataList':
      if (media.encoding === 'protobuf') return success(new ProtobufMetadataEncoder(media.version));
      return success(forPeople(call, new MetadataEncoder(media.version)));
    case 'discovery':
    case 'none':
      break;
  }
  if (media.encoding === 'protobuf') return success(new ProtobufEncoder(served, keptOf));
  if (media.encoding === 'yaml' || media.pretty) return success(new YamlEncoder(served, media));
  return success(jsonEncoder(served, media.isLean === true));
}

/** The encoder itself, or one that prints what it writes; streams are never printed. */
function forPeople({ media, info }: Call, encoder: Encoder): Encoder {
  const isYaml = media.encoding === 'yaml';
  const isPrinted = (isYaml || media.pretty) && info.verb !== 'watch';
  return isPrinted ? new PrintedEncoder(encoder, isYaml) : encoder;
}

/** The type of upstream's internal form, which refusals name. */
export function goTypeOf({ resource, custom }: Served, isList: boolean): string {
  if (custom !== null) return `*unstructured.Unstructured${isList ? 'List' : ''}`;
  const { name } = resource.storage;
  const [, group = 'core'] = name.split('.');
  return `*${group}.${isList ? resource.listKind : resource.kind}`;
}

const whole = new WeakMap<Served, JsonEncoder>();
const lean = new WeakMap<Served, JsonEncoder>();

/** It holds nothing of one answer, so one serves all. */
function jsonEncoder(served: Served, isLean: boolean): JsonEncoder {
  const made = isLean ? lean : whole;
  let encoder = made.get(served);
  if (encoder === undefined) made.set(served, (encoder = new JsonEncoder(served, isLean)));
  return encoder;
}

function tableEncoder(
  call: Call,
  served: Served,
  keptOf: KeptOf | null,
  nowMs: () => number,
): Result<Encoder> {
  const include = parseIncludeObject(call.query.text('includeObject'));
  if (!include.ok) return include;
  const version = call.media.version === 'v1' ? 'v1' : 'v1beta1';
  return success(new TableEncoder(served, version, include.value, nowMs, keptOf));
}

/**
 * The keys that a list or watch looks at: narrowed where a selector names the object, except in
 * later pages, which start somewhere in the whole.
 */
export function selectOf(
  served: Served,
  info: RequestInfo,
  filter: Filter,
  isPage = false,
): KeyRange {
  const namespace = namespaceOf(served, info, filter);
  return rangeOf(served, namespace, isPage ? '' : filter.name);
}

/** The namespace of the URL, or the one that a field selector pins. */
export function namespaceOf(served: Served, info: RequestInfo, filter: Filter): string {
  if (!served.resource.namespaced) return '';
  return info.namespace === '' ? filter.namespace : info.namespace;
}

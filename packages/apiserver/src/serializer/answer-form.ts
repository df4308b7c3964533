/** Answers that are made as a whole, as what the client asked for: rows, metadata, or all. */
import { listAt, objectAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import {
  parseIncludeObject,
  partialObjectMetadata,
  printerOf,
  tableOf,
} from '@megaplane/machinery/printing';
import { success, type Result } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import type { Served } from '../storage/served.ts';

/** Of one object, or of a list of them; the shape was checked before. */
export function answerForm(
  { media, query, nowMs }: Call,
  { custom, resource }: Served,
  answer: JsonObject,
  isList: boolean,
): Result<JsonObject> {
  const version = media.version === 'v1' ? 'v1' : 'v1beta1';
  const { apiVersion, kind, group } = resource;
  const items = isList
    ? listAt(answer, 'items')
        .filter(isObject)
        .map((item) => ({ kind, apiVersion, ...item }))
    : [answer];
  const shared = objectAt(answer, 'metadata') ?? {};
  switch (media.transform) {
    case 'table': {
      const include = parseIncludeObject(query.text('includeObject'));
      if (!include.ok) return include;
      const printer = custom === null ? printerOf(group, kind) : custom.schemas.printerOf(custom);
      const revision = shared['resourceVersion'];
      const own: JsonObject = revision === undefined ? {} : { resourceVersion: revision };
      const metadata = isList ? shared : own;
      const frame = { version, include: include.value, nowMs, hasColumns: true, metadata } as const;
      return success(tableOf(printer, items, frame));
    }
    case 'metadata':
      return success(partialObjectMetadata(answer, version));
    case 'metadataList': {
      const shown = items.map((item) => partialObjectMetadata(item, version));
      const head = { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${version}` };
      return success({ ...head, metadata: shared, items: shown.length === 0 ? null : shown });
    }
    case 'discovery':
    case 'none':
      return success(answer);
  }
}

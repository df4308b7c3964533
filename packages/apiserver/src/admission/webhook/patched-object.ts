/** What a webhook's patch made, as upstream decodes it again. */
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { internalError, unclassified, type Status } from '@megaplane/machinery/status';
import { KIND_STRUCT, withFitMetadata, wordOf } from '../../apiextensions/schema/custom-objects.ts';
import { unfit } from '../../webhook/review-decoding.ts';
import { refitted, refittedApplied } from '../../registry/rest/schema-gate.ts';
import type { Served } from '../../storage/served.ts';

type Decoded = { readonly object: JsonObject } | { readonly status: Status };

/**
 * The object in the form of its kind: that of `shown`, which was patched, and which with
 * subresources is another than that of the resource.
 */
export function patchedObject(target: Served, patched: JsonValue, shown: JsonObject): Decoded {
  const fallback = { apiVersion: stringAt(shown, 'apiVersion'), kind: stringAt(shown, 'kind') };
  if (!isObject(patched)) {
    if (patched === null) return wrong(`Object 'Kind' is missing in 'null'`);
    const why = `json: cannot unmarshal ${wordOf(patched)} into Go value of type ${KIND_STRUCT}`;
    return wrong(`couldn't get version/kind; json parse error: ${why}`);
  }
  const isOwn = fallback.kind === target.resource.kind;
  const custom = isOwn ? target.custom : null;
  const kind = stringAt(patched, 'kind');
  if (custom !== null) {
    const fault = customFault(patched);
    if (fault !== '') return wrong(fault);
  }
  const apiVersion = stringAt(patched, 'apiVersion') || fallback.apiVersion;
  const fit = custom === null ? patched : withFitMetadata(patched);
  const named: JsonObject = { ...fit, kind: kind || fallback.kind, apiVersion };
  const isSame = custom !== null || sameKind(named, fallback);
  const type = isSame ? undefined : findTypeOfKind(apiVersion, kind);
  if (!isSame && type === undefined) {
    const scheme = 'in scheme "pkg/runtime/scheme.go:111"';
    return wrong(
      `no kind "${stringAt(named, 'kind')}" is registered for version "${apiVersion}" ${scheme}`,
    );
  }
  // of custom resources nothing is dropped until they are stored
  const formed = { custom, resource: { apiVersion, kind: stringAt(named, 'kind') } };
  const isTyped = custom === null;
  const fitted = isTyped ? refitted(formed, named, false) : refittedApplied(formed, named);
  if (fitted !== null && !fitted.ok) return wrong(fitted.message);
  if (!isSame) return { status: unclassified(conversion(named, fallback)) };
  return { object: fitted === null ? named : fitted.object };
}

/** Why what was patched cannot be read as an object without a type; '' where it can. */
function customFault(patched: JsonObject): string {
  for (const field of ['kind', 'apiVersion']) {
    const value = patched[field] ?? '';
    if (typeof value === 'string') continue;
    const why = unfit(value, `.${field} of type string`);
    return `couldn't get version/kind; json parse error: ${why}`;
  }
  if (stringAt(patched, 'kind') === '') {
    return `Object 'Kind' is missing in '${JSON.stringify(patched)}'`;
  }
  const metadata = patched['metadata'] ?? {};
  return isObject(metadata) ? '' : 'system metadata was not initialized';
}

function wrong(why: string): Decoded {
  return { status: internalError(why) };
}

/** Why an object without a type is none of the version of `target`; '' where it is. */
export function estrangement({ custom, resource }: Served, object: JsonObject): string {
  const version = stringAt(object, 'apiVersion');
  if (custom === null || version === resource.apiVersion) return '';
  const own = version.includes('/') ? version : `/${version}`;
  const what = `${own}, Kind=${stringAt(object, 'kind')} is unstructured`;
  return `${what} and is not suitable for converting to "${resource.apiVersion}"`;
}

interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
}

function sameKind(object: JsonObject, { apiVersion, kind }: Kind): boolean {
  return stringAt(object, 'kind') === kind && stringAt(object, 'apiVersion') === apiVersion;
}

/** Go's words for types that cannot be converted: package and name, of the internal one here. */
function conversion(from: JsonObject, to: Kind): string {
  const version = stringAt(from, 'apiVersion').split('/').at(-1) ?? '';
  const group = to.apiVersion.includes('/') ? to.apiVersion.split(/[./]/)[0] : 'core';
  const own = `${version}.${stringAt(from, 'kind')}`;
  return `converting (${own}) to (${group}.${to.kind}): unknown conversion`;
}

/** AdmissionReview: what a webhook is asked, and what its answer means. Texts are upstream's. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import type { Admitted } from './admission.ts';
import type { Served } from '../served.ts';
import { requestOf, shownAs } from './admission-request.ts';
import type { Webhook } from './webhook-configurations.ts';

const GROUP = 'admission.k8s.io';

/** The body of the request. */
export function reviewBody(
  write: Admitted,
  { version }: Webhook,
  target: Served,
  uid: string,
): Buffer {
  const { object, previous, served } = write;
  const { options, dryRun, ...request } = requestOf(write, target, uid);
  const review = {
    kind: 'AdmissionReview',
    apiVersion: `${GROUP}/${version}`,
    request: {
      ...request,
      object: shownAs(object, served, target),
      oldObject: shownAs(previous, served, target),
      dryRun,
      options,
    },
  };
  return Buffer.from(JSON.stringify(review));
}

/** What a webhook said. */
export interface Reviewed {
  readonly allowed: boolean;
  readonly status: JsonObject;
  /** Operations of the JSON patch; '' without one. */
  readonly patch: string;
  readonly warnings: readonly string[];
  /** For the audit log, without the webhook's name before them. */
  readonly annotations: Readonly<Record<string, string>>;
}

export type ReviewAnswer =
  | { readonly ok: true; readonly value: Reviewed }
  | { readonly ok: false; readonly why: string };

const INVALID = 'received invalid webhook response: ';

/** Reads the answer; `isMutating` says whether a patch may be in it. */
export function readReview(
  body: Buffer,
  version: string,
  uid: string,
  isMutating: boolean,
): ReviewAnswer {
  const review = parse(body);
  if (typeof review === 'string') return { ok: false, why: `failed to call webhook: ${review}` };
  const response = objectAt(review, 'response');
  if (response === undefined) return invalid('webhook response was absent');
  const patch = stringAt(response, 'patch');
  if (version === 'v1') {
    const kind = `${stringAt(review, 'apiVersion')}, Kind=${stringAt(review, 'kind')}`;
    const wanted = `${GROUP}/v1, Kind=AdmissionReview`;
    if (kind !== wanted) return invalid(`expected webhook response of ${wanted}, got ${kind}`);
    const found = stringAt(response, 'uid');
    if (found !== uid) return invalid(`expected response.uid="${uid}", got "${found}"`);
    const fault = isMutating ? patchFault(response, patch) : '';
    if (fault !== '') return invalid(fault);
  }
  return {
    ok: true,
    value: {
      allowed: response['allowed'] === true,
      status: objectAt(response, 'status') ?? {},
      patch: isMutating && patch !== '' ? Buffer.from(patch, 'base64').toString('utf8') : '',
      warnings: listAt(response, 'warnings').filter((one) => typeof one === 'string'),
      annotations: textsIn(objectAt(response, 'auditAnnotations') ?? {}),
    },
  };
}

function textsIn(object: JsonObject): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [key, value] of Object.entries(object)) {
    if (typeof value === 'string') texts[key] = value;
  }
  return texts;
}

function invalid(why: string): ReviewAnswer {
  return { ok: false, why: INVALID + why };
}

function patchFault(response: JsonObject, patch: string): string {
  const type = response['patchType'];
  const hasType = type !== undefined && type !== null;
  if (patch !== '' && !hasType) return 'webhook returned response.patch but not response.patchType';
  if (patch === '' && hasType) return 'webhook returned response.patchType but not response.patch';
  if (hasType && type !== 'JSONPatch') {
    return `webhook returned invalid response.patchType of ${JSON.stringify(type)}`;
  }
  return '';
}

function parse(body: Buffer): JsonObject | string {
  try {
    const value = JSON.parse(body.toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const [first = ''] = body.toString('utf8').trimStart();
  const why =
    first === ''
      ? 'unexpected end of JSON input'
      : `invalid character ${quotedRune(first)} looking for beginning of value`;
  return `couldn't get version/kind; json parse error: ${why}`;
}

function quotedRune(rune: string): string {
  return rune === "'" ? `'\\''` : `'${rune}'`;
}

/** The Status of a refusal: the webhook's own, with at least 400 and a message that names it. */
export function denialOf(name: string, status: JsonObject): Status {
  const own = stringAt(status, 'message');
  const reason = stringAt(status, 'reason');
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`;
  const said = own || reason;
  const sentCode = status['code'];
  const code = typeof sentCode === 'number' && sentCode >= 400 ? sentCode : 400;
  const details = objectAt(status, 'details');
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: said === '' ? `${denied} without explanation` : `${denied}: ${said}`,
    ...(reason === '' ? {} : { reason }),
    // what a webhook says of itself goes to the client as it is
    ...(details === undefined ? {} : { details }),
    code,
  };
}

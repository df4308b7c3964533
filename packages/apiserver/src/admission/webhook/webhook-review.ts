/** AdmissionReview: what a webhook is asked, and what its answer means. Texts are upstream's. */
import { putMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { rawJson } from '@megaplane/machinery/raw-text';
import { quoted } from '@megaplane/machinery/quoting';
import type { Status } from '@megaplane/machinery/status';
import type { Served } from '../../storage/served.ts';
import { requestOf, shownAs, shownObjectOf, type Phase } from './admission-request.ts';
import { readAnswer } from './webhook-answer.ts';
import type { Webhook } from './webhook-configurations.ts';
import { decodedText } from '@megaplane/machinery/json-text';
import type { Admitted } from '../../registry/rest/admitted.ts';

const GROUP = 'admission.k8s.io';
export const JSON_PATCH = 'JSONPatch';
/** Higher ones cannot be sent to the client. */
const CODE_MAX = 999;

/** The body of the request. */
export function reviewBody(
  write: Admitted,
  { version }: Webhook,
  target: Served,
  uid: string,
  phase: Phase,
): Buffer {
  const { previous } = write;
  const { options, dryRun, ...request } = requestOf(write, target, uid);
  const object = shownObjectOf(write, target, phase);
  const review: JsonObject = {
    kind: 'AdmissionReview',
    apiVersion: `${GROUP}/${version}`,
    request: {
      ...request,
      object,
      oldObject: shownAs(previous, write, target),
      dryRun,
      options,
    },
  };
  // built-in objects are sent with their raw parts as they are stored
  return Buffer.from(target.custom === null ? rawJson(review) : JSON.stringify(review));
}

/** What a webhook said. */
export interface Reviewed {
  readonly allowed: boolean;
  readonly status: JsonObject;
  /** Operations of the patch; '' without one. */
  readonly patch: string;
  readonly patchType: string;
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
  const answer = readAnswer(body, version);
  if (!answer.ok) return { ok: false, why: `failed to call webhook: ${answer.why}` };
  const { kind, response } = answer;
  if (response === null) return invalid('webhook response was absent');
  const patch = stringAt(response, 'patch');
  if (version === 'v1') {
    const found = stringAt(response, 'uid');
    if (found !== uid) {
      return invalid(`expected response.uid=${quoted(uid)}, got ${quoted(found)}`);
    }
    const wanted = `${GROUP}/v1, Kind=AdmissionReview`;
    if (kind !== wanted) return invalid(`expected webhook response of ${wanted}, got ${kind}`);
    const fault = isMutating ? patchFault(response, patch) : strayPatch(response, patch);
    if (fault !== '') return invalid(fault);
  }
  return {
    ok: true,
    value: {
      allowed: response['allowed'] === true,
      status: objectAt(response, 'status') ?? {},
      patch: isMutating && patch !== '' ? decodedText(Buffer.from(patch, 'base64')) : '',
      // the older version knows of one type only, and does not look
      patchType: version === 'v1' ? stringAt(response, 'patchType') : JSON_PATCH,
      warnings: listAt(response, 'warnings').filter((one) => typeof one === 'string'),
      annotations: textsIn(objectAt(response, 'auditAnnotations') ?? {}),
    },
  };
}

function textsIn(object: JsonObject): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [key, value] of Object.entries(object)) {
    if (typeof value === 'string') putMember(texts, key, value);
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
  return type === '' ? 'webhook returned invalid response.patchType of ""' : '';
}

/** Validating webhooks change nothing. */
function strayPatch(response: JsonObject, patch: string): string {
  if (patch !== '') return 'validating webhook may not return response.patch';
  const type = response['patchType'];
  const hasType = type !== undefined && type !== null;
  return hasType ? 'validating webhook may not return response.patchType' : '';
}

/** The Status of a refusal: the webhook's own, with at least 400 and a message that names it. */
export function denialOf(name: string, status: JsonObject): Status {
  const own = stringAt(status, 'message');
  const reason = stringAt(status, 'reason');
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`;
  const said = own || reason;
  const sentCode = status['code'];
  const sent = typeof sentCode === 'number' && sentCode >= 400 ? sentCode : 400;
  const code = sent > CODE_MAX ? 500 : sent;
  const details = objectAt(status, 'details');
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: objectAt(status, 'metadata') ?? {},
    status: 'Failure',
    message: said === '' ? `${denied} without explanation` : `${denied}: ${said}`,
    ...(reason === '' ? {} : { reason }),
    // what a webhook says of itself goes to the client as it is
    ...(details === undefined ? {} : { details }),
    code,
  };
}

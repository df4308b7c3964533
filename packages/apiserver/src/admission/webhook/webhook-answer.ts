/**
 * The AdmissionReview that a webhook answers with, read as Go's decoder reads it: with
 * `failurePolicy: Ignore` its failures decide whether a write goes on.
 */
import { base64Fault } from '@megaplane/machinery/base64';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import {
  decodeReview,
  firstFault,
  membersFault,
  number,
  plain,
  STATUS,
  unfit,
  type Check,
} from '../../webhook/review-decoding.ts';
import { decodedText } from '@megaplane/machinery/json-text';

const GROUP = 'admission.k8s.io';
const KIND = 'AdmissionReview';

/** What was read: `response` in JSON of the right types, null where there is none. */
export type Answer =
  | {
      readonly ok: true;
      /** `group/version, Kind=kind` as it was sent. */
      readonly kind: string;
      readonly response: JsonObject | null;
    }
  | { readonly ok: false; readonly why: string };

/** Reads the body of an answer to a review of `version`. */
export function readAnswer(body: Buffer, version: string): Answer {
  const decoded = decodeReview(decodedText(body), { group: GROUP, kind: KIND, version });
  if (!decoded.ok) return decoded;
  const { told, review } = decoded;
  const response = review['response'] ?? null;
  if (response === null) return { ok: true, kind: told, response: null };
  if (!isObject(response)) {
    return fail(unfit(response, `AdmissionReview.response of type ${version}.AdmissionResponse`));
  }
  const fault = responseFault(response, version);
  return fault === '' ? { ok: true, kind: told, response } : fail(fault);
}

function fail(why: string): Answer {
  return { ok: false, why };
}

function responseFault(response: JsonObject, version: string): string {
  const checks: Readonly<Record<string, Check>> = {
    uid: plain('types.UID'),
    allowed: (value, path) =>
      typeof value === 'boolean' ? '' : unfit(value, `${path} of type bool`),
    status: (value, path) => membersFault(value, STATUS, 'Status', path, 'v1.Status'),
    patch: bytesFault,
    patchType: plain(`${version}.PatchType`),
    auditAnnotations: (value, path) => {
      if (!isObject(value)) return unfit(value, `${path} of type map[string]string`);
      return firstFault(Object.values(value), (item) => plain('string')(item, path));
    },
    warnings: (value, path) => {
      if (!Array.isArray(value)) return unfit(value, `${path} of type []string`);
      return firstFault(value, (item) => plain('string')(item, path));
    },
  };
  return membersFault(response, checks, 'AdmissionResponse', '.response', '');
}

const bytesFault: Check = (value, path) => {
  if (Array.isArray(value)) {
    return firstFault(value, (item) => number('uint8')(item, path));
  }
  if (typeof value !== 'string') return unfit(value, `${path} of type []uint8`);
  const at = base64Fault(value);
  return at < 0 ? '' : `illegal base64 data at input byte ${at}`;
};

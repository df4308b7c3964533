/**
 * ImagePolicyWebhook: somebody outside says which images may run. An ImageReview is posted, the
 * answer kept for a while. Off unless enabled.
 */
import { ownMember } from '@megaplane/base/members';
import { objectAt, listAt, stringAt } from '@megaplane/machinery/json';
import { decodedText, parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { AnswerCache } from '../../webhook/answer-cache.ts';
import { readWebhookKubeconfig, type FileReader } from '../../webhook/webhook-kubeconfig.ts';
import { httpFailure } from '../../webhook/client-failure.ts';

import { refuse } from '../../registry/rest/refusal.ts';
import {
  callFailure,
  type WebhookCaller,
  type WebhookResponse,
  type WebhookTarget,
} from '../../webhook/webhook-call.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const NAME = 'ImagePolicyWebhook';
const AUDIT_PREFIX = 'imagepolicywebhook.image-policy.k8s.io/';
const ANSWERS_MAX = 1024;
const TIMEOUT_MS = 30_000;
const VERSION = 'imagepolicy.k8s.io/v1alpha1';

/** A duration of the configuration: -1 turns off what it is about, 0 takes the default. */
interface Span {
  readonly name: string;
  readonly field: string;
  readonly unitMs: number;
  readonly defaultMs: number;
  /** As Go prints them. */
  readonly range: readonly [string, string];
  readonly rangeMs: readonly [number, number];
}

const MINUTE_MS = 60_000;
const SPANS = {
  backoff: {
    name: 'backoff',
    field: 'retryBackoff',
    unitMs: 1,
    defaultMs: 500,
    range: ['1ns', '5m0s'],
    rangeMs: [1, 5 * MINUTE_MS],
  },
  allow: {
    name: 'allow cache',
    field: 'allowTTL',
    unitMs: 1000,
    defaultMs: 5 * MINUTE_MS,
    range: ['1s', '30m0s'],
    rangeMs: [1000, 30 * MINUTE_MS],
  },
  deny: {
    name: 'deny cache',
    field: 'denyTTL',
    unitMs: 1000,
    defaultMs: 30_000,
    range: ['1s', '30m0s'],
    rangeMs: [1000, 30 * MINUTE_MS],
  },
} as const satisfies Record<string, Span>;

function spanMs(settings: JsonObject, span: Span): number {
  const given = ownMember(settings, span.field) ?? 0;
  if (typeof given !== 'number') throw new Error(`${span.field} is no whole number`);
  if (given === -1) return 0;
  if (given === 0) return span.defaultMs;
  const ms = given * span.unitMs;
  const [least, most] = span.rangeMs;
  if (ms >= least && ms <= most) return ms;
  throw new Error(`valid value is between ${span.range.join(' and ')}, got ${ms / 1000}s`);
}

interface Policy {
  readonly target: WebhookTarget;
  readonly allowMs: number;
  readonly denyMs: number;
  readonly failsOpen: boolean;
}

function readPolicy(configuration: JsonValue, readFile: FileReader): Policy {
  if (configuration === null) throw new Error('no config specified');
  const settings = objectAt(configuration, 'imagePolicy') ?? {};
  spanMs(settings, SPANS.backoff);
  const [allowMs, denyMs] = [spanMs(settings, SPANS.allow), spanMs(settings, SPANS.deny)];
  const file = stringAt(settings, 'kubeConfigFile');
  const target = readWebhookKubeconfig(parse(readFile(file)) as JsonValue, readFile);
  return { target, allowMs, denyMs, failsOpen: settings['defaultAllow'] === true };
}

/** What the webhook is asked: the images, and annotations of the pod that are meant for it. */
function specOf({ object, subresource, call }: Admitted): JsonObject {
  const fields =
    subresource === '' ? ['containers', 'initContainers'] : (['ephemeralContainers'] as const);
  const containers = fields.flatMap((field) =>
    listAt(object, 'spec', field).map((one) => ({ image: stringAt(one, 'image') })),
  );
  const annotations = Object.entries(objectAt(object, 'metadata', 'annotations') ?? {})
    .filter(([name]) => name.includes('.image-policy.k8s.io/'))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...(containers.length === 0 ? {} : { containers }),
    ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations) }),
    namespace: call.info.namespace,
  };
}

/** The status of the answer, or why there is none in the words of Go's client. */
function statusOf(response: WebhookResponse, target: WebhookTarget): JsonObject | string {
  if (!response.ok) return callFailure(`https://${target.authority}${target.path}`, response);
  const { status, body, contentType } = response;
  if (status < 200 || status > 299) return httpFailure(status, body, contentType);
  try {
    const value = parseJson(decodedText(body));
    if (stringAt(value, 'kind') === 'ImageReview') return objectAt(value, 'status') ?? {};
    return `no kind "${stringAt(value, 'kind')}" is registered`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The plugin as its configuration wants it; throws an Error where that is wrong. */
export function imagePolicy(
  configuration: JsonValue,
  readFile: FileReader,
  caller: WebhookCaller | null,
): AdmissionPlugin {
  const policy = readPolicy(configuration, readFile);
  const answers = new AnswerCache<JsonObject>(ANSWERS_MAX);
  const conclude = (write: Admitted, status: JsonObject) => {
    const noted = objectAt(status, 'auditAnnotations') ?? {};
    for (const name of Object.keys(noted)) {
      write.call.annotate(AUDIT_PREFIX + name, stringAt(noted, name));
    }
    if (status['allowed'] === true) return null;
    const reason = stringAt(status, 'reason');
    return refuse(
      write,
      reason === ''
        ? 'one or more images rejected by webhook backend'
        : `image policy webhook backend denied one or more images: ${reason}`,
    );
  };
  const fail = (write: Admitted, why: string) => {
    if (!policy.failsOpen) return refuse(write, why);
    write.call.annotate(`${AUDIT_PREFIX}failed-open`, 'true');
    return null;
  };
  return {
    name: NAME,
    handles: ({ resource }, operation, subresource) =>
      resource.storage.name === 'pods' &&
      (operation === 'CREATE' || operation === 'UPDATE') &&
      (subresource === '' || subresource === 'ephemeralcontainers'),
    validate: (write) => {
      const spec = specOf(write);
      const key = JSON.stringify(spec);
      const nowMs = (): number => write.world.edge.nowMs();
      const known = answers.get(key, nowMs());
      if (known !== undefined) return conclude(write, known);
      if (caller === null) return fail(write, 'there is no way to the webhook');
      const review = { kind: 'ImageReview', apiVersion: VERSION, metadata: {}, spec };
      const body = Buffer.from(JSON.stringify({ ...review, status: { allowed: false } }));
      return (then) =>
        caller.call(policy.target, body, TIMEOUT_MS, (response) => {
          const status = statusOf(response, policy.target);
          if (typeof status === 'string') {
            then(fail(write, status));
            return;
          }
          const keptMs = status['allowed'] === true ? policy.allowMs : policy.denyMs;
          answers.set(key, status, nowMs() + keptMs);
          then(conclude(write, status));
        });
    },
  };
}

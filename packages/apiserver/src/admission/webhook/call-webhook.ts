/** Calling an admission webhook for a write, and what its failures mean. */
import { internalError, badRequest } from '@megaplane/machinery/status';
import { httpFailure } from '../../webhook/client-failure.ts';
import type { Matching, Webhook } from './webhook-configurations.ts';
import type { CheckMetrics } from './check-metrics.ts';
import type { WebhookMetrics, WebhookType, Called } from './webhook-metrics.ts';
import { readReview, reviewBody } from './webhook-review.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import {
  type WebhookTarget,
  type WebhookCaller,
  callFailure,
  locate,
} from '../../webhook/webhook-call.ts';

/** What all calls need. */
export interface CallContext {
  readonly caller: WebhookCaller | null;
  readonly metrics: WebhookMetrics;
  readonly checks: CheckMetrics;
}

const IGNORED = { kind: 'ignored' } as const;

/** Calls a webhook that matches; `then` is called once. */
export function callWebhook(
  { caller, metrics }: CallContext,
  write: Admitted,
  { webhook, target }: Matching,
  type: WebhookType,
  then: (called: Called) => void,
): void {
  const { name } = webhook;
  if (write.isDryRun && !webhook.allowsDryRun) {
    const text = `admission webhook ${JSON.stringify(name)} does not support dry run`;
    then({ kind: 'refused', status: badRequest(text) });
    return;
  }
  const { edge } = write.world;
  const startMs = edge.nowMs();
  const timed = `timeout=${webhook.timeoutSeconds}s`;
  const finish = (called: Called, code: number, why: string): void => {
    const tookMs = edge.nowMs() - startMs;
    metrics.count(type, name, write.operation, called, code, tookMs, why);
    const isMutating = type === 'admit';
    const part = `${isMutating ? 'mutating' : 'validating'}-webhook`;
    write.call.noteOthers(part, tookMs, !isMutating);
    then(called);
  };
  const fail = (why: string, code: number): void => {
    const failed = failureOf(webhook, why);
    finish(failed, code, failed.kind === 'ignored' ? 'ignored' : 'failed');
  };
  const found = locate(write.world, webhook.client);
  const url = `https://${found.authority}${found.path}?${timed}`;
  if ('missing' in found) {
    fail(`failed to call webhook: Post "${url}": ${found.missing}`, 0);
    return;
  }
  if (caller === null) {
    fail(`failed to call webhook: Post "${url}": this server calls no webhooks`, 0);
    return;
  }
  const uid = edge.uuid();
  const phase = type === 'admit' ? 'mutating' : 'validating';
  const body = reviewBody(write, webhook, target, uid, phase);
  const asked: WebhookTarget = { ...found, path: `${found.path}?${timed}` };
  caller.call(asked, body, webhook.timeoutSeconds * 1000, (response) => {
    if (!response.ok) {
      fail(`failed to call webhook: ${callFailure(url, response)}`, 0);
    } else if (response.status < 200 || response.status > 299) {
      const why = httpFailure(response.status, response.body, response.contentType);
      fail(`failed to call webhook: ${why}`, response.status);
    } else if (response.body.length === 0) {
      const type = response.contentType || 'application/json';
      const why = `0-length response with status code: ${response.status}`;
      fail(`failed to call webhook: ${why} and content type: ${type}`, response.status);
    } else {
      const review = readReview(response.body, webhook.version, uid, type === 'admit');
      if (!review.ok) {
        fail(review.why, response.status);
        return;
      }
      for (const text of review.value.warnings) write.call.warn(text);
      for (const [key, value] of Object.entries(review.value.annotations)) {
        write.call.annotate(`${name}/${key}`, value);
      }
      finish({ kind: 'answered', review: review.value }, response.status, '');
    }
  });
}

/** What the failure of a call means for the write: `failurePolicy` tells. */
export function failureOf(
  { name, ignoresFailures }: Webhook,
  why: string,
): Exclude<Called, { readonly kind: 'answered' }> {
  if (ignoresFailures) return IGNORED;
  const text = `failed calling webhook ${JSON.stringify(name)}: ${why}`;
  return { kind: 'refused', status: internalError(text) };
}

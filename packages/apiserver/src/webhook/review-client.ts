/**
 * A review posted to a webhook that authenticates or authorizes, and asked again where upstream's
 * client does (`apiserver/pkg/util/webhook`, client-go's `rest`): after answers that say when, and
 * after failures that pass. Its answer is read as Go's decoder reads it: what is of another
 * version, kind or type is no answer.
 */
import { objectAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from './webhook-call.ts';
import { httpFailure } from './client-failure.ts';
import { decodeReview, membersFault, unfit, type Check } from './review-decoding.ts';
import { decodedText } from '@megaplane/machinery/json-text';

/** Times that a webhook is asked that fails, and the pauses between them. */
const ATTEMPTS_MAX = 5;
const PAUSE_MS = 500;
const PAUSE_FACTOR = 1.5;
/** Times that one attempt follows `Retry-After`. */
const FOLLOWED_MAX = 10;

/** What the edge gives. */
export interface ReviewEdge {
  readonly caller: WebhookCaller;
  readonly nowMs: () => number;
  readonly log: (message: string) => void;
  /** Calls back in so many milliseconds. */
  readonly later: (ms: number, work: () => void) => void;
}

/** What is asked of whom. */
export interface Review {
  readonly target: WebhookTarget;
  readonly group: string;
  readonly kind: string;
  readonly version: string;
  readonly spec: JsonObject;
  /** What stands there before the answer, as Go writes it. */
  readonly status: JsonObject;
  /** Types of the members of the answer's status. */
  readonly checks: Readonly<Record<string, Check>>;
  readonly timeoutMs: number;
}

/** How one call ended, as upstream's metrics name it. */
export type ReviewResult = 'success' | 'timeout' | 'error';

export type ReviewReply =
  | { readonly ok: true; readonly status: JsonObject }
  /** `why` in the words of Go's client. */
  | { readonly ok: false; readonly why: string; readonly result: ReviewResult };

/** Calls `then` once; `count` hears of each call and how long it took. */
export function postReview(
  edge: ReviewEdge,
  review: Review,
  count: (result: ReviewResult, ms: number) => void,
  then: (reply: ReviewReply) => void,
): void {
  const { group, kind, version, spec, status } = review;
  const apiVersion = `${group}/${version}`;
  const body = Buffer.from(JSON.stringify({ kind, apiVersion, metadata: {}, spec, status }));
  const attempt = (number: number, pauseMs: number): void => {
    const sinceMs = edge.nowMs();
    callOnce(edge, review, body, (response) => {
      const reply = replyOf(response, review);
      count(reply.ok ? 'success' : reply.result, edge.nowMs() - sinceMs);
      if (number >= ATTEMPTS_MAX || !passes(response)) then(reply);
      else edge.later(pauseMs, () => attempt(number + 1, pauseMs * PAUSE_FACTOR));
    });
  };
  attempt(1, PAUSE_MS);
}

/** One attempt: as long as answers say when to come again, it does, within its time. */
function callOnce(
  edge: ReviewEdge,
  { target, timeoutMs }: Review,
  body: Buffer,
  then: (response: WebhookResponse) => void,
): void {
  const untilMs = edge.nowMs() + timeoutMs;
  const call = (followed: number): void => {
    edge.caller.call(target, body, Math.max(1, untilMs - edge.nowMs()), (response) => {
      const waitMs = followed < FOLLOWED_MAX ? waitOf(response) : null;
      if (waitMs === null || edge.nowMs() + waitMs >= untilMs) then(response);
      else edge.later(waitMs, () => call(followed + 1));
    });
  };
  call(0);
}

function waitOf(response: WebhookResponse): number | null {
  if (!response.ok || response.retryAfterS === undefined) return null;
  const isBusy = response.status === 429 || response.status >= 500;
  return isBusy ? response.retryAfterS * 1000 : null;
}

/** Failures that may be over soon. */
function passes(response: WebhookResponse): boolean {
  if (!response.ok) return response.why.includes('connection reset by peer');
  if (response.status === 503) return false;
  return response.status === 429 || response.status >= 500;
}

function replyOf(response: WebhookResponse, review: Review): ReviewReply {
  if (!response.ok) {
    const { why } = response;
    const isLate = why.includes('deadline exceeded');
    return failed(`Post ${JSON.stringify(urlOf(review.target))}: ${why}`, isLate);
  }
  const { status: code, body, contentType } = response;
  if (code < 200 || code > 206) return failed(httpFailure(code, body, contentType), code === 504);
  if (body.length === 0) {
    return failed(`0-length response with status code: ${code} and content type: ${contentType}`);
  }
  const decoded = decodeReview(decodedText(body), review);
  if (!decoded.ok) return failed(decoded.why);
  const { kind, version, checks } = review;
  const status = decoded.review['status'] ?? {};
  if (!isObject(status))
    return failed(unfit(status, `${kind}.status of type ${version}.${kind}Status`));
  const fault = membersFault(status, checks, `${kind}Status`, '.status', '');
  if (fault !== '') return failed(fault);
  return { ok: true, status: objectAt(decoded.review, 'status') ?? {} };
}

function failed(why: string, isLate = false): ReviewReply {
  return { ok: false, why, result: isLate ? 'timeout' : 'error' };
}

function urlOf({ isPlain, authority, path }: WebhookTarget): string {
  return `${isPlain === true ? 'http' : 'https'}://${authority}${path}`;
}

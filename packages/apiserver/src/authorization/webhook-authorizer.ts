/**
 * Authorization by a webhook: a SubjectAccessReview is posted, its answer kept for a while. Match
 * conditions decide beforehand whether it is asked at all.
 */
import { createHash } from 'node:crypto';
import { CelError } from '@megaplane/machinery/cel/values';
import { MATCH_CONDITIONS_COST_MAX, type Program } from '@megaplane/machinery/cel/program';
import { fromJson } from '@megaplane/machinery/cel/json-values';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { WebhookTarget } from '../webhook/webhook-call.ts';
import { DENIED, type Authorizer, type Decision } from './authorization.ts';
import { plain, unfit, type Check } from '../webhook/review-decoding.ts';
import { AnswerCache, Asking } from '../webhook/answer-cache.ts';
import type { AuthorizerMetrics } from './authorizer-metrics.ts';
import { postReview, type ReviewEdge, type ReviewReply } from '../webhook/review-client.ts';
import { REVIEW_TYPE, reviewFacts, reviewSpec } from './review-questions.ts';

/** Answers that one webhook's cache holds. */
const ANSWERS_MAX = 8192;
/** Longer questions are asked each time, as upstream does, and known by their digest. */
const QUESTION_LENGTH_MAX = 10_000;
/** A webhook that failed is left alone so long; the same question fails meanwhile. */
const FAILED_MS = 1000;

/** One webhook, as AuthorizationConfiguration or the flags describe it. */
export interface WebhookAuthorizerOptions {
  readonly name: string;
  readonly target: WebhookTarget;
  /** Of the SubjectAccessReview. */
  readonly version: 'v1' | 'v1beta1';
  readonly timeoutMs: number;
  readonly authorizedMs: number;
  readonly unauthorizedMs: number;
  readonly deniesOnFailure: boolean;
  /** It is asked where all hold. */
  readonly conditions: readonly Program[];
}

const isTold: Check = (value, path) =>
  typeof value === 'boolean' ? '' : unfit(value, `${path} of type bool`);
/** Types of a status. */
const CHECKS: Readonly<Record<string, Check>> = {
  allowed: isTold,
  denied: isTold,
  reason: plain('string'),
  evaluationError: plain('string'),
};

const BOTH = 'webhook subject access review returned both allow and deny response';

export class WebhookAuthorizer {
  readonly #options: WebhookAuthorizerOptions;
  readonly #edge: ReviewEdge;
  readonly #answers = new AnswerCache<Decision>(ANSWERS_MAX);
  readonly #asking = new Asking<Decision>();
  readonly #metrics: AuthorizerMetrics;
  readonly #clockMs: () => number;

  constructor(
    options: WebhookAuthorizerOptions,
    edge: ReviewEdge,
    metrics: AuthorizerMetrics,
    clockMs: () => number = edge.nowMs,
  ) {
    this.#options = options;
    this.#edge = edge;
    this.#metrics = metrics;
    this.#clockMs = clockMs;
  }

  readonly authorize: Authorizer = (identity, attributes) => {
    const matched = this.#matches(() => reviewFacts(identity, attributes));
    if (matched === 'skip') return DENIED;
    if (matched !== 'match') return this.#failed(matched.error);
    const spec = reviewSpec(identity, attributes);
    const question = JSON.stringify(spec);
    const isLong = question.length > QUESTION_LENGTH_MAX;
    const key = isLong ? createHash('sha256').update(question).digest('base64') : question;
    const known = this.#answers.get(key, this.#edge.nowMs());
    if (known !== undefined) return known;
    return {
      allowed: false,
      reason: '',
      pending: (then) =>
        this.#asking.once(
          key,
          (done) => this.#ask(key, spec, isLong, done),
          () => then(),
        ),
    };
  };

  /** One that does not hold outweighs any that fail. */
  #matches(facts: () => JsonObject): 'match' | 'skip' | { readonly error: string } {
    const { conditions, name } = this.#options;
    if (conditions.length === 0) return 'match';
    const sinceMs = this.#clockMs();
    const { isExcluded, errors } = evaluate(conditions, facts());
    const outcome = isExcluded ? 'skip' : errors.length > 0 ? 'failed' : 'match';
    this.#metrics.countMatch(name, outcome, errors.length, this.#clockMs() - sinceMs);
    return outcome === 'failed' ? { error: aggregate(errors) } : outcome;
  }

  #failed(error: string): Decision {
    const failed = { allowed: false, reason: '', error };
    return this.#options.deniesOnFailure ? { ...failed, isFinal: true } : failed;
  }

  #ask(key: string, spec: JsonObject, isLong: boolean, done: (decision: Decision) => void): void {
    const { name, target, version, timeoutMs } = this.#options;
    const review = {
      target,
      group: 'authorization.k8s.io',
      kind: 'SubjectAccessReview',
      version,
      spec: version === 'v1' ? spec : inBeta(spec),
      status: { allowed: false },
      checks: CHECKS,
      timeoutMs,
    };
    const count = (result: string, ms: number): void => this.#metrics.countCall(name, result, ms);
    postReview(this.#edge, review, count, (reply) => {
      const { decision, keptMs } = this.#read(reply);
      // whoever asked looks into the cache next: even what is not kept has to be there once
      const untilMs = this.#edge.nowMs() + (isLong ? FAILED_MS : keptMs);
      this.#answers.set(key, decision, untilMs);
      done(decision);
    });
  }

  #read(reply: ReviewReply): { readonly decision: Decision; readonly keptMs: number } {
    if (!reply.ok) {
      const { name, deniesOnFailure } = this.#options;
      this.#edge.log(`authorization webhook ${name}: ${reply.why}`);
      if (!deniesOnFailure) this.#metrics.countOpened(name, reply.result);
      return { decision: this.#failed(reply.why), keptMs: FAILED_MS };
    }
    const { status } = reply;
    const { authorizedMs, unauthorizedMs } = this.#options;
    const reason = stringAt(status, 'reason');
    const isDenied = status['denied'] === true;
    const allowed = status['allowed'] === true;
    const keptMs = allowed ? authorizedMs : unauthorizedMs;
    if (!isDenied) return { decision: { allowed, reason, isNarrow: true }, keptMs };
    const denied = { allowed: false, reason, isFinal: true };
    return { decision: allowed ? { ...denied, error: BOTH } : denied, keptMs };
  }
}

function evaluate(
  conditions: readonly Program[],
  facts: JsonObject,
): { readonly isExcluded: boolean; readonly errors: readonly string[] } {
  const bindings = { request: fromJson(facts, REVIEW_TYPE) };
  let left = MATCH_CONDITIONS_COST_MAX;
  const errors: string[] = [];
  for (const program of conditions) {
    const { value, cost } = program.evaluate(bindings, left);
    left -= cost;
    if (value === false) return { isExcluded: true, errors };
    if (value === true) continue;
    const why = value instanceof CelError ? value.message : 'no such overload';
    errors.push(`cel evaluation error: expression '${program.source}' resulted in error: ${why}`);
  }
  return { isExcluded: false, errors };
}

/** The old version names groups in the singular. */
function inBeta({ groups, ...rest }: JsonObject): JsonObject {
  return groups === undefined ? rest : { ...rest, group: groups };
}

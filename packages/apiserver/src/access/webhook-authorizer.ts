/**
 * Authorization by a webhook: a SubjectAccessReview is posted, its answer kept for a while. Match
 * conditions decide beforehand whether it is asked at all.
 */
import { createHash } from 'node:crypto';
import { MATCH_CONDITIONS_COST_MAX, type Program } from '@megaplane/machinery/cel/program';
import { fromJson } from '@megaplane/machinery/cel/json-values';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from '../admission/webhook-call.ts';
import { DENIED, type Authorizer, type Decision } from '../authorization.ts';
import { AnswerCache, Asking } from './answer-cache.ts';
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

/** What the edge gives. */
export interface WebhookAuthorizerEdge {
  readonly caller: WebhookCaller;
  readonly nowMs: () => number;
  readonly log: (message: string) => void;
}

export class WebhookAuthorizer {
  readonly #options: WebhookAuthorizerOptions;
  readonly #edge: WebhookAuthorizerEdge;
  readonly #answers = new AnswerCache<Decision>(ANSWERS_MAX);
  readonly #asking = new Asking<Decision>();
  readonly #results = new Map<string, number>();

  constructor(options: WebhookAuthorizerOptions, edge: WebhookAuthorizerEdge) {
    this.#options = options;
    this.#edge = edge;
  }

  readonly authorize: Authorizer = (identity, attributes) => {
    const matched = this.#matches(() => reviewFacts(identity, attributes));
    if (matched === 'skip') return DENIED;
    if (matched === 'failed') return this.#failed();
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
  #matches(facts: () => JsonObject): 'match' | 'skip' | 'failed' {
    const { conditions } = this.#options;
    if (conditions.length === 0) return 'match';
    const bindings = { request: fromJson(facts(), REVIEW_TYPE) };
    let left = MATCH_CONDITIONS_COST_MAX;
    let hasFailed = false;
    for (const program of conditions) {
      const { value, cost } = program.evaluate(bindings, left);
      left -= cost;
      if (value === false) return 'skip';
      if (value !== true) hasFailed = true;
    }
    return hasFailed ? 'failed' : 'match';
  }

  #failed(): Decision {
    return this.#options.deniesOnFailure
      ? { allowed: false, reason: '', isFinal: true }
      : { allowed: false, reason: '' };
  }

  #ask(key: string, spec: JsonObject, isLong: boolean, done: (decision: Decision) => void): void {
    const { target, version, timeoutMs } = this.#options;
    const body = JSON.stringify({
      kind: 'SubjectAccessReview',
      apiVersion: `authorization.k8s.io/${version}`,
      metadata: {},
      spec: version === 'v1' ? spec : inBeta(spec),
      status: { allowed: false },
    });
    this.#edge.caller.call(target, Buffer.from(body), timeoutMs, (response) => {
      const { decision, keptMs } = this.#read(response);
      // whoever asked looks into the cache next: even what is not kept has to be there once
      const untilMs = this.#edge.nowMs() + (isLong ? FAILED_MS : keptMs);
      this.#answers.set(key, decision, untilMs);
      done(decision);
    });
  }

  #read(response: WebhookResponse): { readonly decision: Decision; readonly keptMs: number } {
    const status = statusOf(response);
    if (typeof status === 'string') {
      this.#count(/deadline exceeded/.test(status) ? 'timeout' : 'error');
      this.#edge.log(`authorization webhook ${this.#options.name}: ${status}`);
      return { decision: this.#failed(), keptMs: FAILED_MS };
    }
    this.#count('success');
    const { authorizedMs, unauthorizedMs } = this.#options;
    const reason = stringAt(status, 'reason');
    const isDenied = status['denied'] === true;
    const allowed = status['allowed'] === true;
    const keptMs = allowed ? authorizedMs : unauthorizedMs;
    if (isDenied) return { decision: { allowed: false, reason, isFinal: true }, keptMs };
    return { decision: { allowed, reason, isNarrow: true }, keptMs };
  }

  #count(result: string): void {
    this.#results.set(result, (this.#results.get(result) ?? 0) + 1);
  }

  /** Calls by their results, under upstream's name. */
  print(lines: string[]): void {
    for (const [result, count] of this.#results) {
      const labels = `name=${JSON.stringify(this.#options.name)},result="${result}"`;
      lines.push(`apiserver_authorization_webhook_evaluations_total{${labels}} ${count}`);
    }
  }
}

/** The old version names groups in the singular. */
function inBeta({ groups, ...rest }: JsonObject): JsonObject {
  return groups === undefined ? rest : { ...rest, group: groups };
}

function statusOf(response: WebhookResponse): JsonObject | string {
  if (!response.ok) return response.why;
  if (response.status < 200 || response.status > 299) return `it answered ${response.status}`;
  let value: JsonValue;
  try {
    value = JSON.parse(response.body.toString('utf8')) as JsonValue;
  } catch (error) {
    return `its answer is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (stringAt(value, 'kind') !== 'SubjectAccessReview') {
    return 'its answer is no SubjectAccessReview';
  }
  return objectAt(value, 'status') ?? {};
}

/** Authentication by a webhook: a TokenReview is posted, its answer kept for a while. */
import { createHash } from 'node:crypto';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import type { WebhookTarget } from '../webhook/webhook-call.ts';
import type { TokenReader } from './authentication.ts';
import { identityOf, type Identity } from '../request/identity.ts';
import { firstFault, membersFault, plain, unfit, type Check } from '../webhook/review-decoding.ts';
import { AnswerCache, Asking } from '../webhook/answer-cache.ts';
import { textsOf } from './jwt.ts';
import { postReview, type ReviewEdge, type ReviewReply } from '../webhook/review-client.ts';

/** Answers that are kept. */
const ANSWERS_MAX = 8192;
/** After a failure the same token is nobody's for so long. */
const FAILED_MS = 1000;
/** What upstream's client gives a webhook (`rest.Config.Timeout`). */
const TIMEOUT_MS = 30_000;

export interface TokenWebhookOptions {
  readonly target: WebhookTarget;
  /** Of the TokenReview. */
  readonly version: 'v1' | 'v1beta1';
  readonly keptMs: number;
  /** Whom tokens have to be for, one of them; the webhook is told. */
  readonly audiences: readonly string[];
}

/** Reads tokens by asking the webhook about them. */
export function webhookReader(options: TokenWebhookOptions, edge: ReviewEdge): TokenReader {
  const answers = new AnswerCache<Identity | null>(ANSWERS_MAX);
  const asking = new Asking<Identity | null>();
  return (token) => {
    // what is kept must not be worth stealing
    const key = createHash('sha256').update(token).digest('base64');
    const known = answers.get(key, edge.nowMs());
    if (known !== undefined) return known;
    const ask = (done: (identity: Identity | null) => void): void => {
      post(options, edge, token, (reply) => {
        if (!reply.ok) edge.log(`authentication webhook: ${reply.why}`);
        const identity = reply.ok ? found(reply.status, options.audiences) : null;
        const keptMs = reply.ok ? Math.max(1, options.keptMs) : FAILED_MS;
        answers.set(key, identity, edge.nowMs() + keptMs);
        done(identity);
      });
    };
    return { pending: (then) => asking.once(key, ask, () => then()) };
  };
}

function post(
  { target, version, audiences }: TokenWebhookOptions,
  edge: ReviewEdge,
  token: string,
  then: (reply: ReviewReply) => void,
): void {
  const spec = audiences.length === 0 ? { token } : { token, audiences: [...audiences] };
  const review = {
    target,
    group: 'authentication.k8s.io',
    kind: 'TokenReview',
    version,
    spec,
    status: { user: {} },
    checks: checksOf(version),
    timeoutMs: TIMEOUT_MS,
  };
  postReview(edge, review, () => {}, then);
}

/** Types of a status. */
function checksOf(version: string): Readonly<Record<string, Check>> {
  const user: Readonly<Record<string, Check>> = {
    username: plain('string'),
    uid: plain('string'),
    groups: texts('[]string'),
    extra: (value, path) => {
      if (!isObject(value)) return unfit(value, `${path} of type map[string]${version}.ExtraValue`);
      const list = texts(`${version}.ExtraValue`);
      return firstFault(Object.values(value), (one) => list(one, path));
    },
  };
  return {
    authenticated: (value, path) =>
      typeof value === 'boolean' ? '' : unfit(value, `${path} of type bool`),
    user: (value, path) => membersFault(value, user, 'UserInfo', path, `${version}.UserInfo`),
    audiences: texts('[]string'),
    error: plain('string'),
  };
}

const texts = (type: string): Check => {
  return (value, path) => {
    if (!Array.isArray(value)) return unfit(value, `${path} of type ${type}`);
    return firstFault(value, (one) => plain('string')(one, path));
  };
};

/** Whom the webhook names, where it is for this server; null for nobody. */
function found(status: JsonObject, audiences: readonly string[]): Identity | null {
  const told = textsOf(status['audiences']);
  // who says nothing of audiences means those that it was asked for
  const isForUs = told.length === 0 || told.some((one) => audiences.includes(one));
  if (!isForUs && audiences.length > 0) return null;
  if (status['authenticated'] !== true) return null;
  const user = objectAt(status, 'user') ?? {};
  const extra = Object.entries(objectAt(user, 'extra') ?? {});
  return identityOf(
    stringAt(user, 'username'),
    textsOf(user['groups']),
    stringAt(user, 'uid'),
    Object.fromEntries(extra.map(([key, list]) => [key, textsOf(list)])),
  );
}

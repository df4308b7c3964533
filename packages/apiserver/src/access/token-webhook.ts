/** Authentication by a webhook: a TokenReview is posted, its answer kept for a while. */
import { createHash } from 'node:crypto';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from '../admission/webhook-call.ts';
import type { TokenReader } from '../authentication.ts';
import { identityOf, type Identity } from '../identity.ts';
import { AnswerCache, Asking } from './answer-cache.ts';
import { textsOf } from './jwt.ts';

/** Answers that are kept. */
const ANSWERS_MAX = 8192;
/** After a failure the same token is nobody's for so long. */
const FAILED_MS = 1000;
const TIMEOUT_MS = 10_000;

export interface TokenWebhookOptions {
  readonly target: WebhookTarget;
  /** Of the TokenReview. */
  readonly version: 'v1' | 'v1beta1';
  readonly keptMs: number;
}

/** What the edge gives. */
export interface TokenWebhookEdge {
  readonly caller: WebhookCaller;
  readonly nowMs: () => number;
  readonly log: (message: string) => void;
}

/** Reads tokens by asking the webhook about them. */
export function webhookReader(options: TokenWebhookOptions, edge: TokenWebhookEdge): TokenReader {
  const answers = new AnswerCache<Identity | null>(ANSWERS_MAX);
  const asking = new Asking<Identity | null>();
  return (token) => {
    // what is kept must not be worth stealing
    const key = createHash('sha256').update(token).digest('base64');
    const known = answers.get(key, edge.nowMs());
    if (known !== undefined) return known;
    const ask = (done: (identity: Identity | null) => void): void => {
      const body = Buffer.from(JSON.stringify(reviewOf(token, options.version)));
      edge.caller.call(options.target, body, TIMEOUT_MS, (response) => {
        const found = read(response);
        if (typeof found === 'string') edge.log(`authentication webhook: ${found}`);
        const identity = typeof found === 'string' ? null : found;
        const keptMs = typeof found === 'string' ? FAILED_MS : Math.max(1, options.keptMs);
        answers.set(key, identity, edge.nowMs() + keptMs);
        done(identity);
      });
    };
    return { pending: (then) => asking.once(key, ask, () => then()) };
  };
}

function reviewOf(token: string, version: string): JsonObject {
  return {
    kind: 'TokenReview',
    apiVersion: `authentication.k8s.io/${version}`,
    metadata: {},
    spec: { token },
    status: { user: {} },
  };
}

/** Whom the webhook names; null for nobody, a text where it failed. */
function read(response: WebhookResponse): Identity | null | string {
  if (!response.ok) return response.why;
  if (response.status < 200 || response.status > 299) return `it answered ${response.status}`;
  let value: JsonValue;
  try {
    value = JSON.parse(response.body.toString('utf8')) as JsonValue;
  } catch (error) {
    return `its answer is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (stringAt(value, 'kind') !== 'TokenReview') return 'its answer is no TokenReview';
  const status = objectAt(value, 'status') ?? {};
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

// shell: timers
/**
 * Calls of webhooks as Go's REST client makes them, within the time of one call: a webhook that
 * says when to come again (429 or 5xx with `Retry-After`) is asked again then, and one that says
 * where else to ask is asked there.
 */
import { afterMs } from '@megaplane/base/deferred';
import { parseGoUrl } from '@megaplane/machinery/go-url';
import { quoted } from '@megaplane/machinery/quoting';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from './webhook-call.ts';

/** How often one webhook is asked again. */
const REPEATS_MAX = 10;
/** Requests in a row of which each but the last leads to the next. */
const REDIRECTED_MAX = 10;

type Done = (response: WebhookResponse) => void;
type Answered = Extract<WebhookResponse, { readonly ok: true }>;

export class PatientCalls implements WebhookCaller {
  readonly #calls: WebhookCaller;

  constructor(calls: WebhookCaller) {
    this.#calls = calls;
  }

  call(target: WebhookTarget, body: Buffer, timeoutMs: number, then: Done): void {
    const untilMs = performance.now() + timeoutMs;
    let repeats = 0;
    const ask = (): void => {
      const leftMs = untilMs - performance.now();
      const first: Asked = { target, url: '', count: 1 };
      this.#ask(first, body, leftMs, (response) => {
        const waitMs = response.ok ? waitOf(response) : null;
        if (waitMs === null || repeats++ >= REPEATS_MAX) {
          then(response);
          return;
        }
        const restMs = untilMs - performance.now();
        if (waitMs < restMs) afterMs(waitMs, ask).unref();
        else afterMs(restMs, () => then({ ok: false, why: EXPIRED })).unref();
      });
    };
    ask();
  }

  /** Asks, and goes where the answers lead. */
  #ask(asked: Asked, body: Buffer, leftMs: number, then: Done): void {
    const sinceMs = performance.now();
    this.#calls.call(asked.target, body, leftMs, (response) => {
      const next = response.ok ? redirected(asked, response) : null;
      if (next === null)
        then(response.ok || asked.url === '' ? response : { url: asked.url, ...response });
      else if ('ok' in next) then(next);
      else this.#ask(next, body, leftMs - (performance.now() - sinceMs), then);
    });
  }
}

const EXPIRED = 'context deadline exceeded';

interface Asked {
  readonly target: WebhookTarget;
  /** '' for the one that the caller named. */
  readonly url: string;
  /** Requests until here, this one included. */
  readonly count: number;
}

/** Null where the answer does not ask for another try. */
function waitOf({ status, retryAfterS }: Answered): number | null {
  if (retryAfterS === undefined || (status !== 429 && status < 500)) return null;
  return Math.max(0, retryAfterS * 1000);
}

/** What is asked next, why nothing can be, or null where the answer is no redirect. */
function redirected({ target, url, count }: Asked, { status, location = '' }: Answered) {
  if (![301, 302, 303, 307, 308].includes(status) || location === '') return null;
  const here = `http${target.isPlain === true ? '' : 's'}://${target.authority}${target.path}`;
  const parsed = parseGoUrl(location);
  if (typeof parsed === 'string' || !URL.canParse(location, here)) {
    const why = typeof parsed === 'string' ? parsed : 'invalid URL';
    const text = `failed to parse Location header ${quoted(location)}: ${why}`;
    return { ok: false, why: text, ...(url === '' ? {} : { url }) } as const;
  }
  if (count >= REDIRECTED_MAX) {
    const why = `stopped after ${REDIRECTED_MAX} redirects`;
    return { ok: false, why, url: location } as const;
  }
  const to = new URL(location, here);
  const isGet = target.isGet === true || status <= 303;
  const isSame = to.origin === new URL(here).origin;
  const path = to.pathname + to.search;
  const next = isSame ? { ...target, path } : targetOf(target, to, path);
  return { target: { ...next, isGet }, url: to.href, count: count + 1 };
}

/** At another server, which is not told who asks. */
function targetOf(from: WebhookTarget, to: URL, path: string): WebhookTarget {
  const { credential: _, ...rest } = from;
  const isPlain = to.protocol === 'http:';
  const host = to.hostname.replaceAll(/[[\]]/g, '');
  const port = Number(to.port) || (isPlain ? 80 : 443);
  // a service's certificate has the service's name, wherever it sends its clients
  const serverName = from.serverName === from.host ? host : from.serverName;
  return { ...rest, host, port, serverName, authority: to.host, path, isPlain };
}

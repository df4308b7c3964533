/** Calling one webhook: where it is, how long it may take, and what its failures are called. */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { internalError, badRequest, type Status } from '@megaplane/machinery/status';
import { httpFailure } from './client-failure.ts';
import type { Admitted } from '../admission/admission.ts';
import { readStoredObject } from '../lister/stored-object.ts';
import { NamespacedObjects } from '../lister/namespaced-objects.ts';
import type {
  ClientConfig,
  Matching,
  Webhook,
} from '../admission/webhook/webhook-configurations.ts';
import type { CheckMetrics } from '../admission/policy/check-metrics.ts';
import type { WebhookMetrics, WebhookType } from '../admission/webhook/webhook-metrics.ts';
import { readReview, reviewBody, type Reviewed } from '../admission/webhook/webhook-review.ts';
import type { World } from '../lister/world.ts';

/** An address to connect to, and the name that its certificate must have. */
export interface WebhookTarget {
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
  /** `host[:port]` as the URL has it. */
  readonly authority: string;
  readonly path: string;
  /** PEM; '' takes the system's authorities. */
  readonly caBundle: string;
  /** Who this server is there; absent where it is nobody. */
  readonly credential?: WebhookCredential;
  /** Without TLS. */
  readonly isPlain?: boolean;
  /** Any certificate is taken. */
  readonly isInsecure?: boolean;
  /** Asked with GET and without a body, as Go does after some redirects. */
  readonly isGet?: boolean;
}

/** A client certificate in PEM, a bearer token, or both; '' where there is none. */
export interface WebhookCredential {
  readonly certificate: string;
  readonly key: string;
  readonly token: string;
}

export type WebhookResponse =
  | {
      readonly ok: true;
      readonly status: number;
      /** '' where the answer does not tell. */
      readonly contentType: string;
      readonly body: Buffer;
      /** Seconds of the field of that name; absent without one. */
      readonly retryAfterS?: number;
      /** Where else to ask; absent where the answer does not tell. */
      readonly location?: string;
    }
  | FailedCall;

export interface FailedCall {
  readonly ok: false;
  /** In the words of Go's client: `context deadline exceeded`. */
  readonly why: string;
  /** Amid its answer. */
  readonly isCut?: boolean;
  /** Where it was asked last, if a redirect led there. */
  readonly url?: string;
}

/** Sends one request and calls back exactly once, within the timeout. Given by the shell. */
export interface WebhookCaller {
  call(
    target: WebhookTarget,
    body: Buffer,
    timeoutMs: number,
    then: (response: WebhookResponse) => void,
  ): void;
}

/** How a call ended: with an answer, not called at all, or failed (and what that means). */
export type Called =
  | { readonly kind: 'answered'; readonly review: Reviewed }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'refused'; readonly status: Status };

/** What Go's REST client says where an answer has begun and does not end. */
const CUT = 'unexpected error when reading response body. Please retry. Original error: ';
const IGNORED = { kind: 'ignored' } as const;
const slices = new NamespacedObjects('discovery.k8s.io', 'endpointslices');

/** What all calls need. */
export interface CallContext {
  readonly caller: WebhookCaller | null;
  readonly metrics: WebhookMetrics;
  readonly checks: CheckMetrics;
}

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

/** Why a call has brought nothing, with where it went, as Go's REST client says it. */
export function callFailure(asked: string, { why, isCut, url = asked }: FailedCall): string {
  return isCut === true ? `${CUT}${why}` : `Post "${url}": ${why}`;
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

export type Located =
  | WebhookTarget
  | { readonly authority: string; readonly path: string; readonly missing: string };

/** The address behind a client's configuration, or what is missing on the way there. */
export function locate(world: World, client: ClientConfig): Located {
  const { service, caBundle } = client;
  if (service === null) {
    const url = new URL(client.url);
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    const port = Number(url.port === '' ? '443' : url.port);
    return { host, port, serverName: host, authority: url.host, path: url.pathname, caBundle };
  }
  const { namespace, name, port } = service;
  const serverName = `${name}.${namespace}.svc`;
  const authority = `${serverName}:${port}`;
  const path = service.path.startsWith('/') ? service.path : `/${service.path}`;
  const found = readStoredObject(world, '', 'services', namespace, name);
  if (found === null) return { authority, path, missing: `service "${name}" not found` };
  const at = { serverName, authority, path, caBundle };
  if (stringAt(found, 'spec', 'type') === 'ExternalName') {
    return { ...at, host: stringAt(found, 'spec', 'externalName'), port };
  }
  const own = listAt(found, 'spec', 'ports').find((one) => numberAt(one, 'port') === port);
  if (own === undefined) {
    return { authority, path, missing: `no service port ${port} found for service "${name}"` };
  }
  const endpoint = endpointOf(world, namespace, name, stringAt(own, 'name'));
  if (endpoint !== null) return { ...at, ...endpoint };
  const address = stringAt(found, 'spec', 'clusterIP');
  if (address === '' || address === 'None') {
    const missing = `cannot route to service with ClusterIP ${JSON.stringify(address)}`;
    return { authority, path, missing };
  }
  return { ...at, host: address, port };
}

/** A pod that is ready behind the service: reached without the help of a proxy on this machine. */
function endpointOf(
  world: World,
  namespace: string,
  name: string,
  portName: string,
): { readonly host: string; readonly port: number } | null {
  for (const { object } of slices.of(world, namespace)) {
    const labels = objectAt(object, 'metadata', 'labels') ?? {};
    if (labels['kubernetes.io/service-name'] !== name) continue;
    const port = listAt(object, 'ports').find((one) => stringAt(one, 'name') === portName);
    const ready = listAt(object, 'endpoints').filter(
      (one) => objectAt(one, 'conditions')?.['ready'] !== false,
    );
    const chosen = ready[world.edge.below(Math.max(1, ready.length))];
    const host = stringAt(listAt(chosen ?? null, 'addresses')[0]);
    const number = numberAt(port, 'port');
    if (host !== '' && number > 0) return { host, port: number };
  }
  return null;
}

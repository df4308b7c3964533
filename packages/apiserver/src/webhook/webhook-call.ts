/** Calling one webhook: where it is, how long it may take, and what its failures are called. */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { readStoredObject } from '../lister/stored-object.ts';
import { NamespacedObjects } from '../lister/namespaced-objects.ts';
import type { World } from '../lister/world.ts';
import type { ClientConfig } from './client-config.ts';

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

/** What Go's REST client says where an answer has begun and does not end. */
const CUT = 'unexpected error when reading response body. Please retry. Original error: ';

const slices = new NamespacedObjects('discovery.k8s.io', 'endpointslices');

/** Why a call has brought nothing, with where it went, as Go's REST client says it. */
export function callFailure(asked: string, { why, isCut, url = asked }: FailedCall): string {
  return isCut === true ? `${CUT}${why}` : `Post "${url}": ${why}`;
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

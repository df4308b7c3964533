/**
 * The kubeconfig of a webhook that authenticates or authorizes: where it is and who this server is
 * there. Its current context counts, or its first one.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { WebhookTarget } from './webhook-call.ts';

/** What upstream's client waits for where nothing else is said (`LoadKubeconfig`). */
const TIMEOUT_MS = 30_000;

/** Reads a file; relative names are of the kubeconfig's folder. Throws like `readFileSync`. */
export type FileReader = (path: string) => string;

/** Throws an Error that says what is missing. */
export function readWebhookKubeconfig(
  value: JsonValue,
  readFile: FileReader,
  timeoutMs: number = TIMEOUT_MS,
): WebhookTarget {
  if (!isObject(value)) throw new Error('the kubeconfig holds no object');
  const name = stringAt(value, 'current-context');
  const contexts = listAt(value, 'contexts');
  const context = name === '' ? contexts[0] : named(value, 'contexts', name);
  const about = objectAt(context ?? null, 'context');
  if (about === undefined) throw new Error(`the kubeconfig has no context ${JSON.stringify(name)}`);
  const cluster = objectAt(named(value, 'clusters', stringAt(about, 'cluster')), 'cluster');
  const server = stringAt(cluster, 'server');
  if (server === '') throw new Error('the kubeconfig has no cluster with a server');
  const url = urlOf(server, cluster);
  const isPlain = url.protocol === 'http:';
  const user = objectAt(named(value, 'users', stringAt(about, 'user')), 'user') ?? null;
  const host = url.hostname.replaceAll(/[[\]]/g, '');
  const own = stringAt(cluster, 'tls-server-name');
  const text = (from: JsonObject | null | undefined, field: string): string => {
    const data = stringAt(from ?? null, `${field}-data`);
    if (data !== '') return Buffer.from(data, 'base64').toString('utf8');
    const file = stringAt(from ?? null, field);
    return file === '' ? '' : readFile(file);
  };
  const tokenFile = stringAt(user, 'tokenFile');
  return {
    host,
    port: Number(url.port === '' ? (isPlain ? '80' : '443') : url.port),
    isPlain,
    isInsecure: cluster?.['insecure-skip-tls-verify'] === true,
    serverName: own === '' ? host : own,
    authority: url.host,
    path: pathOf(url, timeoutMs),
    caBundle: text(cluster, 'certificate-authority'),
    credential: {
      certificate: text(user, 'client-certificate'),
      key: text(user, 'client-key'),
      token: tokenFile === '' ? stringAt(user, 'token') : readFile(tokenFile).trim(),
    },
  };
}

function pathOf({ pathname, search }: URL, timeoutMs: number): string {
  return `${pathname}${search === '' ? '?' : `${search}&`}timeout=${durationOf(timeoutMs)}`;
}

/** As Go writes durations below a minute; the webhook is told how long it has. */
function durationOf(ms: number): string {
  return ms < 1000 ? `${ms}ms` : `${ms / 1000}s`;
}

/** Upstream's `DefaultServerURL`: what names no scheme is plain, unless it says whom to trust. */
function urlOf(server: string, cluster: JsonObject | undefined): URL {
  const trusts = [
    'certificate-authority',
    'certificate-authority-data',
    'insecure-skip-tls-verify',
  ];
  const isSecure = trusts.some((name) => cluster?.[name] !== undefined);
  const hasScheme = server.includes('://');
  const url = URL.parse(hasScheme ? server : `${isSecure ? 'https' : 'http'}://${server}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error(`the webhook's server ${server} is no URL of http or https`);
  }
  return url;
}

function named(value: JsonObject, list: string, name: string): JsonValue {
  return listAt(value, list).find((one) => stringAt(one, 'name') === name) ?? null;
}

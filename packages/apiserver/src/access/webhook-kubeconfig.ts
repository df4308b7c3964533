/**
 * The kubeconfig of a webhook that authenticates or authorizes: where it is and who this server is
 * there. Its current context counts, or its first one.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { WebhookTarget } from '../admission/webhook-call.ts';

/** Reads a file; relative names are of the kubeconfig's folder. Throws like `readFileSync`. */
export type FileReader = (path: string) => string;

/** Throws an Error that says what is missing. */
export function readWebhookKubeconfig(value: JsonValue, readFile: FileReader): WebhookTarget {
  if (!isObject(value)) throw new Error('the kubeconfig holds no object');
  const name = stringAt(value, 'current-context');
  const contexts = listAt(value, 'contexts');
  const context = name === '' ? contexts[0] : named(value, 'contexts', name);
  const about = objectAt(context ?? null, 'context');
  if (about === undefined) throw new Error(`the kubeconfig has no context ${JSON.stringify(name)}`);
  const cluster = objectAt(named(value, 'clusters', stringAt(about, 'cluster')), 'cluster');
  const server = stringAt(cluster, 'server');
  if (server === '') throw new Error('the kubeconfig has no cluster with a server');
  const url = new URL(server);
  if (url.protocol !== 'https:') throw new Error(`the webhook ${server} must be reached by https`);
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
    port: Number(url.port === '' ? '443' : url.port),
    serverName: own === '' ? host : own,
    authority: url.host,
    path: url.pathname + url.search,
    caBundle: text(cluster, 'certificate-authority'),
    credential: {
      certificate: text(user, 'client-certificate'),
      key: text(user, 'client-key'),
      token: tokenFile === '' ? stringAt(user, 'token') : readFile(tokenFile).trim(),
    },
  };
}

function named(value: JsonObject, list: string, name: string): JsonValue {
  return listAt(value, list).find((one) => stringAt(one, 'name') === name) ?? null;
}

/**
 * Kubeconfig files (v1 Config of client-go's clientcmd): which server, whom to trust, who we are.
 *
 * Understood: `server` (`https://`, `http://` and, as an extension, `unix:///path`), CA and client
 * certificate by file or inline, `insecure-skip-tls-verify`, `tls-server-name`, `token`,
 * `tokenFile`, `namespace`. Files are relative to the directory of the kubeconfig. Credentials that
 * need another program or a login (exec, auth-provider, basic) are refused with a message.
 */
import { ownMember } from '@megaplane/base/members';
import { isAbsolute, join } from 'node:path';
import { parseDocument } from 'yaml';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

/** How to reach a server, ready for `createKubeClient`. */
export interface Endpoint {
  /** As the kubeconfig writes it, for messages. */
  readonly server: string;
  readonly address:
    | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
    | { readonly kind: 'unix'; readonly path: string };
  /** Path of the server URL without a slash at its end; put before each path. */
  readonly pathPrefix: string;
  /** Null for cleartext. */
  readonly tls: EndpointTls | null;
  readonly token: string;
  /** Read again from time to time; '' without one. */
  readonly tokenFile: string;
  /** Namespace of the context, `default` without one. */
  readonly namespace: string;
}

export interface EndpointTls {
  /** PEM; undefined for the system's. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly isVerified: boolean;
  /** Name that the server's certificate must carry; '' for the host. */
  readonly serverName: string;
}

export type KubeconfigResult =
  | { readonly ok: true; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly message: string };

export interface KubeconfigSource {
  /** The file's text. */
  readonly text: string;
  /** What to call it in messages. */
  readonly name: string;
  readonly directory: string;
  /** Reads a file that the kubeconfig names; throws like `readFileSync`. */
  readonly readFile: (path: string) => string;
  /** Default: `current-context`. */
  readonly context?: string;
}

/** The endpoint of a server without credentials of its own, over a Unix socket. */
export function unixEndpoint(path: string): Endpoint {
  return {
    server: `unix://${path}`,
    address: { kind: 'unix', path },
    pathPrefix: '',
    tls: null,
    token: '',
    tokenFile: '',
    namespace: 'default',
  };
}

/** Reads the endpoint of one context. All that is wrong comes as a message for people. */
export function parseKubeconfig(source: KubeconfigSource): KubeconfigResult {
  try {
    return { ok: true, endpoint: endpointOf(source) };
  } catch (error) {
    if (error instanceof Wrong) return { ok: false, message: `${source.name}: ${error.message}` };
    throw error;
  }
}

/** Carries a message out of nested readers; never leaves this file. */
class Wrong extends Error {}

function endpointOf(source: KubeconfigSource): Endpoint {
  const document = parseDocument(source.text, { schema: 'core' });
  const problem = document.errors[0];
  if (problem !== undefined) throw new Wrong(`is no YAML: ${problem.message.split('\n')[0]}`);
  const config = document.toJS() as JsonValue;
  if (!isObject(config)) throw new Wrong('is no kubeconfig (no mapping at its top)');
  const contextName = source.context ?? textOf(config, 'current-context');
  if (contextName === '') throw new Wrong('has no current-context; name one with --context');
  const context = named(config, 'contexts', 'context', contextName);
  const cluster = named(config, 'clusters', 'cluster', textOf(context, 'cluster'));
  const userName = textOf(context, 'user');
  const user = userName === '' ? {} : named(config, 'users', 'user', userName);
  refuseUnsupported(cluster, user);
  const tokenFile = textOf(user, 'tokenFile');
  return {
    ...locationOf(source, cluster, user),
    token: textOf(user, 'token'),
    tokenFile: tokenFile === '' ? '' : pathOf(source, tokenFile),
    namespace: textOf(context, 'namespace') || 'default',
  };
}

function refuseUnsupported(cluster: JsonObject, user: JsonObject): void {
  for (const field of ['exec', 'auth-provider', 'username', 'password']) {
    if (user[field] !== undefined) {
      throw new Wrong(
        `credentials by ${field} are not supported; use a client certificate or a token`,
      );
    }
  }
  if (textOf(cluster, 'proxy-url') !== '') throw new Wrong('proxy-url is not supported');
}

function locationOf(
  source: KubeconfigSource,
  cluster: JsonObject,
  user: JsonObject,
): Pick<Endpoint, 'server' | 'address' | 'pathPrefix' | 'tls'> {
  const server = textOf(cluster, 'server');
  if (server === '') throw new Wrong('the cluster of the context has no server');
  if (server.startsWith('unix://')) {
    const address = { kind: 'unix', path: server.slice('unix://'.length) } as const;
    return { server, address, pathPrefix: '', tls: null };
  }
  const url = URL.parse(server.includes('://') ? server : `https://${server}`);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new Wrong(`server: ${server} is no https://, http:// or unix:// URL`);
  }
  const isSecure = url.protocol === 'https:';
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  // Brackets belong to the URL, not to the IPv6 address.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    server,
    address: { kind: 'tcp', host, port },
    pathPrefix: url.pathname.replace(/\/+$/, ''),
    tls: isSecure ? tlsOf(source, cluster, user) : null,
  };
}

function tlsOf(source: KubeconfigSource, cluster: JsonObject, user: JsonObject): EndpointTls {
  const cert = material(source, user, 'client-certificate');
  const key = material(source, user, 'client-key');
  if ((cert === undefined) !== (key === undefined)) {
    throw new Wrong('client-certificate and client-key must be given together');
  }
  return {
    ca: material(source, cluster, 'certificate-authority'),
    cert,
    key,
    isVerified: cluster['insecure-skip-tls-verify'] !== true,
    serverName: textOf(cluster, 'tls-server-name'),
  };
}

/** PEM of `<field>-data` (base64) or of the file named by `<field>`; the former wins. */
function material(source: KubeconfigSource, owner: JsonObject, field: string): string | undefined {
  const data = textOf(owner, `${field}-data`);
  if (data !== '') {
    const text = Buffer.from(data, 'base64').toString('latin1');
    if (!text.includes('-----BEGIN')) throw new Wrong(`${field}-data is no base64 of a PEM text`);
    return text;
  }
  const path = textOf(owner, field);
  if (path === '') return undefined;
  try {
    return source.readFile(pathOf(source, path));
  } catch (error) {
    throw new Wrong(`${field}: cannot read ${path} (${(error as Error).message})`);
  }
}

function pathOf(source: KubeconfigSource, path: string): string {
  return isAbsolute(path) ? path : join(source.directory, path);
}

/** The `inner` part of the entry called `name` in a list such as `contexts`. */
function named(config: JsonObject, list: string, inner: string, name: string): JsonObject {
  const entries = ownMember(config, list);
  const found: string[] = [];
  for (const entry of Array.isArray(entries) ? entries : []) {
    if (!isObject(entry)) continue;
    found.push(textOf(entry, 'name'));
    if (textOf(entry, 'name') !== name) continue;
    const value = ownMember(entry, inner);
    return isObject(value) ? value : {};
  }
  const known = found.length === 0 ? 'there are none' : `there are: ${found.join(', ')}`;
  throw new Wrong(`no ${inner} is called ${JSON.stringify(name)}; ${known}`);
}

function textOf(owner: JsonObject, field: string): string {
  const value = ownMember(owner, field);
  return typeof value === 'string' ? value : '';
}

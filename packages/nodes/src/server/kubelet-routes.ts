// shell: answers over sockets
/** What the kubelets' port answers once it is known who asks: logs, metrics, ways into pods. */
import { guarded } from '@megaplane/base/deferred';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { internalStatus, runExec, SUCCESS } from './exec.ts';
import type { KubeletData } from './kubelet-data.ts';
import { isRunning } from './kubelet-data.ts';
import { logOptions, type LogOptions } from './log-lines.ts';
import { LogReader } from './log-reader.ts';
import { NODE_WAYS, type NodeWay } from '../kubelet/node-values.ts';
import { MetricsApi, metricsRequest } from './metrics-api.ts';
import { nodeOfPage, PATH_NODE, renderPage, type MetricPage } from './metric-pages.ts';
import type { Found } from './pod-rules.ts';
import type { PortConfig } from './port-config.ts';
import { servePortForward } from './port-forward.ts';
import { openStreams, refuseUpgrade, wantedStreams } from './remote-streams.ts';
import { statsSummary } from './stats-summary.ts';

const TEXT = { 'content-type': 'text/plain; charset=utf-8' } as const;
const METRICS = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } as const;
const JSON_TYPE = { 'content-type': 'application/json' } as const;
const DISABLED = ['/run/', '/runningpods/', '/logs/', '/debug/'];

export interface RouteOptions {
  readonly config: PortConfig;
  readonly data: KubeletData;
  readonly nowMs: () => number;
  /** The process's own metrics. */
  readonly metrics: () => string;
  readonly nodeNames: () => readonly string[];
  /** A byte for each node, and the name of the one at a place of them. */
  readonly nodeValues?: (way: NodeWay) => Uint8Array;
  readonly nodeNameAt?: (row: number) => string;
  readonly onTrouble: (message: string) => void;
}

/** Where somebody comes from who needs no credential. */
export interface PublicCaller {
  /** As the request names it. */
  readonly host: string;
  readonly scheme: 'http' | 'https';
}

/** A request taken apart. */
export interface PortRequest {
  readonly path: string;
  /** Of the path, without escapes. */
  readonly words: readonly string[];
  readonly query: URLSearchParams;
  /** The node that is meant, where path or proxy say so. */
  readonly node: string;
}

/** Which node a request is about: one port serves all of them. Null where its path is none. */
export function portRequest(request: IncomingMessage): PortRequest | null {
  const url = URL.parse(request.url ?? '/', 'http://kubelet');
  if (url === null) return null;
  const named = /^\/metrics\/nodes\/([^/]+)\//.exec(url.pathname)?.[1];
  // an API server's node proxy tells the way that it was asked for
  const asked = String(request.headers['x-forwarded-uri'] ?? '');
  const proxied = /^\/api\/v1\/nodes\/(?:https?:)?([^/:]+)(?::\d*)?\/proxy/.exec(asked)?.[1];
  try {
    const node = decodeURIComponent(named ?? proxied ?? '');
    const words = url.pathname.split('/').slice(1).map(decodeURIComponent);
    return { path: url.pathname, words, query: url.searchParams, node };
  } catch (error) {
    // an escape that is none
    if (error instanceof URIError) return null;
    throw error;
  }
}

/** Said to a request whose path is none. */
export const NO_PATH = '400 Bad Request: the path is no URL, or has an escape that is none\n';

export class KubeletRoutes {
  readonly #options: RouteOptions;
  readonly #metricsApi: MetricsApi;

  constructor(options: RouteOptions) {
    this.#options = options;
    const { data, config, nowMs } = options;
    this.#metricsApi = new MetricsApi(data, config.usage, nowMs);
  }

  /** What anybody may see, also without TLS: true if it was that. */
  answerPublic(asked: PortRequest, response: ServerResponse, from: PublicCaller): boolean {
    const { path, query } = asked;
    if (path === '/healthz') response.writeHead(200, TEXT).end('ok');
    else if (path === '/metrics') response.writeHead(200, METRICS).end(this.#options.metrics());
    else if (path === '/metrics/field') this.#field(query, response);
    else if (path === '/discovery/prometheus') {
      response.writeHead(200, JSON_TYPE).end(JSON.stringify(this.#discovery(from)));
    } else return false;
    return true;
  }

  /** Pages of Metric documents, which kwok serves to anybody; true if it was one. */
  async answerPage({ path }: PortRequest, response: ServerResponse): Promise<boolean> {
    for (const page of this.#options.config.pages) {
      const node = nodeOfPage(page, path);
      if (node === null) continue;
      await this.#page(page, node, response);
      return true;
    }
    return false;
  }

  async answer(asked: PortRequest, response: ServerResponse): Promise<void> {
    const { path, words, query, node } = asked;
    const [kind = '', ...rest] = words;
    if (kind === 'containerLogs') return this.#logs(rest, query, response);
    if (['exec', 'attach', 'portForward'].includes(kind)) {
      const text = `unable to upgrade: missing upgrade headers in request`;
      response.writeHead(400, TEXT).end(`${text}\n`);
    } else if (path === '/pods' && node !== '') await this.#pods(node, response);
    else if (path === '/stats/summary' && node !== '') await this.#summary(node, response);
    else if (path === '/metrics/resource' && node !== '') {
      const page = this.#options.config.pages.find(({ name }) => name === 'metrics-resource');
      if (page === undefined) response.writeHead(404, TEXT).end('404 page not found\n');
      else await this.#page(page, node, response);
    } else if (metricsRequest(path) !== null) await this.#usages(path, query, response);
    else if (DISABLED.some((prefix) => path.startsWith(prefix))) {
      response.writeHead(405, TEXT).end('Debug endpoints are disabled.\n');
    } else response.writeHead(404, TEXT).end('404 page not found\n');
  }

  /** All nodes in a picture: bytes without names, or the name at one place. */
  #field(query: URLSearchParams, response: ServerResponse): void {
    const { nodeValues, nodeNameAt } = this.#options;
    const row = query.get('row') ?? '';
    const way = NODE_WAYS.find((one) => one === query.get('by'));
    if (/^\d{1,9}$/.test(row)) response.writeHead(200, TEXT).end(nodeNameAt?.(Number(row)) ?? '');
    else if (way === undefined) {
      response.writeHead(400, TEXT).end(`by: one of ${NODE_WAYS.join(', ')} is needed\n`);
    } else {
      const bytes = nodeValues?.(way) ?? new Uint8Array(0);
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(bytes);
    }
  }

  #discovery({ host, scheme }: PublicCaller): JsonObject[] {
    const target = (page: MetricPage, path: string): JsonObject => ({
      targets: [host],
      labels: { metrics_name: page.name, __scheme__: scheme, __metrics_path__: path },
    });
    return this.#options.config.pages.flatMap((page) =>
      page.path.includes(PATH_NODE)
        ? this.#options
            .nodeNames()
            .map((node) => target(page, page.path.replaceAll(PATH_NODE, node)))
        : [target(page, page.path)],
    );
  }

  async #page(page: MetricPage, name: string, response: ServerResponse): Promise<void> {
    const { data, config, onTrouble } = this.#options;
    const node = await data.node(name);
    if (node === null) {
      response.writeHead(200, METRICS).end('');
      return;
    }
    const pods = (await data.podsOn(name)).filter(isRunning);
    const subject = { node, pods, pod: null, container: null };
    response.writeHead(200, METRICS).end(renderPage(page, config.usage, subject, onTrouble));
  }

  async #pods(node: string, response: ServerResponse): Promise<void> {
    const items = await this.#options.data.podsOn(node);
    const list = { kind: 'PodList', apiVersion: 'v1', metadata: {}, items };
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(list));
  }

  async #summary(name: string, response: ServerResponse): Promise<void> {
    const { data, config, nowMs } = this.#options;
    const node = await data.node(name);
    if (node === null) {
      response.writeHead(404, TEXT).end('404 page not found\n');
      return;
    }
    const pods = (await data.podsOn(name)).filter(isRunning);
    const summary = statsSummary(node, pods, config.usage, nowMs());
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(summary));
  }

  async #usages(path: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const object = await this.#metricsApi.answer(path, query);
    const code = object['kind'] === 'Status' ? Number(object['code']) : 200;
    response.writeHead(code, JSON_TYPE).end(JSON.stringify(object));
  }

  async #logs(
    [namespace = '', pod = '', container = '']: readonly string[],
    query: URLSearchParams,
    response: ServerResponse,
  ): Promise<void> {
    const options = logOptions(query, this.#options.nowMs());
    const found = this.#options.config.logs.find(
      ...[namespace, pod],
      (item) => item.containers,
      container,
    );
    const refuse = (text: string): void => void response.writeHead(400, TEXT).end(text);
    if (typeof options === 'string') return refuse(options);
    if (found.kind !== 'found')
      return refuse(missing('log', 'logs', found, container, namespace, pod));
    const isPrevious = ['', '1', 'true'].includes(query.get('previous') ?? 'false');
    const file = isPrevious ? found.item.previousLogsFile : found.item.logsFile;
    try {
      const reader = await LogReader.open(file);
      if (options.follow) response.writeHead(200, TEXT).flushHeaders();
      await reader.print(options, responseTarget(response));
      if (!response.headersSent) response.writeHead(200, TEXT);
      response.end();
    } catch (error) {
      if (response.headersSent) response.destroy();
      else refuse((error as Error).message);
    }
  }

  /** exec, attach and port-forward; answers on the socket where it is none of them. */
  async upgrade(
    { path, words, query }: PortRequest,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): Promise<void> {
    const [kind = '', namespace = '', pod = '', ...rest] = words;
    const container = rest.at(-1) ?? '';
    const who = { namespace, pod, container };
    if (kind === 'exec') await this.#exec(request, socket, head, who, query);
    else if (kind === 'attach') await this.#attach(request, socket, head, who, query);
    else if (kind === 'portForward') {
      const name = `${pod}/${namespace}`;
      servePortForward(request, socket, head, name, query, (port) => {
        const found = this.#options.config.forwards.find(
          ...[namespace, pod],
          (item) => item.ports,
          port,
        );
        if (found.kind === 'found') return found.item;
        const what = found.kind === 'none' ? 'no forward' : 'forward not';
        return new Error(`${what} found for port ${port} in pod "${namespace}/${pod}"`);
      });
    } else refuseUpgrade(socket, 400, `${path} cannot be upgraded`);
  }

  async #exec(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { namespace, pod, container }: Who,
    query: URLSearchParams,
  ): Promise<void> {
    const wanted = wantedStreams(query);
    if (typeof wanted === 'string') return refuseUpgrade(socket, 400, wanted);
    const command = query.getAll('command');
    if (command.length === 0) return refuseUpgrade(socket, 400, 'no command');
    const streams = await openStreams(request, socket, head, wanted);
    if (streams === null) return;
    const found = this.#options.config.execs.find(
      ...[namespace, pod],
      (item) => item.containers,
      container,
    );
    if (found.kind === 'found' && found.item.local !== null) {
      runExec(found.item.local, command, wanted, streams);
      return;
    }
    const why =
      found.kind === 'found'
        ? 'not set local exec'
        : missing('exec', 'exec', found, container, namespace, pod);
    streams.finish(internalStatus(`error executing command in container: ${why}`));
  }

  async #attach(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { namespace, pod, container }: Who,
    query: URLSearchParams,
  ): Promise<void> {
    const wanted = wantedStreams(query);
    if (typeof wanted === 'string') return refuseUpgrade(socket, 400, wanted);
    const streams = await openStreams(request, socket, head, wanted);
    if (streams === null) return;
    const found = this.#options.config.attaches.find(
      ...[namespace, pod],
      (item) => item.containers,
      container,
    );
    try {
      if (found.kind !== 'found') {
        throw new Error(missing('attaches', 'attaches', found, container, namespace, pod));
      }
      const reader = await LogReader.open(found.item.logsFile);
      let isClosed = false;
      let drained: () => void = () => {};
      streams.onClose = () => {
        isClosed = true;
        drained();
      };
      streams.onDrain = () => drained();
      streams.begin();
      const target = {
        get isClosed() {
          return isClosed;
        },
        write: (bytes: Buffer): Promise<void> | void => {
          if (streams.write('stdout', bytes) || isClosed) return;
          return new Promise((resolve) => {
            drained = resolve;
          });
        },
      };
      await reader.print(FOLLOWED, target);
      streams.finish(SUCCESS);
    } catch (error) {
      const text = `error attaching to container: ${(error as Error).message}`;
      streams.finish(internalStatus(text));
    }
  }
}

interface Who {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** As kwok attaches, and a kubelet: what is added from now on. */
const FOLLOWED: LogOptions = {
  follow: true,
  timestamps: false,
  tailLines: 0,
  limitBytes: -1,
  sinceMs: -Infinity,
  stream: 'All',
};

/** kwok's words where no rule is for a container. */
function missing(
  one: string,
  several: string,
  found: Found<unknown>,
  container: string,
  namespace: string,
  pod: string,
): string {
  const what = found.kind === 'none' ? `no ${several} found` : `${one} target not found`;
  return `${what} for container "${container}" in pod "${namespace}/${pod}"`;
}

function responseTarget(response: ServerResponse): {
  readonly isClosed: boolean;
  write(bytes: Buffer): Promise<void> | void;
} {
  let wake: () => void = () => {};
  response.on(
    'drain',
    guarded(() => wake()),
  );
  response.on(
    'close',
    guarded(() => wake()),
  );
  return {
    get isClosed() {
      return response.destroyed || response.closed;
    },
    write: (bytes) => {
      if (!response.headersSent) response.writeHead(200, TEXT);
      if (response.write(bytes) || response.destroyed) return;
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
  };
}

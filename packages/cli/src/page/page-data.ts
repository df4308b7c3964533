// shell: the clock of samples, and streams
/** The data behind the page: what each path below `/api/` answers. */
import type { Client } from '@megaplane/client/client';
import type { KubeClient } from '@megaplane/client/kube-client';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { FIELD_WAYS, VIEWS } from '@megaplane/dashboard/protocol';
import type { FieldWay, Hello, ResourceKind, Sample, View } from '@megaplane/dashboard/protocol';
import type { ServerResponse } from 'node:http';
import { Observer } from '../observe/observer.ts';
import type { Source } from '../observe/sources.ts';
import { beginFault, endFault, faults } from './chaos.ts';
import { EventFeed } from './event-feed.ts';
import { explainPod } from './explain.ts';
import { isCollection, isObjectPath } from './kube-paths.ts';
import { NodeField } from './node-field.ts';
import { applyObject, deleteObject, readObject } from './object-text.ts';
import { resourceList } from './resource-list.ts';
import { Sessions, type Session } from './sessions.ts';
import { PAGE_ROWS_MAX, TableFeed } from './table-feed.ts';

const FLEET_GROUP = 'bigfleet.lucy.sh';
const SELECTOR_CHARS_MAX = 4096;

export interface DataOptions {
  readonly client: KubeClient;
  readonly kubeconfig: string;
  readonly sources: () => readonly Source[];
  readonly isReadOnly: boolean;
}

/** One request for data, as it is understood. */
export interface DataRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: JsonValue;
}

/** What is answered: JSON, or bytes as they are. */
export type DataAnswer =
  | { readonly code: number; readonly json: object }
  | { readonly code: 200; readonly bytes: Buffer };

type Handler = (request: DataRequest) => Promise<DataAnswer>;

export class PageData {
  readonly #options: DataOptions;
  readonly #client: Client;
  readonly #observer: Observer;
  readonly #sessions: Sessions;
  readonly #events: EventFeed;
  readonly #field: NodeField;
  readonly #tables: Map<Session, TableFeed> = new Map();
  readonly #handlers: ReadonlyMap<string, Handler>;
  #nodes = 0;
  #version = '';
  #kinds: readonly ResourceKind[] = [];
  #firstKinds: Promise<void> | undefined;

  constructor(options: DataOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#sessions = new Sessions((session) => this.#onClose(session));
    this.#observer = new Observer({
      client: options.client,
      sources: options.sources,
      onSample: (sample) => this.#onSample(sample),
    });
    this.#events = new EventFeed(options.client, (lines) => {
      for (const session of this.#sessions.all) {
        if (session.view === 'cluster') session.send('events', lines);
      }
    });
    this.#field = new NodeField(options.client, () => this.#simulator());
    this.#handlers = new Map<string, Handler>([
      ['GET /api/field', (request) => this.#answerField(request)],
      ['GET /api/node', (request) => this.#answerNode(request)],
      ['GET /api/kinds', () => this.#answerKinds()],
      ['GET /api/object', (request) => this.#answerObject(request)],
      ['POST /api/object', (request) => this.#changeObject(request)],
      ['DELETE /api/object', (request) => this.#removeObject(request)],
      ['POST /api/view', (request) => this.#setView(request)],
      ['POST /api/table', (request) => this.#openTable(request)],
      ['GET /api/explain', (request) => this.#explain(request)],
      ['GET /api/chaos', async () => ({ code: 200, json: await faults(this.#client) })],
      ['POST /api/chaos', (request) => this.#beginChaos(request)],
      ['DELETE /api/chaos', (request) => this.#endChaos(request)],
    ]);
  }

  async start(): Promise<void> {
    this.#observer.start();
    const answer = await this.#client.request({ method: 'GET', path: '/version', timeoutMs: 5000 });
    if (answer.ok) this.#version = stringAt(answer.object, 'gitVersion');
  }

  stop(): void {
    this.#observer.stop();
    this.#events.stop();
    this.#sessions.close();
  }

  /** Begins a stream; false where there are too many. */
  async openStream(response: ServerResponse): Promise<boolean> {
    const session = this.#sessions.open(response);
    if (session === undefined) return false;
    await (this.#firstKinds ??= this.#readKinds());
    const hello: Hello = {
      session: session.id,
      server: this.#options.client.server,
      version: this.#version,
      isReadOnly: this.#options.isReadOnly,
      field: this.#simulator() === '' ? 'nodes' : 'simulator',
      hasChaos: this.#simulator() !== '' && !this.#options.isReadOnly,
      hasFleet: this.#kinds.some(({ group }) => group === FLEET_GROUP),
      history: this.#observer.history.dump(),
    };
    session.send('hello', hello);
    session.send('events', this.#events.lines);
    this.#events.start();
    return true;
  }

  /** Answers a request for data; a text for people with 404 where there is nothing of the kind. */
  async answer(request: DataRequest): Promise<DataAnswer> {
    const handler = this.#handlers.get(`${request.method} ${request.path}`);
    if (handler === undefined) return failure(404, 'there is nothing here');
    try {
      return await handler(request);
    } catch (error) {
      return failure(502, (error as Error).message);
    }
  }

  #simulator(): string {
    return this.#options.sources().find(({ name }) => name === 'nodes')?.metrics ?? '';
  }

  #onSample(sample: Sample): void {
    this.#nodes = sample.values['nodes'] ?? this.#nodes;
    for (const session of this.#sessions.all) {
      session.send('sample', sample);
      this.#sendView(session);
    }
  }

  #sendView(session: Session): void {
    const data = this.#observer.view(session.view);
    if (data !== undefined) session.send('view', data);
  }

  #onClose(session: Session): void {
    this.#tables.get(session)?.close();
    this.#tables.delete(session);
    const isWatched = this.#sessions.all.some(({ view }) => view === 'cluster');
    if (!isWatched) this.#events.stop();
  }

  async #readKinds(): Promise<void> {
    try {
      this.#kinds = await resourceList(this.#client);
    } catch {
      // the server is away: what it has is asked when the next one wants to know
      this.#firstKinds = undefined;
    }
  }

  async #answerField({ query }: DataRequest): Promise<DataAnswer> {
    const way = FIELD_WAYS.find((one): one is FieldWay => one === query.get('by'));
    if (way === undefined) return failure(400, `by: one of ${FIELD_WAYS.join(', ')} is needed`);
    return { code: 200, bytes: await this.#field.values(way) };
  }

  async #answerNode({ query }: DataRequest): Promise<DataAnswer> {
    const place = Number(query.get('place'));
    if (!Number.isInteger(place) || place < 0) return failure(400, 'place: a number is needed');
    return { code: 200, json: { name: await this.#field.nameAt(place) } };
  }

  async #answerKinds(): Promise<DataAnswer> {
    this.#kinds = await resourceList(this.#client);
    return { code: 200, json: this.#kinds };
  }

  async #answerObject({ query }: DataRequest): Promise<DataAnswer> {
    const path = query.get('path') ?? '';
    if (!isObjectPath(path)) return failure(400, 'path: an object of the API is needed');
    return told(await readObject(this.#client, path, this.#options.isReadOnly));
  }

  async #changeObject({ query, body }: DataRequest): Promise<DataAnswer> {
    const path = query.get('path') ?? '';
    if (this.#options.isReadOnly) return failure(403, 'this page only reads (--read-only)');
    if (!isObjectPath(path)) return failure(400, 'path: an object of the API is needed');
    if (!isObject(body) || typeof body['text'] !== 'string') return failure(400, 'no text');
    return told(await applyObject(this.#client, path, body['text'], body['isForced'] === true));
  }

  async #removeObject({ query }: DataRequest): Promise<DataAnswer> {
    const path = query.get('path') ?? '';
    if (this.#options.isReadOnly) return failure(403, 'this page only reads (--read-only)');
    if (!isObjectPath(path)) return failure(400, 'path: an object of the API is needed');
    return told(await deleteObject(this.#client, path));
  }

  async #setView({ query, body }: DataRequest): Promise<DataAnswer> {
    const session = this.#sessions.find(query.get('session') ?? '');
    if (session === undefined) return failure(410, 'this stream has ended');
    const view = VIEWS.find((one): one is View => isObject(body) && one === body['view']);
    if (view === undefined) return failure(400, 'no such view');
    session.view = view;
    if (view !== 'browse' && view !== 'fleet') {
      this.#tables.get(session)?.close();
      this.#tables.delete(session);
    }
    if (view === 'cluster') this.#events.start();
    else if (!this.#sessions.all.some((one) => one.view === 'cluster')) this.#events.stop();
    this.#sendView(session);
    return { code: 200, json: {} };
  }

  async #openTable({ query, body }: DataRequest): Promise<DataAnswer> {
    const session = this.#sessions.find(query.get('session') ?? '');
    if (session === undefined) return failure(410, 'this stream has ended');
    if (!isObject(body)) return failure(400, 'one object is needed');
    const word = (name: string): string => {
      const value = Object.hasOwn(body, name) ? body[name] : '';
      return typeof value === 'string' ? value.slice(0, SELECTOR_CHARS_MAX) : '';
    };
    const path = word('path');
    if (!isCollection(path)) return failure(400, 'path: a collection of the API is needed');
    const limit = Math.min(PAGE_ROWS_MAX, Math.max(1, Number(body['limit']) || 100));
    this.#tables.get(session)?.close();
    const names = ['labelSelector', 'fieldSelector', 'next'] as const;
    const [labelSelector = '', fieldSelector = '', next = ''] = names.map(word);
    const feed = new TableFeed(
      this.#client,
      { path, labelSelector, fieldSelector, next, limit },
      {
        onChange: (change) => {
          if (!session.send('table', change)) session.send('stale', { path });
        },
        onStale: (stale) => void session.send('stale', { path: stale }),
      },
    );
    this.#tables.set(session, feed);
    return told(await feed.open());
  }

  async #explain({ query }: DataRequest): Promise<DataAnswer> {
    const { kubeconfig } = this.#options;
    const [namespace = '', name = ''] = ['namespace', 'name'].map((one) => query.get(one) ?? '');
    const text = await explainPod(kubeconfig, namespace, name, this.#nodes);
    return { code: 200, json: { text } };
  }

  async #beginChaos({ body }: DataRequest): Promise<DataAnswer> {
    if (this.#options.isReadOnly) return failure(403, 'this page only reads (--read-only)');
    const begun = await beginFault(this.#client, body);
    return typeof begun === 'string' ? failure(400, begun) : { code: 200, json: begun };
  }

  async #endChaos({ query }: DataRequest): Promise<DataAnswer> {
    if (this.#options.isReadOnly) return failure(403, 'this page only reads (--read-only)');
    const isEnded = await endFault(this.#client, query.get('id') ?? '');
    return isEnded ? { code: 200, json: {} } : failure(404, 'there is no such fault');
  }
}

function failure(code: number, error: string): DataAnswer {
  return { code, json: { error } };
}

/** An answer of the API server, or its refusal with its status. */
function told(value: object): DataAnswer {
  const { code } = value as { readonly code?: unknown };
  return { code: 'error' in value && typeof code === 'number' ? code : 200, json: value };
}

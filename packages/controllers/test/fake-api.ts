/**
 * An API server in memory with its own time, for tests of controllers: objects, revisions,
 * watches that begin with the whole collection, patches, deletion with finalizers.
 */
import type {
  Client,
  ClientMetrics,
  ClientRequest,
  ClientResponse,
  Method,
  SendDone,
  StreamHandle,
  StreamSink,
} from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { applyPatch, parsePatch, patchKindOf } from '@megaplane/machinery/patch';
import { matchesLabels, parseLabelSelector } from '@megaplane/machinery/selectors';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import * as status from '@megaplane/machinery/status';

type Served = readonly [group: string, resource: string, kind: string, scope: string];

const RESOURCES: readonly Served[] = [
  ['', 'namespaces', 'Namespace', 'Cluster'],
  ['', 'nodes', 'Node', 'Cluster'],
  ['', 'pods', 'Pod', 'Namespaced'],
  ['', 'configmaps', 'ConfigMap', 'Namespaced'],
  ['', 'secrets', 'Secret', 'Namespaced'],
  ['', 'serviceaccounts', 'ServiceAccount', 'Namespaced'],
  ['', 'events', 'Event', 'Namespaced'],
  ['coordination.k8s.io', 'leases', 'Lease', 'Namespaced'],
  ['rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole', 'Cluster'],
];
const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

interface Place {
  readonly collection: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

const ROOT = '(/api/v1|/apis/[^/]+/v[0-9a-z]+)';
const NAMESPACE = '(?:/namespaces/([^/]+)(?=/[a-z]+))?';
const PATH = new RegExp(`^${ROOT}${NAMESPACE}/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?$`);

function placeOf(path: string): Place {
  const isNamespace = /^\/api\/v1\/namespaces(?:\/([^/]+)(?:\/(status|finalize))?)?$/.exec(path);
  if (isNamespace !== null) {
    const [, name = '', subresource = ''] = isNamespace;
    return { collection: '/api/v1/namespaces', namespace: '', name, subresource };
  }
  const match = PATH.exec(path);
  if (match === null) throw new Error(`fake API: what is ${path}?`);
  const [, root = '', namespace = '', resource = '', name = '', subresource = ''] = match;
  return {
    collection: `${root}/${resource}`,
    namespace,
    name: decodeURIComponent(name),
    subresource,
  };
}

interface Watcher {
  readonly place: Place;
  readonly sink: StreamSink;
}

export class FakeApi implements Client {
  readonly objects: Map<string, JsonObject> = new Map();
  /** What discovery tells; tests add kinds of definitions and take them away. */
  served: readonly Served[] = [
    ...RESOURCES,
    ['apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition', 'Cluster'],
  ];
  /** A path of discovery that fails. */
  hidden = '';
  /** `METHOD path` of every change asked for. */
  readonly log: string[] = [];
  /** While true nothing is answered; requests fail after five seconds. */
  isDown = false;
  #revision = 1;
  #uid = 0;
  #nowMs: number = Date.parse('2026-01-01T00:00:00Z');
  #timers: { readonly atMs: number; readonly fire: () => void }[] = [];
  readonly #watchers: Set<Watcher> = new Set();
  readonly metrics: ClientMetrics = {} as ClientMetrics;
  readonly retryAfterSeconds = 0;

  readonly timers = {
    nowMs: (): number => this.#nowMs,
    wallMs: (): number => this.#nowMs,
    after: (delayMs: number, fire: () => void): (() => void) => {
      const timer = { atMs: this.#nowMs + delayMs, fire };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((one) => one !== timer);
      };
    },
  };

  /** Timers that fired. */
  wakes = 0;

  random(): number {
    return 0.5;
  }

  room(): number {
    return 1000;
  }

  onRoom(): void {}
  close(): void {}

  /** Events come this way; their texts are kept. */
  readonly events: string[] = [];
  /** Of the same events. */
  readonly eventTypes: string[] = [];

  send(
    _method: Method,
    _path: string,
    _contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag = 0,
  ): boolean {
    const event = JSON.parse(String(body)) as JsonObject;
    this.eventTypes.push(stringAt(event, 'type'));
    this.events.push(`${stringAt(event, 'reason')}: ${stringAt(event, 'message')}`);
    setImmediate(() => done(201, Buffer.from('{}'), 0, 2, tag));
    return true;
  }

  /** Lets time pass, timer by timer, with all that follows from each. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs;
    await this.settle();
    for (;;) {
      const next = this.#timers.reduce<{ atMs: number; fire: () => void } | undefined>(
        (first, one) => (first === undefined || one.atMs < first.atMs ? one : first),
        undefined,
      );
      if (next === undefined || next.atMs > endMs) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.wakes++;
      next.fire();
      await this.settle();
    }
    this.#nowMs = endMs;
  }

  /** Time passes and nobody runs: what is due is late afterwards. */
  jump(durationMs: number): void {
    this.#nowMs += durationMs;
  }

  /** Promises chain: each round of the loop lets the next link run. */
  async settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  async request(request: ClientRequest): Promise<ClientResponse> {
    await Promise.resolve();
    if (this.isDown) {
      await new Promise<void>((resolve) => this.timers.after(5_000, resolve));
      return { ok: false, code: 0, status: status.timeout() };
    }
    const answer = this.#answer(request);
    if ('code' in answer && answer['kind'] === 'Status' && answer['status'] === 'Failure') {
      const failure = answer as unknown as status.Status;
      return { ok: false, code: failure.code ?? 500, status: failure };
    }
    return { ok: true, code: 200, object: answer, bytes: Buffer.from(JSON.stringify(answer)) };
  }

  #answer(request: ClientRequest): JsonObject {
    const [path = ''] = request.path.split('?');
    if (path === this.hidden) return plain(status.internalError('not now'));
    if (path === '/api' || path === '/apis') return this.#discovery(path === '/api');
    if (request.method !== 'GET') this.log.push(`${request.method} ${path}`);
    const place = placeOf(path);
    const body = isObject(request.body as JsonObject) ? (request.body as JsonObject) : {};
    switch (request.method) {
      case 'GET':
        return place.name === '' ? this.#list(place) : this.#get(place);
      case 'POST':
        return this.#post(place, body);
      case 'PUT':
        return this.#put(place, body);
      case 'PATCH':
        return this.#patch(place, body, request.contentType ?? '');
      case 'DELETE':
        return place.name === '' ? this.#deleteAll(place, body) : this.#delete(place, body);
      case 'HEAD':
        return plain(status.generic('MethodNotAllowed'));
    }
  }

  #discovery(isCore: boolean): JsonObject {
    const groups = new Set(
      this.served.map(([group]) => group).filter((g) => (g === '') === isCore),
    );
    const items = [...groups].map((group) => ({
      metadata: { name: group },
      versions: [
        {
          version: 'v1',
          resources: this.served
            .filter(([of]) => of === group)
            .map(([, resource, kind, scope]) => ({
              resource,
              responseKind: { group: '', version: '', kind },
              scope,
              verbs: [...VERBS],
            })),
        },
      ],
    }));
    return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', items };
  }

  #key({ collection, namespace, name }: Place): string {
    return `${collection} ${namespace}/${name}`;
  }

  #matching(place: Place): [string, JsonObject][] {
    return [...this.objects].filter(
      ([key]) =>
        key.startsWith(`${place.collection} `) &&
        (place.namespace === '' || key.startsWith(`${place.collection} ${place.namespace}/`)),
    );
  }

  #list(place: Place): JsonObject {
    const items = this.#matching(place).map(([, object]) => object);
    return { kind: 'List', metadata: { resourceVersion: String(this.#revision) }, items };
  }

  #get(place: Place): JsonObject {
    return this.objects.get(this.#key(place)) ?? plain(this.#notFound(place));
  }

  #notFound(place: Place): status.Status {
    const name = place.collection.split('/').at(-1) ?? '';
    return status.notFound({ group: '', name }, place.name);
  }

  #post(place: Place, body: JsonObject): JsonObject {
    if (place.subresource === 'token') return { status: { token: `token of ${place.name}` } };
    const metadata = objectAt(body, 'metadata') ?? {};
    const name = stringAt(metadata, 'name');
    const at = { ...place, name };
    if (this.objects.has(this.#key(at))) {
      return plain(status.alreadyExists({ group: '', name: '' }, name));
    }
    const isNamespace = place.collection === '/api/v1/namespaces';
    this.#uid++;
    const stored: JsonObject = {
      ...body,
      ...(isNamespace ? { spec: { finalizers: ['kubernetes'] } } : {}),
      metadata: {
        ...metadata,
        ...(place.namespace === '' ? {} : { namespace: place.namespace }),
        uid: `00000000-0000-4000-8000-${String(this.#uid).padStart(12, '0')}`,
        creationTimestamp: new Date(this.#nowMs).toISOString().replace(/\.\d+Z$/, 'Z'),
      },
    };
    return this.#store(at, stored, 'ADDED');
  }

  #store(place: Place, object: JsonObject, type: 'ADDED' | 'MODIFIED'): JsonObject {
    const metadata = { ...objectAt(object, 'metadata'), resourceVersion: String(++this.#revision) };
    const stored = { ...object, metadata };
    this.objects.set(this.#key(place), stored);
    this.#tell(type, place, stored);
    return stored;
  }

  #put(place: Place, body: JsonObject): JsonObject {
    if (place.subresource === 'finalize' && listAt(body, 'spec', 'finalizers').length === 0) {
      return this.#remove(place, body);
    }
    return this.#store(place, body, 'MODIFIED');
  }

  #patch(place: Place, body: JsonObject, contentType: string): JsonObject {
    const before = this.objects.get(this.#key(place));
    if (before === undefined) return plain(this.#notFound(place));
    const wanted = stringAt(body, 'metadata', 'resourceVersion');
    if (wanted !== '' && wanted !== stringAt(before, 'metadata', 'resourceVersion')) {
      return plain(status.conflict({ group: '', name: 'x' }, place.name));
    }
    const patch = parsePatch(patchKindOf(contentType) ?? 'merge', JSON.stringify(body));
    if (!patch.ok) return plain(patch.status);
    const apiVersion = stringAt(before, 'apiVersion');
    const type = findTypeOfKind(apiVersion, stringAt(before, 'kind'));
    const after = applyPatch(patch.value, before, type);
    if (!after.ok) return plain(after.status);
    const isDeleting = stringAt(after.value, 'metadata', 'deletionTimestamp') !== '';
    const isHeld = listAt(after.value, 'metadata', 'finalizers').length > 0;
    const isNamespace = place.collection === '/api/v1/namespaces';
    if (isDeleting && !isHeld && !isNamespace) return this.#remove(place, after.value);
    return this.#store(place, after.value, 'MODIFIED');
  }

  #deleteAll(place: Place, body: JsonObject): JsonObject {
    for (const [key] of this.#matching(place)) {
      const [, name = ''] = (key.split(' ')[1] ?? '').split('/');
      this.#delete({ ...place, name }, body);
    }
    return plain(status.successStatus());
  }

  #delete(place: Place, body: JsonObject): JsonObject {
    const before = this.objects.get(this.#key(place));
    if (before === undefined) return plain(this.#notFound(place));
    for (const field of ['uid', 'resourceVersion']) {
      const wanted = stringAt(body, 'preconditions', field);
      if (wanted !== '' && wanted !== stringAt(before, 'metadata', field)) {
        return plain(status.conflict({ group: '', name: 'x' }, place.name, field));
      }
    }
    const finalizers = [...listAt(before, 'metadata', 'finalizers')];
    const policy = stringAt(body, 'propagationPolicy');
    if (policy === 'Foreground') finalizers.push('foregroundDeletion');
    if (policy === 'Orphan') finalizers.push('orphan');
    const isNamespace = place.collection === '/api/v1/namespaces';
    if (finalizers.length === 0 && !isNamespace) return this.#remove(place, before);
    const deletionTimestamp =
      stringAt(before, 'metadata', 'deletionTimestamp') || new Date(this.#nowMs).toISOString();
    const metadata = { ...objectAt(before, 'metadata'), finalizers, deletionTimestamp };
    return this.#store(place, { ...before, metadata }, 'MODIFIED');
  }

  #remove(place: Place, object: JsonObject): JsonObject {
    this.objects.delete(this.#key(place));
    const resourceVersion = String(++this.#revision);
    const last = { ...object, metadata: { ...objectAt(object, 'metadata'), resourceVersion } };
    this.#tell('DELETED', place, last);
    return last;
  }

  /** A list that is read as a stream. */
  #page(path: string, sink: StreamSink): StreamHandle {
    let isCancelled = false;
    setImmediate(() => {
      if (isCancelled) return;
      const list = this.#list(placeOf(path.split('?')[0] ?? ''));
      const items = listAt(list, 'items').filter((one) => isObject(one) && isSelected(path, one));
      const bytes = Buffer.from(JSON.stringify({ ...list, items }));
      sink.onHead(200, 0);
      sink.onData(bytes, 0, bytes.length);
      sink.onEnd(null);
    });
    return { cancel: () => void (isCancelled = true), pause: () => {}, resume: () => {} };
  }

  #tell(type: string, place: Place, object: JsonObject): void {
    for (const { place: of, sink } of this.#watchers) {
      const isMeant = of.collection === place.collection;
      if (!isMeant || (of.namespace !== '' && of.namespace !== place.namespace)) continue;
      deliver(sink, type, object);
    }
  }

  stream(path: string, sink: StreamSink): StreamHandle {
    if (!/[?&]watch=/.test(path)) return this.#page(path, sink);
    const watcher = { place: placeOf(path.split('?')[0] ?? ''), sink };
    const cancel = (): void => void this.#watchers.delete(watcher);
    const from = Number(/[?&]resourceVersion=(\d+)/.exec(path)?.[1] ?? 0);
    setImmediate(() => {
      this.#watchers.add(watcher);
      sink.onHead(200, 0);
      for (const [, object] of this.#matching(watcher.place)) {
        const isNewer = Number(stringAt(object, 'metadata', 'resourceVersion')) > from;
        if (isNewer) deliver(sink, 'ADDED', object);
      }
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      const metadata = { resourceVersion: String(this.#revision), annotations };
      deliver(sink, 'BOOKMARK', { metadata });
    });
    return { cancel, pause: () => {}, resume: () => {} };
  }
}

/** What a label selector in the query of a path leaves out. */
function isSelected(path: string, object: JsonObject): boolean {
  const text = new URLSearchParams(path.split('?')[1] ?? '').get('labelSelector');
  const parsed = parseLabelSelector(text ?? '');
  return (
    !('error' in parsed) && matchesLabels(parsed.value, objectAt(object, 'metadata', 'labels'))
  );
}

function plain(value: status.Status): JsonObject {
  return value as unknown as JsonObject;
}

function deliver(sink: StreamSink, type: string, object: JsonObject): void {
  const bytes = Buffer.from(`{"type":"${type}","object":${JSON.stringify(object)}}\n`);
  sink.onData(bytes, 0, bytes.length);
}

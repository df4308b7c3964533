/** What the simulated cluster holds, and what an API server makes of requests for it. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { keyOf } from '../api/objects.ts';
import type { World } from './world.sim.ts';

export interface Answer {
  readonly code: number;
  readonly text: string;
}

/** Told of each change; `after` is null for what is gone. */
type Watcher = (kind: string, key: string, after: KubeObject | null, revision: number) => void;

/** Judges what is about to be stored, and on whose account. */
export interface Judge {
  binds(pod: PodObject, node: string, by: string): void;
  deletes(pod: PodObject, by: string): void;
  writes(kind: string, before: KubeObject, after: KubeObject, by: string): void;
}

const KINDS: Readonly<Record<string, string>> = {
  pods: 'Pod',
  persistentvolumes: 'PersistentVolume',
  persistentvolumeclaims: 'PersistentVolumeClaim',
  resourceclaims: 'ResourceClaim',
  podgroups: 'PodGroup',
  leases: 'Lease',
};

function refusal(code: number, message: string): Answer {
  return { code, text: JSON.stringify({ message }) };
}

function granted(object: KubeObject, code = 200): Answer {
  return { code, text: JSON.stringify(object) };
}

export class ApiServer {
  readonly #world: World;
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #watchers = new Set<Watcher>();
  #revision = 0;
  #serial = 0;
  judge: Judge | null = null;

  constructor(world: World) {
    this.#world = world;
  }

  get revision(): number {
    return this.#revision;
  }

  get kinds(): Iterable<string> {
    return this.#objects.keys();
  }

  all<T extends KubeObject>(kind: string): T[] {
    return [...(this.#objects.get(kind)?.values() ?? [])] as T[];
  }

  get<T extends KubeObject>(kind: string, key: string): T | undefined {
    return this.#objects.get(kind)?.get(key) as T | undefined;
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Creates or replaces; what is new gets a uid. */
  put<T extends KubeObject>(kind: string, object: T): T {
    const byKey = this.#objects.get(kind) ?? new Map<string, KubeObject>();
    this.#objects.set(kind, byKey);
    const key = keyOf(object);
    const uid = byKey.get(key)?.metadata.uid ?? object.metadata.uid ?? this.#newUid();
    const resourceVersion = String(++this.#revision);
    const stored = { ...object, kind, metadata: { ...object.metadata, uid, resourceVersion } };
    byKey.set(key, stored);
    for (const watcher of this.#watchers) watcher(kind, key, stored, this.#revision);
    return stored;
  }

  delete(kind: string, key: string): void {
    if (this.#objects.get(kind)?.delete(key) !== true) return;
    this.#revision++;
    for (const watcher of this.#watchers) watcher(kind, key, null, this.#revision);
  }

  /** A pod with a node takes its time to go. */
  deletePod(key: string): void {
    const pod = this.get<PodObject>('Pod', key);
    if (pod === undefined) return;
    if ((pod.spec.nodeName ?? '') === '') return this.delete('Pod', key);
    if (pod.metadata.deletionTimestamp !== undefined) return;
    const deletionTimestamp = new Date(this.#world.nowMs).toISOString();
    this.put('Pod', { ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
    const { uid } = pod.metadata;
    this.#world.at(this.#world.random.below(5000), () => {
      if (this.get('Pod', key)?.metadata.uid === uid) this.delete('Pod', key);
    });
  }

  serve(method: string, path: string, body: string, by: string): Answer {
    const [, namespace, collection = '', name = '', sub = ''] =
      /\/v1[a-z0-9]*(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?\/?(.*)$/.exec(path) ?? [];
    const kind = KINDS[collection];
    if (kind === undefined) return { code: 201, text: '{}' };
    const sent = (body === '' ? {} : JSON.parse(body)) as KubeObject & JsonObject;
    if (method === 'POST' && sub === '') return this.#create(kind, sent);
    const stored = this.get(kind, namespace === undefined ? name : `${namespace}/${name}`);
    if (stored === undefined) return refusal(404, `${collection} "${name}" not found`);
    if (method === 'GET') return granted(stored);
    if (sub === 'binding') return this.#bind(stored as PodObject, sent as unknown as Binding, by);
    if (method === 'DELETE') return this.#delete(stored as PodObject, sent as DeleteOptions, by);
    if (method === 'PATCH') return this.#patchStatus(stored as PodObject, sent);
    return this.#replace(kind, stored, sent, sub, by);
  }

  #create(kind: string, sent: KubeObject): Answer {
    if (this.get(kind, keyOf(sent)) !== undefined) return refusal(409, 'already exists');
    return granted(this.put(kind, sent), 201);
  }

  #replace(kind: string, stored: KubeObject, sent: KubeObject, sub: string, by: string): Answer {
    const { resourceVersion = '' } = sent.metadata;
    const isStale = resourceVersion !== '' && resourceVersion !== stored.metadata.resourceVersion;
    if (isStale) return refusal(409, 'the object has been modified');
    const status = (from: object): unknown => (from as { status?: unknown }).status;
    const after =
      sub === 'status'
        ? { ...stored, status: status(sent) }
        : { ...sent, ...(status(stored) === undefined ? {} : { status: status(stored) }) };
    this.judge?.writes(kind, stored, after, by);
    return granted(this.put(kind, after));
  }

  #bind(pod: PodObject, { metadata, target }: Binding, by: string): Answer {
    if (metadata.uid !== pod.metadata.uid) return refusal(409, 'the UID does not match');
    if (pod.metadata.deletionTimestamp !== undefined) return refusal(409, 'is being deleted');
    if ((pod.spec.nodeName ?? '') !== '') return refusal(409, 'is already assigned to a node');
    this.judge?.binds(pod, target.name, by);
    const { nominatedNodeName: _, ...status } = pod.status ?? {};
    const conditions = [{ type: 'PodScheduled', status: 'True' }];
    const spec = { ...pod.spec, nodeName: target.name };
    this.put('Pod', { ...pod, spec, status: { ...status, conditions } });
    return { code: 201, text: '{}' };
  }

  #delete(pod: PodObject, { preconditions }: DeleteOptions, by: string): Answer {
    const uid = preconditions?.uid ?? pod.metadata.uid;
    if (uid !== pod.metadata.uid) return refusal(409, 'the UID in the precondition differs');
    this.judge?.deletes(pod, by);
    this.deletePod(keyOf(pod));
    return granted(pod);
  }

  #patchStatus(pod: PodObject, sent: StatusPatch): Answer {
    const uid = sent.metadata?.uid ?? pod.metadata.uid;
    if (uid !== pod.metadata.uid) return refusal(409, 'the UID does not match');
    const { nominatedNodeName, conditions = [] } = sent.status ?? {};
    const told = new Set(conditions.map(({ type }) => type));
    const others = (pod.status?.conditions ?? []).filter(({ type }) => !told.has(type));
    const { nominatedNodeName: before, ...rest } = pod.status ?? {};
    const nominated = nominatedNodeName === undefined ? before : nominatedNodeName;
    const named = (nominated ?? '') === '' ? {} : { nominatedNodeName: nominated ?? '' };
    const status = { ...rest, ...named, conditions: [...others, ...conditions] };
    return granted(this.put('Pod', { ...pod, status }));
  }

  #newUid(): string {
    return `00000000-0000-0000-0000-${String(++this.#serial).padStart(12, '0')}`;
  }
}

interface Binding {
  readonly metadata: { readonly uid: string };
  readonly target: { readonly name: string };
}

interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string };
}

interface StatusPatch {
  readonly metadata?: { readonly uid?: string };
  readonly status?: {
    readonly nominatedNodeName?: string | null;
    readonly conditions?: NonNullable<NonNullable<PodObject['status']>['conditions']>;
  };
}

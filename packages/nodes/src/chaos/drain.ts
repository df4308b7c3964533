/** Empties nodes as `kubectl drain` does, and brings nodes to another version in waves. */
import { guarded } from '@megaplane/base/deferred';
import { CONTENT, STATUS_NONE, type Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { addFault, removeFaults } from './fault-list.ts';
import { persist, PERSIST_MS } from './persist.ts';

/** Evictions that a budget refuses are tried again so often, as kubectl does. */
const RETRY_MS = 5000;
const LOOK_MS = 500;
/** Nodes that are worked on at once. */
const AT_ONCE = 64;

export interface DrainOptions {
  readonly client: Client;
  /** Gives up after so long for each node. */
  readonly timeoutMs: number;
  readonly log: (message: string) => void;
  /** Nothing more is asked to go once it is aborted. */
  readonly stop?: AbortSignal;
}

/** Names of the nodes that a selector leaves, in their order. */
export async function nodesOf(client: Client, labelSelector: string): Promise<readonly string[]> {
  const names: string[] = [];
  const result = await readPages({
    client,
    path: '/api/v1/nodes',
    labelSelector,
    onItem: (bytes, start, end) => {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
      names.push(stringAt(parseJson(text.toString('utf8')), 'metadata', 'name'));
    },
  });
  if (!result.ok) throw new Error(result.status.message ?? 'nodes cannot be read');
  return names;
}

/** Whether the cluster has a node that the selector leaves. */
export async function hasNode(
  client: Client,
  labelSelector: string,
  log: DrainOptions['log'],
): Promise<boolean> {
  const query = `?limit=1&labelSelector=${encodeURIComponent(labelSelector)}`;
  const path = `/api/v1/nodes${query}`;
  const answer = await persist(client, { method: 'GET', path }, PERSIST_MS, log);
  if (!answer.ok) throw new Error(answer.status.message ?? 'nodes cannot be read');
  return listAt(answer.object, 'items').length > 0;
}

/** The named nodes, each once; rejects before anything is done where one of them is not there. */
export async function nodesNamed(
  client: Client,
  names: readonly string[],
  log: DrainOptions['log'],
): Promise<readonly string[]> {
  const own = [...new Set(names)];
  await each(own, async (name) => void (await nodeOf(client, name, log)));
  return own;
}

async function nodeOf(client: Client, name: string, log: DrainOptions['log']): Promise<JsonObject> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const answer = await persist(client, { method: 'GET', path }, PERSIST_MS, log);
  if (!answer.ok) throw new Error(`node ${name}: ${answer.status.message ?? answer.code}`);
  return answer.object;
}

/** Runs `work` for each name, some at once; rejects with the first failure when all have ended. */
async function each(
  names: readonly string[],
  work: (name: string) => Promise<void>,
): Promise<void> {
  const waiting = [...names];
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      try {
        await work(name);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (failures.length > 0) throw failures[0] as Error;
}

async function patchNode(
  { client, log }: Pick<DrainOptions, 'client' | 'log'>,
  name: string,
  part: string,
  body: object,
): Promise<void> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}${part}`;
  const text = JSON.stringify(body);
  const contentType = CONTENT.strategicPatch;
  const request = { method: 'PATCH', path, contentType, body: text } as const;
  const answer = await persist(client, request, PERSIST_MS, log);
  if (!answer.ok) throw new Error(`node ${name}: ${answer.status.message ?? answer.code}`);
}

/** Cordons the nodes and evicts their pods; those of DaemonSets and mirrors stay. */
export async function drain(names: readonly string[], options: DrainOptions): Promise<void> {
  await each(names, (name) => patchNode(options, name, '', { spec: { unschedulable: true } }));
  await each(names, (name) => empty(name, options));
}

async function empty(name: string, options: DrainOptions): Promise<void> {
  const { client, timeoutMs, log, stop } = options;
  const endMs = client.timers.nowMs() + timeoutMs;
  const asked = new Map<string, number>();
  while (stop?.aborted !== true) {
    const pods = await evictable(client, name, log);
    if (pods.length === 0) return;
    const nowMs = client.timers.nowMs();
    if (nowMs > endMs) {
      const left = pods.map((pod) => stringAt(pod, 'metadata', 'name')).slice(0, 5);
      throw new Error(`node ${name}: ${pods.length} pods are left: ${left.join(', ')} ...`);
    }
    for (const pod of pods) {
      const uid = stringAt(pod, 'metadata', 'uid');
      if ((asked.get(uid) ?? 0) > nowMs) continue;
      asked.set(uid, nowMs + RETRY_MS);
      await evict(client, pod, log);
    }
    await pause(LOOK_MS, options);
  }
}

/** Is over early when everything is to stop. */
async function pause(durationMs: number, { client, stop }: DrainOptions): Promise<void> {
  if (stop?.aborted === true) return;
  await new Promise<void>((resolve) => {
    client.timers.after(durationMs, resolve);
    stop?.addEventListener(
      'abort',
      guarded(() => resolve()),
      { once: true },
    );
  });
}

async function evictable(
  client: Client,
  node: string,
  log: DrainOptions['log'],
): Promise<readonly JsonObject[]> {
  const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${encodeURIComponent(node)}`;
  const answer = await persist(client, { method: 'GET', path }, PERSIST_MS, log);
  if (!answer.ok) throw new Error(`node ${node}: ${answer.status.message ?? answer.code}`);
  return listAt(answer.object, 'items').filter((pod): pod is JsonObject => {
    if (!isObject(pod)) return false;
    const owners = listAt(pod, 'metadata', 'ownerReferences');
    const isDaemon = owners.some((owner) => stringAt(owner, 'kind') === 'DaemonSet');
    const isMirror = stringAt(pod, 'metadata', 'annotations', 'kubernetes.io/config.mirror') !== '';
    return !isDaemon && !isMirror;
  });
}

async function evict(client: Client, pod: JsonObject, log: (text: string) => void): Promise<void> {
  const namespace = stringAt(pod, 'metadata', 'namespace');
  const name = stringAt(pod, 'metadata', 'name');
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  const answer = await client.request({ method: 'POST', path, body });
  // gone already, its budget allows none now, or the server is away: all are looked at again
  if (answer.ok || answer.code === 404 || answer.code === STATUS_NONE || answer.code >= 500) return;
  if (answer.code !== 429) throw new Error(`${namespace}/${name}: ${answer.status.message ?? ''}`);
  log(`${namespace}/${name}: ${answer.status.message ?? 'cannot be evicted now'}`);
}

export interface UpgradeOptions extends DrainOptions {
  /** The kubelets' version afterwards. */
  readonly version: string;
  /** Nodes that are away at once. */
  readonly wave: number;
  /** How long the nodes of a wave are down. */
  readonly downMs: number;
  /** Between two waves. */
  readonly pauseMs: number;
  readonly isDrained: boolean;
}

/** Should this process end amid a wave, its nodes come back so much later than planned. */
const FORGOTTEN_MS = 60_000;
/** On nodes that an upgrade has cordoned, as it may be killed before it brings them back. */
const CORDONED_LABEL = 'megaplane.dev/cordoned-by';
const CORDONED = {
  metadata: { labels: { [CORDONED_LABEL]: 'upgrade' } },
  spec: { unschedulable: true },
};
const UNCORDONED = {
  metadata: { labels: { [CORDONED_LABEL]: null } },
  spec: { unschedulable: null },
};

/**
 * Drains, takes down, changes and brings back one wave of nodes after the other. Nodes that were
 * cordoned before stay so. When it is to stop, the nodes of the wave come back as they are; returns
 * how many have the version.
 */
export async function upgrade(names: readonly string[], options: UpgradeOptions): Promise<number> {
  const { wave, version, pauseMs, log, stop } = options;
  let done = 0;
  while (done < names.length && stop?.aborted !== true) {
    const own = names.slice(done, done + wave);
    if (!(await upgradeWave(own, options))) break;
    done += own.length;
    log(`${done} of ${names.length} nodes have ${version}`);
    if (done < names.length) await pause(pauseMs, options);
  }
  return done;
}

/** False when it was to stop before the nodes had the version. */
async function upgradeWave(own: readonly string[], options: UpgradeOptions): Promise<boolean> {
  const { client, version, downMs, isDrained, log, stop } = options;
  const open: string[] = [];
  if (isDrained) {
    await each(own, async (name) => {
      if (await isCordoned(client, name, log)) return;
      open.push(name);
      await patchNode(options, name, '', CORDONED);
    });
    await drain(own, options);
  }
  const isStopped = (): boolean => stop?.aborted === true;
  if (!isStopped()) {
    const untilMs = client.timers.wallMs() + downMs + FORGOTTEN_MS;
    const whole = { selector: '', names: own, percent: 100, periodMs: 0 };
    const fault = await addFault(client, { kind: 'down', ...whole, untilMs }, log);
    await pause(downMs, options);
    const nodeInfo = { kubeletVersion: version };
    const body = { status: { nodeInfo } };
    if (!isStopped()) await each(own, (name) => patchNode(options, name, '/status', body));
    await removeFaults(client, [fault.id], log);
  }
  const isDone = !isStopped();
  await each(open, (name) => patchNode(options, name, '', UNCORDONED));
  return isDone;
}

/** Nodes that an upgrade which was killed left cordoned take pods again; returns how many. */
export async function uncordonLeft(client: Client, log: DrainOptions['log']): Promise<number> {
  const names = await nodesOf(client, CORDONED_LABEL);
  await each(names, (name) => patchNode({ client, log }, name, '', UNCORDONED));
  return names.length;
}

/** By somebody else: what an upgrade cordoned is for the next one to bring back. */
async function isCordoned(
  client: Client,
  name: string,
  log: DrainOptions['log'],
): Promise<boolean> {
  const node = await nodeOf(client, name, log);
  if (stringAt(node, 'metadata', 'labels', CORDONED_LABEL) !== '') return false;
  const { spec } = node;
  return isObject(spec) && spec['unschedulable'] === true;
}

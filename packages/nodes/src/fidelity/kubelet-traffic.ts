/**
 * The traffic of real kubelets beside what keeps simulated nodes alive (`--fidelity kubelet`): the
 * CSINode, watches, tokens, configurations and events. A watch is an object here: some hundred
 * thousand of them fit, a million nodes with nine each do not.
 */
import { createEventRecorder, type EventRecorder } from '@megaplane/client/event-recorder';
import { CONTENT, type Client } from '@megaplane/client/client';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { matches } from '@megaplane/machinery/scan';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import type { Call } from './calls.ts';
import { CsiNodes } from './csi-nodes.ts';
import { KubeletWatch } from './kubelet-watch.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

/** Watches that are begun in one tick: a start must not be a storm. */
export const STARTS_PER_TICK = 100;
/** More are not kept; the metrics tell how many were left out. */
export const WATCHES_MAX = 1_000_000;
/** Tokens last for an hour and seven seconds and are renewed after four fifths of it. */
const TOKEN_SECONDS = 3607;
const TOKEN_RENEW_MS: number = TOKEN_SECONDS * 800;
const TOKENS_LOOK_MS = 10_000;
/** Longest pause after tokens that were refused, as between tries to mount a volume. */
const TOKEN_RETRY_MS_MAX = 122_000;
/** Watches of ConfigMaps and Secrets last for half an hour to an hour. */
const CONFIG_SECONDS_MIN = 1800;
const OVER: readonly Uint8Array[] = ['Succeeded', 'Failed'].map((phase) => Buffer.from(phase));
const ROOT_CERTIFICATE = 'kube-root-ca.crt';

export interface TrafficOptions {
  readonly client: Client;
  readonly calls: ReadonlySet<Call>;
  readonly metrics: SimulatorMetrics;
  /** Whether a node of this name is ours. */
  isOurs(node: string): boolean;
}

/** A pod whose kubelet we play. */
interface Hold {
  readonly pod: JsonObject;
  readonly uid: string;
  /** Keys of the watches that it needs. */
  readonly configs: readonly string[];
  isStarted: boolean;
  isStopping: boolean;
  tokenDueMs: number;
  tokenFailures: number;
}

export class KubeletTraffic {
  /** Of the informer over bound pods. */
  readonly podHandler: InformerHandler;
  readonly #options: TrafficOptions;
  readonly #watches: Map<string, KubeletWatch> = new Map();
  /** How many pods need a watch. */
  readonly #needs: Map<string, number> = new Map();
  readonly #starting: KubeletWatch[] = [];
  readonly #holds: Map<number, Hold> = new Map();
  readonly #recorder: EventRecorder;
  readonly #csiNodes: CsiNodes;
  readonly #scan = new ObjectScan();
  /** Whole seconds, as objects tell times. */
  readonly #beganMs: number;
  #tokensDueMs = 0;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#beganMs = Math.floor(options.client.timers.wallMs() / 1000) * 1000;
    this.#csiNodes = new CsiNodes(options.client, options.metrics);
    this.#recorder = createEventRecorder({ client: options.client, component: 'kubelet' });
    this.podHandler = {
      onUpsert: (id, _isNew, bytes, start, end) => this.#onPod(id, bytes, start, end),
      onDelete: (id) => this.#onPodGone(id),
    };
  }

  /** A node of ours is there. */
  onNode(name: string, uid: string): void {
    const own = encodeURIComponent(name);
    this.#open(name, 'watch-node', `/api/v1/nodes?fieldSelector=metadata.name%3D${own}`);
    this.#open(name, 'watch-pods', `/api/v1/pods?fieldSelector=spec.nodeName%3D${own}`);
    // headless services are not for environment variables
    const addressed = 'fieldSelector=spec.clusterIP%21%3DNone';
    this.#open(name, 'watch-services', `/api/v1/services?${addressed}`);
    this.#open(name, 'watch-csidrivers', '/apis/storage.k8s.io/v1/csidrivers');
    this.#open(name, 'watch-runtimeclasses', '/apis/node.k8s.io/v1/runtimeclasses');
    if (this.#options.calls.has('csinode')) this.#csiNodes.add(name, uid);
  }

  onNodeGone(name: string): void {
    this.#csiNodes.remove(name);
    for (const call of ['node', 'pods', 'services', 'csidrivers', 'runtimeclasses']) {
      this.#close(`${name} watch-${call}`);
    }
  }

  /** Call it often. */
  tick(): void {
    for (const watch of this.#starting.splice(0, STARTS_PER_TICK)) watch.start();
    this.#csiNodes.tick();
    const nowMs = this.#options.client.timers.nowMs();
    if (!this.#options.calls.has('token') || nowMs < this.#tokensDueMs) return;
    this.#tokensDueMs = nowMs + TOKENS_LOOK_MS;
    for (const hold of this.#holds.values()) if (hold.tokenDueMs <= nowMs) this.#token(hold);
  }

  stop(): void {
    this.#starting.length = 0;
    this.#csiNodes.stop();
    for (const watch of this.#watches.values()) watch.stop();
    this.#watches.clear();
    this.#holds.clear();
  }

  #open(name: string, call: Call, path: string): void {
    if (this.#options.calls.has(call)) this.#watch(`${name} ${call}`, path);
  }

  #watch(key: string, path: string, secondsMin?: number): void {
    const { client, metrics } = this.#options;
    if (this.#watches.has(key)) return;
    if (this.#watches.size >= WATCHES_MAX) {
      metrics.watchesLeftOut++;
      return;
    }
    const watch = new KubeletWatch(client, path, metrics, secondsMin);
    this.#watches.set(key, watch);
    this.#starting.push(watch);
  }

  #close(key: string): void {
    this.#watches.get(key)?.stop();
    this.#watches.delete(key);
  }

  #onPod(id: number, bytes: Uint8Array, start: number, end: number): void {
    const scan = this.#scan;
    if (!scan.scan(bytes, start, end)) return;
    // what has ended needs no token and no configuration any more
    if (OVER.some((phase) => matches(bytes, scan.phaseStart, scan.phaseEnd, phase))) {
      return this.#onPodGone(id);
    }
    const uid = Buffer.from(bytes.subarray(scan.uidStart, scan.uidEnd)).toString();
    if (this.#holds.has(id) && this.#holds.get(id)?.uid !== uid) this.#onPodGone(id);
    const hold = this.#holds.get(id);
    if (hold?.isStopping === true) return;
    if (hold?.isStarted === true && scan.deletionTimestampStart < 0) return;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const pod = parseJson(text.toString('utf8')) as JsonObject;
    const node = stringAt(pod, 'spec', 'nodeName');
    if (hold === undefined && !this.#options.isOurs(node)) return;
    const held = hold ?? this.#take(id, uid, node, pod);
    const isRunning = stringAt(pod, 'status', 'phase') === 'Running';
    if (isRunning && !held.isStarted) {
      held.isStarted = true;
      if (hold !== undefined || !this.#ranBefore(pod)) this.#started(pod);
    }
    if (!held.isStarted || stringAt(pod, 'metadata', 'deletionTimestamp') === '') return;
    held.isStopping = true;
    this.#stopping(pod);
  }

  /** Whether the pod ran before this process, or this world, began. */
  #ranBefore(pod: JsonObject): boolean {
    return Date.parse(stringAt(pod, 'status', 'startTime')) < this.#beganMs;
  }

  #take(id: number, uid: string, node: string, pod: JsonObject): Hold {
    const { calls } = this.#options;
    const configs = calls.has('watch-configs') ? configsOf(pod) : [];
    const keys = configs.map(({ resource, namespace, name }) => {
      const key = `${node} ${resource} ${namespace}/${name}`;
      this.#needs.set(key, (this.#needs.get(key) ?? 0) + 1);
      const selector = `fieldSelector=metadata.name%3D${encodeURIComponent(name)}`;
      const watched = `/api/v1/namespaces/${namespace}/${resource}?${selector}`;
      this.#watch(key, watched, CONFIG_SECONDS_MIN);
      return key;
    });
    const hold: Hold = {
      ...{ pod, uid, configs: keys, isStarted: false, isStopping: false },
      ...{ tokenDueMs: Infinity, tokenFailures: 0 },
    };
    this.#holds.set(id, hold);
    if (calls.has('token')) this.#token(hold);
    return hold;
  }

  #onPodGone(id: number): void {
    const hold = this.#holds.get(id);
    this.#holds.delete(id);
    for (const key of hold?.configs ?? []) {
      const count = (this.#needs.get(key) ?? 1) - 1;
      this.#needs.set(key, count);
      if (count > 0) continue;
      this.#needs.delete(key);
      this.#close(key);
    }
  }

  /** The pod's token for the API server, bound to it. */
  #token(hold: Hold): void {
    const { client, metrics } = this.#options;
    const { pod } = hold;
    hold.tokenDueMs = client.timers.nowMs() + TOKEN_RENEW_MS + 10_000 * client.random();
    const account = stringAt(pod, 'spec', 'serviceAccountName') || 'default';
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const name = stringAt(pod, 'metadata', 'name');
    const { uid } = hold;
    const body = JSON.stringify({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        expirationSeconds: TOKEN_SECONDS,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    });
    metrics.called('token');
    const isTaken = client.send('POST', path, CONTENT.json, body, (status) => {
      const isMade = status >= 200 && status < 300;
      hold.tokenFailures = isMade ? 0 : hold.tokenFailures + 1;
      if (isMade) return;
      const pauseMs = TOKENS_LOOK_MS * 2 ** Math.min(hold.tokenFailures - 1, 10);
      const shortMs = Math.min(TOKEN_RETRY_MS_MAX, pauseMs);
      hold.tokenDueMs = client.timers.nowMs() + shortMs * (1 + 0.1 * client.random());
    });
    if (!isTaken) hold.tokenDueMs = 0;
  }

  /** What kubelet v1.36.1 tells of containers that begin to run, whose images were there. */
  #started(pod: JsonObject): void {
    this.#tell(pod, (name, image) => [
      [
        'Pulled',
        `Container image ${image} already present on machine and can be accessed by the pod`,
      ],
      ['Created', 'Container created'],
      ['Started', 'Container started'],
    ]);
  }

  #stopping(pod: JsonObject): void {
    this.#tell(pod, (name) => [['Killing', `Stopping container ${name}`]]);
  }

  #tell(pod: JsonObject, eventsOf: (name: string, image: string) => [string, string][]): void {
    const { calls, metrics } = this.#options;
    if (!calls.has('events')) return;
    const host = stringAt(pod, 'spec', 'nodeName');
    const subject = {
      kind: 'Pod',
      apiVersion: 'v1',
      namespace: stringAt(pod, 'metadata', 'namespace'),
      name: stringAt(pod, 'metadata', 'name'),
      uid: stringAt(pod, 'metadata', 'uid'),
      resourceVersion: stringAt(pod, 'metadata', 'resourceVersion'),
    };
    for (const container of listAt(pod, 'spec', 'containers')) {
      const name = stringAt(container, 'name');
      const about = { ...subject, fieldPath: `spec.containers{${name}}` };
      for (const [reason, message] of eventsOf(
        name,
        JSON.stringify(stringAt(container, 'image')),
      )) {
        metrics.called('events');
        this.#recorder.event(about, 'Normal', reason, message, host);
      }
    }
  }
}

interface Config {
  readonly resource: 'configmaps' | 'secrets';
  readonly namespace: string;
  readonly name: string;
}

/** ConfigMaps and Secrets that a pod refers to; the root certificate is in every pod. */
function configsOf(pod: JsonObject): readonly Config[] {
  const namespace = stringAt(pod, 'metadata', 'namespace');
  const found = new Map<string, Config>();
  const add = (resource: Config['resource'], name: string): void => {
    if (name !== '') found.set(`${resource} ${name}`, { resource, namespace, name });
  };
  const look = (source: JsonValue | undefined): void => {
    add('configmaps', stringAt(source, 'configMap', 'name'));
    add('secrets', stringAt(source, 'secret', 'secretName') || stringAt(source, 'secret', 'name'));
    for (const part of listAt(source, 'projected', 'sources')) look(part);
  };
  add('configmaps', ROOT_CERTIFICATE);
  for (const volume of listAt(pod, 'spec', 'volumes')) look(volume);
  for (const secret of listAt(pod, 'spec', 'imagePullSecrets')) {
    add('secrets', stringAt(secret, 'name'));
  }
  for (const list of ['containers', 'initContainers']) {
    for (const container of listAt(pod, 'spec', list)) {
      for (const from of listAt(container, 'envFrom')) {
        add('configmaps', stringAt(from, 'configMapRef', 'name'));
        add('secrets', stringAt(from, 'secretRef', 'name'));
      }
      for (const variable of listAt(container, 'env')) {
        const source = objectAt(variable, 'valueFrom');
        add('configmaps', stringAt(source, 'configMapKeyRef', 'name'));
        add('secrets', stringAt(valueAt(source, 'secretKeyRef'), 'name'));
      }
    }
  }
  return [...found.values()];
}

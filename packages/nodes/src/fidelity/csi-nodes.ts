/**
 * The CSINode of each node: read, and made where there is none, as kubelets do. What fails is tried
 * again, ever more seldom; a few are under way at once, so that a start is no storm.
 */
import { STATUS_NONE, CONTENT, type Client } from '@megaplane/client/client';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

const COLLECTION = '/apis/storage.k8s.io/v1/csinodes';
/** Which volumes of the tree CSI drivers take over, as kubelet v1.36.1 says it. */
const MIGRATED = 'storage.alpha.kubernetes.io/migrated-plugins';
const MIGRATED_PLUGINS: string = [
  ...['aws-ebs', 'azure-disk', 'azure-file', 'cinder', 'gce-pd', 'portworx-volume'],
  'vsphere-volume',
]
  .map((plugin) => `kubernetes.io/${plugin}`)
  .join(',');
/** Requests under way at once. */
const UNDER_WAY_MAX = 100;
export const RETRY_MS_MIN = 500;
export const RETRY_MS_MAX = 60_000;

interface Wanted {
  readonly name: string;
  readonly uid: string;
  failures: number;
}

export class CsiNodes {
  readonly #client: Client;
  readonly #metrics: SimulatorMetrics;
  /** Those without one, as far as we know, by name. */
  readonly #wanted: Map<string, Wanted> = new Map();
  readonly #due: Wanted[] = [];
  #underWay = 0;

  constructor(client: Client, metrics: SimulatorMetrics) {
    this.#client = client;
    this.#metrics = metrics;
  }

  add(name: string, uid: string): void {
    const wanted: Wanted = { name, uid, failures: 0 };
    this.#wanted.set(name, wanted);
    this.#due.push(wanted);
  }

  remove(name: string): void {
    this.#wanted.delete(name);
  }

  stop(): void {
    this.#wanted.clear();
    this.#due.length = 0;
  }

  /** Call it often. */
  tick(): void {
    while (this.#underWay < UNDER_WAY_MAX && this.#due.length > 0 && this.#client.room() > 0) {
      const wanted = this.#due.shift();
      if (wanted !== undefined && this.#isWanted(wanted)) this.#read(wanted);
    }
  }

  #isWanted(wanted: Wanted): boolean {
    return this.#wanted.get(wanted.name) === wanted;
  }

  #read(wanted: Wanted): void {
    this.#send('GET', `${COLLECTION}/${wanted.name}`, null, (status) => {
      if (status === 200) this.#wanted.delete(wanted.name);
      else if (status === 404) this.#make(wanted);
      else this.#later(wanted);
    });
  }

  #make(wanted: Wanted): void {
    if (!this.#isWanted(wanted)) return;
    const { name, uid } = wanted;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name, uid }];
    const body = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: { name, annotations: { [MIGRATED]: MIGRATED_PLUGINS }, ownerReferences },
      spec: { drivers: [] },
    };
    this.#send('POST', COLLECTION, JSON.stringify(body), (status) => {
      if (status === 201 || status === 409) this.#wanted.delete(name);
      else this.#later(wanted);
    });
  }

  #send(
    method: 'GET' | 'POST',
    path: string,
    body: string | null,
    done: (s: number) => void,
  ): void {
    this.#metrics.called('csinode');
    this.#underWay++;
    const isTaken = this.#client.send(method, path, CONTENT.json, body, (status) => {
      this.#underWay--;
      done(status);
    });
    if (isTaken) return;
    this.#underWay--;
    done(STATUS_NONE);
  }

  #later(wanted: Wanted): void {
    const pauseMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(10, wanted.failures++));
    this.#client.timers.after(pauseMs * (1 + this.#client.random()), () => {
      if (this.#isWanted(wanted)) this.#due.push(wanted);
    });
  }
}

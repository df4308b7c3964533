/** Keeps an UpcomingNode for each machine that the shard tells of. */
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { API_VERSION, UPCOMING_NODES_PATH } from '../contract/api.ts';
import type { NodeStateUpdate } from '../contract/tables/shard.ts';
import { foundIn, JSON_PATCH } from './cluster-api.ts';
import type { ClusterApi } from './cluster-api.ts';
import { Lanes } from './lanes.ts';
import { objectName, phaseOf, upcomingSpec, upcomingStatus } from './upcoming-node.ts';
import type { Phase } from './upcoming-node.ts';

/** Machines written at once. */
export const WRITES_MAX = 32;

/** A machine as its object was written last. */
interface Known {
  readonly spec: string;
  readonly status: string;
  readonly phase: string;
  readonly startTime: string;
}

export interface NodeWriterOptions {
  readonly api: ClusterApi;
  readonly wallMs: () => number;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export class NodeWriter {
  readonly #options: NodeWriterOptions;
  readonly #lanes: Lanes<NodeStateUpdate>;
  readonly #known = new Map<string, Known>();
  readonly #nodeNames = new Map<string, string>();
  failures = 0;
  /** How often each write ended how: `create/done`. */
  readonly writes: Map<string, number> = new Map();

  constructor(options: NodeWriterOptions) {
    this.#options = options;
    this.#lanes = new Lanes(WRITES_MAX, (machineId, update) => this.#write(machineId, update));
  }

  /** The newest word of a machine counts. */
  tell(update: NodeStateUpdate): void {
    if (update.machineId === '') return;
    if (update.nodeName !== '') this.#nodeNames.set(update.machineId, update.nodeName);
    this.#lanes.put(update.machineId, update);
  }

  /** Name of the Node of a machine: what the shard said, else the machine's id. */
  nodeNameOf(machineId: string): string {
    return this.#nodeNames.get(machineId) ?? machineId;
  }

  /** How the drain of a machine went, which the operator itself knows. */
  async mark(machineId: string, phase: Phase, lastError: string): Promise<void> {
    const path = `${UPCOMING_NODES_PATH}/${objectName(machineId)}`;
    const status: JsonObject = lastError === '' ? { phase } : { phase, lastError };
    const known = this.#known.get(machineId);
    if (known !== undefined) this.#known.set(machineId, { ...known, phase, status: '' });
    const answer = await this.#options.api.request(
      ...(['PATCH', `${path}/status`, { status }, 'application/merge-patch+json'] as const),
    );
    if (!answer.ok && answer.code !== 404) this.#trouble(path, answer.status.message);
  }

  /** Machines that are being written. */
  get inFlight(): number {
    return this.#lanes.busy;
  }

  #count(op: string, outcome: string): void {
    const key = `${op}/${outcome}`;
    this.writes.set(key, (this.writes.get(key) ?? 0) + 1);
  }

  /** Resolves when all that was told is written. */
  settled(): Promise<void> {
    return this.#lanes.settled();
  }

  async #write(machineId: string, update: NodeStateUpdate): Promise<void> {
    const path = `${UPCOMING_NODES_PATH}/${objectName(machineId)}`;
    try {
      const known = this.#known.get(machineId) ?? (await this.#read(path));
      const phase = phaseOf(update.state, known?.phase ?? '');
      if (phase === 'Drained') return await this.#remove(machineId, path);
      const startTime = known?.startTime || new Date(this.#options.wallMs()).toISOString();
      const node = phase === 'Ready' ? await this.#node(machineId) : undefined;
      const spec = upcomingSpec(update);
      const status = upcomingStatus(update, {
        ...{ phase, provisioningStartTime: startTime },
        ...(node === undefined ? {} : { node }),
      });
      const next = { spec: JSON.stringify(spec), status: JSON.stringify(status), phase, startTime };
      if (known === undefined) await this.#create(machineId, spec);
      else if (known.spec !== next.spec) await this.#replace(path, '/spec', spec);
      this.#count(known === undefined ? 'create' : 'update', 'success');
      if (known?.status !== next.status) await this.#replace(`${path}/status`, '/status', status);
      this.#known.set(machineId, next);
    } catch (error) {
      // the shard tells it again when a session begins
      this.#known.delete(machineId);
      this.#count('write', 'error');
      this.#trouble(path, (error as Error).message);
    }
  }

  async #read(path: string): Promise<Known | undefined> {
    const found = foundIn(await this.#options.api.request('GET', path));
    if (found === undefined) return undefined;
    const startTime = stringAt(found, 'status', 'provisioningStartTime');
    return { spec: '', status: '', phase: stringAt(found, 'status', 'phase'), startTime };
  }

  async #create(machineId: string, spec: JsonObject): Promise<void> {
    const body = {
      ...{ apiVersion: API_VERSION, kind: 'UpcomingNode' },
      ...{ metadata: { name: objectName(machineId) }, spec },
    };
    const answer = await this.#options.api.request('POST', UPCOMING_NODES_PATH, body);
    if (!answer.ok && answer.code !== 409) foundIn(answer);
  }

  /** Whole, as a merge would keep what is gone. */
  async #replace(path: string, pointer: string, value: JsonValue): Promise<void> {
    const patch = [{ op: 'add', path: pointer, value }];
    const answer = await this.#options.api.request('PATCH', path, patch, JSON_PATCH);
    if (foundIn(answer) === undefined) throw new Error('it was deleted meanwhile');
  }

  async #remove(machineId: string, path: string): Promise<void> {
    foundIn(await this.#options.api.request('DELETE', path));
    this.#count('delete', 'success');
    this.#known.delete(machineId);
    this.#nodeNames.delete(machineId);
  }

  async #node(machineId: string): Promise<{ name: string; uid: string } | undefined> {
    const name = this.nodeNameOf(machineId);
    const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
    const found = foundIn(await this.#options.api.request('GET', path));
    return found === undefined ? undefined : { name, uid: stringAt(found, 'metadata', 'uid') };
  }

  #trouble(path: string, message: string | undefined): void {
    this.failures++;
    this.#options.log('warn', `${path}: ${message ?? 'no reason given'}`);
  }
}

/**
 * Takes nodes out of the cluster: cordons them, says so, and evicts their pods until the grace is
 * over. Pods that a disruption budget holds back are asked again every 2 s. Pods of DaemonSets,
 * mirror pods and those that have ended stay.
 */
import type { Timers } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { ReclaimInstruction } from '../contract/tables/shard.ts';
import { isTerminal } from '../pods/projection.ts';
import { foundIn, MERGE_PATCH } from './cluster-api.ts';
import type { ClusterApi } from './cluster-api.ts';
import type { Phase } from './upcoming-node.ts';

export const RETRY_MS = 2000;
/** Where the shard gives none. */
export const GRACE_DEFAULT_MS = 30_000;
/** A longer one is cut to this: 30 days. */
const GRACE_SECONDS_MAX = 2_592_000n;
/** Instructions that are remembered, so that one that comes twice is carried out once. */
const REMEMBERED_MAX = 10_000;
const MIRROR = 'kubernetes.io/config.mirror';

export interface DrainOptions {
  readonly api: ClusterApi;
  readonly timers: Timers;
  readonly nodeNameOf: (machineId: string) => string;
  readonly mark: (machineId: string, phase: Phase, lastError: string) => Promise<void>;
  readonly acknowledge: (instructionId: string, nodesStarted: number) => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export class Drainer {
  readonly #options: DrainOptions;
  /** Instruction -> nodes that were cordoned; -1 while they are. */
  readonly #started = new Map<string, number>();
  #isStopped = false;

  constructor(options: DrainOptions) {
    this.#options = options;
  }

  /** Begins, and resolves when all nodes of the instruction are done with. */
  async carryOut(instruction: ReclaimInstruction): Promise<void> {
    const { instructionId, nodes } = instruction;
    const before = this.#started.get(instructionId);
    if (before !== undefined) {
      if (before >= 0) this.#options.acknowledge(instructionId, before);
      return;
    }
    this.#remember(instructionId, -1);
    const deadlineMs = this.#options.timers.nowMs() + graceMs(instruction);
    const cordoned: string[] = [];
    for (const machineId of nodes) {
      const isCordoned = await this.#cordon(machineId);
      if (isCordoned) cordoned.push(machineId);
    }
    this.#started.set(instructionId, cordoned.length);
    this.#options.acknowledge(instructionId, cordoned.length);
    await Promise.all(cordoned.map((machineId) => this.#drain(machineId, deadlineMs)));
  }

  stop(): void {
    this.#isStopped = true;
  }

  #remember(instructionId: string, started: number): void {
    this.#started.set(instructionId, started);
    for (const oldest of this.#started.keys()) {
      if (this.#started.size <= REMEMBERED_MAX) return;
      this.#started.delete(oldest);
    }
  }

  async #cordon(machineId: string): Promise<boolean> {
    const { api, log, mark } = this.#options;
    const name = this.#options.nodeNameOf(machineId);
    const body = { spec: { unschedulable: true } };
    try {
      const answer = await api.request('PATCH', nodePath(name), body, MERGE_PATCH);
      if (foundIn(answer) === undefined) {
        // not swallowed: a shard that names nodes we do not have drains nothing
        log('warn', `machine ${machineId}: there is no node ${name} to be cordoned`);
        await mark(machineId, 'Draining', `there is no node ${name}`);
        return false;
      }
      await mark(machineId, 'Draining', '');
      return true;
    } catch (error) {
      log('warn', `node ${name} was not cordoned: ${(error as Error).message}`);
      return false;
    }
  }

  async #drain(machineId: string, deadlineMs: number): Promise<void> {
    const { timers, mark, log } = this.#options;
    const name = this.#options.nodeNameOf(machineId);
    let why = 'it was not begun';
    while (!this.#isStopped) {
      try {
        const left = await this.#round(name);
        if (left.length === 0) return await mark(machineId, 'Drained', '');
        why = `pods are left: ${left.slice(0, 5).join(', ')}${left.length > 5 ? ', …' : ''}`;
      } catch (error) {
        why = (error as Error).message;
      }
      if (timers.nowMs() + RETRY_MS > deadlineMs) break;
      await new Promise<void>((resolve) => timers.after(RETRY_MS, resolve));
    }
    log('warn', `node ${name} was not drained in its time: ${why}`);
    await mark(machineId, 'Failed', why);
  }

  /** Asks for the eviction of all pods that are on the node; returns those. */
  async #round(name: string): Promise<string[]> {
    const path = withQuery('/api/v1/pods', { fieldSelector: `spec.nodeName=${name}` });
    const list = foundIn(await this.#options.api.request('GET', path));
    const left: string[] = [];
    for (const pod of listAt(list, 'items')) {
      if (staysOn(pod)) continue;
      left.push(await this.#evict(pod));
    }
    return left;
  }

  async #evict(pod: JsonValue): Promise<string> {
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const name = stringAt(pod, 'metadata', 'name');
    if (valueAt(pod, 'metadata', 'deletionTimestamp') !== undefined) return `${namespace}/${name}`;
    const body = {
      ...{ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
      deleteOptions: { preconditions: { uid: stringAt(pod, 'metadata', 'uid') } },
    };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    const answer = await this.#options.api.request('POST', path, body);
    // 429: its budget allows none now; 404 and 409: it is gone, or another has its name
    const isExpected = answer.ok || [404, 409, 429].includes(answer.code);
    if (!isExpected) this.#options.log('warn', `${path}: ${answer.status.message ?? answer.code}`);
    return `${namespace}/${name}`;
  }
}

/** The grace of an instruction, in milliseconds. */
export function graceMs({ gracePeriodSeconds }: ReclaimInstruction): number {
  if (gracePeriodSeconds <= 0n) return GRACE_DEFAULT_MS;
  const seconds = gracePeriodSeconds > GRACE_SECONDS_MAX ? GRACE_SECONDS_MAX : gracePeriodSeconds;
  return Number(seconds) * 1000;
}

function staysOn(pod: JsonValue): boolean {
  if (isTerminal(stringAt(pod, 'status', 'phase'))) return true;
  if (valueAt(pod, 'metadata', 'annotations', MIRROR) !== undefined) return true;
  return listAt(pod, 'metadata', 'ownerReferences').some(
    (owner) => stringAt(owner, 'kind') === 'DaemonSet' && valueAt(owner, 'controller') === true,
  );
}

function nodePath(name: string): string {
  return `/api/v1/nodes/${encodeURIComponent(name)}`;
}

/**
 * The operator of a cluster: it keeps the roll-up, sends it, and does in the cluster what the shard
 * asks for. It dials out and listens on nothing; the link to the shard is given to it.
 */
import type { Client } from '@megaplane/client/client';
import { createInformer } from '@megaplane/client/informer';
import type { Informer } from '@megaplane/client/informer';
import { REQUESTS_PATH } from '../contract/api.ts';
import type { ShardMessage } from '../contract/tables/shard.ts';
import { RollingRollUp } from '../rollup/rolling.ts';
import type { BootstrapTemplate } from './bootstrap.ts';
import { CapacityWriter } from './capacity-writer.ts';
import { clusterApi } from './cluster-api.ts';
import { Drainer } from './drain.ts';
import { OperatorMeasures } from './measures.ts';
import { NodeWriter } from './node-writer.ts';
import { RequestStatus } from './request-status.ts';
import { Session } from './session.ts';
import type { OperatorPayload } from './session.ts';

export interface OperatorOptions {
  readonly client: Client;
  readonly clusterId: string;
  readonly rollUpMs: number;
  readonly groupsByNamespace: boolean;
  readonly bootstrap: BootstrapTemplate;
  /** For how long a blob is good. */
  readonly bootstrapTtlSeconds: number;
  /** Opens a stream to the shard; its events go to `opened`, `received` and `ended`. */
  readonly dial: (stream: number) => void;
  /** Frames wait in `session.next()`. */
  readonly flush: () => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export class Operator {
  readonly measures: OperatorMeasures = new OperatorMeasures();
  readonly session: Session;
  readonly rollUp: RollingRollUp;
  readonly status: RequestStatus;
  readonly nodes: NodeWriter;
  readonly #options: OperatorOptions;
  readonly #requests: Informer;
  readonly #capacity: CapacityWriter;
  readonly #drainer: Drainer;
  #cancelTimer: (() => void) | null = null;
  #rollUpDueMs = Infinity;
  #epoch = 0n;
  #isStopped = false;

  constructor(options: OperatorOptions) {
    const { client, clusterId, groupsByNamespace, log } = options;
    const { timers } = client;
    this.#options = options;
    this.session = new Session(clusterId, () => client.random());
    this.#requests = createInformer({
      client,
      path: REQUESTS_PATH,
      handler: {
        onUpsert: (row, _isNew, bytes, start, end) => {
          this.rollUp.upsert(row, bytes as Buffer, start, end);
        },
        onDelete: (row) => this.rollUp.remove(row),
        onSynced: () => this.#sendRollUp(),
        onTrouble: (message) => log('warn', message),
      },
    });
    const namespaceOf = (row: number): string => {
      const key = this.#requests.keyOf(row);
      return key.slice(0, Math.max(0, key.indexOf('/')));
    };
    this.rollUp = new RollingRollUp({ clusterId, groupsByNamespace, namespaceOf });
    const keyOf = (row: number): string => this.#requests.keyOf(row);
    this.status = new RequestStatus({ client, rollUp: this.rollUp, keyOf });
    const api = clusterApi(client);
    this.nodes = new NodeWriter({ api, wallMs: () => timers.wallMs(), log });
    this.#capacity = new CapacityWriter(api, log);
    this.#drainer = new Drainer({
      ...{ api, timers, log },
      nodeNameOf: (machineId) => this.nodes.nodeNameOf(machineId),
      mark: (machineId, phase, lastError) => this.nodes.mark(machineId, phase, lastError),
      acknowledge: (instructionId, nodesStarted) => {
        this.#answer({ case: 'reclaimAck', value: { instructionId, nodesStarted } });
      },
    });
  }

  start(): void {
    this.#requests.start();
    this.#turn();
  }

  stop(): void {
    this.#isStopped = true;
    this.#requests.stop();
    this.#drainer.stop();
    this.#cancelTimer?.();
  }

  opened(stream: number): void {
    this.session.opened(stream);
    this.#options.log('info', 'the session with the shard is open');
    this.#sendRollUp();
  }

  ended(stream: number, why: string): void {
    if (this.#isStopped) return;
    this.session.ended(stream, this.#nowMs());
    this.#options.log('warn', `the session with the shard ended: ${why}`);
    this.#turn();
  }

  received(stream: number, bytes: Uint8Array): void {
    const message = this.session.received(stream, bytes);
    if (message !== undefined) this.#take(message);
  }

  #take({ payload }: ShardMessage): void {
    switch (payload.case) {
      case 'ack':
        return this.#acknowledged(payload.value.shardEpoch);
      case 'bootstrapRequest': {
        const { requestId, requirements } = payload.value;
        const text = this.#options.bootstrap(this.#options.clusterId, requirements);
        const ttlSeconds = BigInt(this.#options.bootstrapTtlSeconds);
        const value = { requestId, userData: new TextEncoder().encode(text), ttlSeconds };
        return this.#answer({ case: 'bootstrapResponse', value });
      }
      case 'reclaimInstruction':
        void this.#drainer.carryOut(payload.value);
        return;
      case 'nodeStateUpdate':
        return this.nodes.tell(payload.value);
      case 'availableCapacity':
        return this.#capacity.tell(payload.value);
      case undefined:
        // a payload of a later version
        return;
      default:
        payload satisfies never;
    }
  }

  /** Acknowledgements are for people: an epoch that goes back is told, and nothing follows. */
  #acknowledged(epoch: bigint): void {
    if (epoch < this.#epoch) {
      const what = `epoch ${epoch} after ${this.#epoch}: are there two shards?`;
      this.#options.log('warn', `the shard says ${what}`);
    }
    this.#epoch = epoch;
  }

  #answer(payload: OperatorPayload): void {
    if (!this.session.answer(payload)) this.#options.log('warn', `dropped: ${payload.case}`);
    this.#options.flush();
  }

  /**
   * Nothing is sent before all requests are known: an empty roll-up says that nothing is wanted,
   * and none at all that nothing is known.
   */
  #sendRollUp(): void {
    if (!this.session.isOpen || !this.#requests.isSynced || this.#isStopped) return;
    const { timers } = this.#options.client;
    const beganMs = timers.nowMs();
    const needs = this.rollUp.build(BigInt(Math.floor(timers.wallMs())) * 1_000_000n);
    this.measures.rollUpSeconds.record((timers.nowMs() - beganMs) / 1000);
    this.measures.rollUps++;
    this.measures.rollUpBytes = needs.length;
    this.session.offerRollUp(needs);
    this.#options.flush();
    this.status.rolledUp();
    this.#rollUpDueMs = timers.nowMs() + this.#options.rollUpMs;
    this.#turn();
  }

  /** Dials where it is time, and comes back when it will be. */
  #turn(): void {
    if (this.#isStopped) return;
    const { timers } = this.#options.client;
    const nowMs = timers.nowMs();
    const stream = this.session.dial(nowMs);
    if (stream > 0) this.#options.dial(stream);
    const dueMs = Math.min(this.session.wakeMs, this.#rollUpDueMs);
    this.#cancelTimer?.();
    if (dueMs === Infinity) return;
    this.#cancelTimer = timers.after(Math.max(1, dueMs - nowMs), () => {
      if (timers.nowMs() >= this.#rollUpDueMs) {
        this.#rollUpDueMs = timers.nowMs() + this.#options.rollUpMs;
        this.#sendRollUp();
      }
      this.#turn();
    });
  }

  #nowMs(): number {
    return this.#options.client.timers.nowMs();
  }
}

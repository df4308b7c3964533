/** Renewals of etcd leases over keep-alive streams, a window of them in flight on each. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcClient, GrpcClientCall, GrpcSink, GrpcStatus } from '@megaplane/wire/grpc';
import * as harness from '../harness.ts';
import { PATHS, writeKeepAlive } from './requests.ts';
import type { Setting } from './scenarios.ts';

class Renewals implements GrpcSink {
  readonly #message = Buffer.alloc(64);
  readonly #leases: number;
  #next = 0;
  answered = 0;
  isOver = false;

  constructor(leases: number) {
    this.#leases = leases;
  }

  send(call: GrpcClientCall): void {
    this.#next = (this.#next + 1) % this.#leases;
    call.send(this.#message, 0, writeKeepAlive(this.#message, this.#next + 1));
  }

  onMessage(call: GrpcClientCall): void {
    this.answered++;
    if (!this.isOver) this.send(call);
  }

  onStatus(_call: GrpcClientCall, status: GrpcStatus): void {
    if (status.code > 1 && !this.isOver)
      throw new Error(`renewals ended: ${status.code} ${status.message}`);
  }
}

/** Renewals per CPU second of the server. */
export async function keepAlives(
  clients: readonly GrpcClient[],
  setting: Setting,
  pid: number,
): Promise<number> {
  const renewals = new Renewals(setting.keys);
  const calls = clients.map((client) => client.open(PATHS.keepAlive, renewals));
  for (const call of calls) for (let i = 0; i < setting.inFlight; i++) renewals.send(call);
  await sleep(500);
  const startCpu = harness.cpuSeconds(pid);
  const before = renewals.answered;
  await sleep(setting.seconds * 1000);
  const perCpu = (renewals.answered - before) / (harness.cpuSeconds(pid) - startCpu);
  renewals.isOver = true;
  for (const call of calls) call.cancel();
  return perCpu;
}

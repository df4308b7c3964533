/** What goes wrong in a simulated cluster; on a quiet day nothing, and one process of controllers. */
import type { Random } from '@megaplane/base/random';
import type { Auditor } from './audit/auditor.ts';
import type { ClusterSimulation, Fault } from './cluster-simulation.ts';
import { ControllersProcess } from './simulated-controllers.ts';
import type { SimulatedFleet } from './simulated-fleet.ts';
import { SimulatedClock } from './simulated-timers.ts';
import { WEBHOOK, type Mood } from './simulated-webhook.ts';

const PROCESSES = 2;
/** Somebody starts a process again that has ended, after so long at most. */
const RESTART_MS_MAX = 10_000;
const JUMP_MS_MAX = 120_000;
const STALL_MS_MAX = 20_000;
/** How often history is forgotten while that goes on, and for how many times. */
const FORGET_MS = 5_000;
const FORGETTINGS = 3;
/** Changes amid which the server crashes, one after the other. */
const CRASHES = 5;
/** A process renews its lease so many times as often as a node, and not oftener than upstream's. */
const RENEWALS = 75;
const RETRY_MS_MIN = 2_000;
const HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const MOODS: readonly Mood[] = ['refuses', 'fails', 'is slow', 'is silent'];
const FAULTS: readonly Fault[] = ['lost', 'refused', 'throttled', 'unreachable', 'slow'];

/** What a troublesome time is called in `step`. */
const TROUBLES = [
  'restart',
  'cut',
  'killed',
  'stopped',
  'throttled',
  'slow',
  'jump',
  'clock',
  'stall',
  'forget',
  'asleep',
  'crash',
  'webhook',
  'none',
  'none',
] as const;

interface Plan {
  readonly renewMs: number;
  readonly restMs: number;
  readonly isQuiet: boolean;
}

export class Troubles {
  readonly #cluster: ClusterSimulation;
  readonly #random: Random;
  readonly #auditor: Auditor;
  readonly #plan: Plan;
  readonly #retryMs: number;
  /** Of the server, the nodes and the machines of the controllers. */
  readonly #clocks: readonly SimulatedClock[];
  readonly #machines: readonly SimulatedClock[];
  readonly #processes: ControllersProcess[] = [];
  #storm: Fault = 'none';
  #crashes = 0;
  #started = 0;
  #isOver = false;

  constructor(
    cluster: ClusterSimulation,
    fleet: SimulatedFleet,
    random: Random,
    auditor: Auditor,
    plan: Plan,
  ) {
    this.#cluster = cluster;
    this.#random = random;
    this.#auditor = auditor;
    this.#plan = plan;
    this.#retryMs = Math.max(RETRY_MS_MIN, plan.renewMs / RENEWALS);
    const count = plan.isQuiet ? 1 : PROCESSES;
    this.#machines = Array.from({ length: count }, () => new SimulatedClock(cluster.timers));
    this.#clocks = [cluster.serverClock, fleet.clock, ...this.#machines];
    for (let i = 0; i < count; i++) this.#start(i);
  }

  #start(at: number): void {
    const clock = this.#machines[at];
    if (clock === undefined || this.#isOver) return;
    this.#processes[at] = new ControllersProcess({
      cluster: this.#cluster,
      clock,
      random: this.#random,
      identity: `controllers-${++this.#started}`,
      renewMs: this.#plan.renewMs,
      retryMs: this.#retryMs,
      began: () => this.#auditor.controllersBegan(),
      ended: () => this.#startLater(at),
      changes: (identity, what) => this.#auditor.changedBy(identity, what),
    });
  }

  #startLater(at: number): void {
    const delayMs = this.#random.below(RESTART_MS_MAX);
    this.#cluster.timers.after(delayMs, () => this.#start(at));
  }

  async begin(): Promise<void> {
    this.#cluster.isDisordered = true;
    this.#cluster.faultOf = ({ method }) => {
      if (this.#crashes > 0 && method !== 'GET') {
        this.#crashes--;
        return 'crash';
      }
      if (this.#storm !== 'none') return this.#random.below(4) > 0 ? this.#storm : 'none';
      if (this.#random.below(20) > 0) return 'none';
      return FAULTS[this.#random.below(FAULTS.length)] ?? 'none';
    };
    await this.#cluster.ask('POST', HOOKS, WEBHOOK);
  }

  step(): void {
    this.#storm = 'none';
    this.#crashes = 0;
    const { webhook, timers } = this.#cluster;
    webhook.mood = 'agrees';
    switch (TROUBLES[this.#random.below(TROUBLES.length)] ?? 'none') {
      case 'restart':
        return this.#cluster.restart();
      case 'cut':
        return this.#cluster.cut();
      case 'killed':
        return this.#end((one) => one.kill());
      case 'stopped':
        return this.#end((one) => void one.stop());
      case 'throttled':
        this.#storm = 'throttled';
        return;
      case 'slow':
        this.#storm = 'slow';
        return;
      case 'jump':
        return timers.jump(this.#random.below(JUMP_MS_MAX));
      case 'clock':
        return this.#setClock();
      case 'stall':
        return this.#cluster.stall(STALL_MS_MAX);
      case 'forget':
        for (let i = 0; i < FORGETTINGS; i++) {
          timers.after(i * FORGET_MS, () => this.#cluster.forget());
        }
        return;
      case 'asleep':
        // Sometimes shorter than the lease, and sometimes longer.
        return this.#one()?.sleep(this.#random.below(15 * this.#retryMs));
      case 'crash':
        this.#crashes = CRASHES;
        return;
      case 'webhook':
        webhook.mood = MOODS[this.#random.below(MOODS.length)] ?? 'fails';
        return;
      case 'none':
      default:
    }
  }

  /** A process, and mostly that which leads. */
  #one(): ControllersProcess | undefined {
    const leader = this.#processes.find(({ isLeader }) => isLeader);
    const any = this.#processes[this.#random.below(this.#processes.length)];
    return this.#random.below(4) === 0 ? any : (leader ?? any);
  }

  #end(how: (one: ControllersProcess) => void): void {
    const one = this.#one();
    if (one === undefined || one.isEnding) return;
    how(one);
    this.#startLater(this.#processes.indexOf(one));
  }

  /** Of one machine, or of all at once, back or forward; what waits for it is over before the end. */
  #setClock(): void {
    const wrongMsMax = this.#plan.restMs / 4;
    const aheadMs = this.#random.below(2 * wrongMsMax) - wrongMsMax;
    const which = this.#random.below(this.#clocks.length + 1);
    for (const [i, clock] of this.#clocks.entries()) {
      if (i === which || which === this.#clocks.length) clock.set(aheadMs);
    }
  }

  async end(): Promise<void> {
    this.#storm = 'none';
    this.#crashes = 0;
    this.#cluster.webhook.mood = 'agrees';
    this.#cluster.faultOf = () => 'none';
    this.#cluster.isDisordered = false;
    for (const clock of this.#clocks) clock.set(0);
    await this.#cluster.ask('DELETE', `${HOOKS}/must-agree`);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    for (const one of this.#processes) await one.stop();
  }
}

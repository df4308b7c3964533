/**
 * Lists of providers, section 5.3. Each provider is asked once a round, and not again before it has
 * answered. A provider that does not answer leaves what is known of its machines as it is.
 */
import type { Machine, MachineList } from '../contract/tables/provider.ts';
import { REJECTIONS } from '../engine/inventory.ts';
import type { Actuator } from './actuator.ts';
import type { Counts } from './counts.ts';
import type { Domains } from './domains.ts';
import type { CallFailure, Effects } from './effects.ts';
import type { FleetMachines } from './fleet-machines.ts';
import { recordOf, stateWord } from './machine-words.ts';

/** A list that shrinks below a tenth of so many machines or more must come three times in a row. */
const GUARDED_MACHINES_MIN = 10;
const GUARDED_SHARE = 0.1;
const GUARD_LISTS = 3;

interface Provider {
  /** Name for people. */
  readonly name: string;
  /** The List that is under way, and when it was asked for, as machines count it. */
  listing: { readonly list: number; readonly asked: number } | null;
  hasAnswered: boolean;
  isFailing: boolean;
  /** Lists in a row that were too short to be believed. */
  short: number;
  cursor: Uint8Array;
}

export interface ReconcilerOptions {
  readonly providers: readonly string[];
  /** Asks only for what changed: for providers that never forget a machine. */
  readonly isIncremental: boolean;
  /** Machines elsewhere are another shard's, but for those of our clusters. */
  readonly domains: Domains;
  readonly serves: (cluster: string) => boolean;
}

export class Reconciler {
  readonly #providers: readonly Provider[];
  readonly #isIncremental: boolean;
  readonly #domains: Domains;
  readonly #options: ReconcilerOptions;
  readonly #machines: FleetMachines;
  readonly #actuator: Actuator;
  readonly #effects: Effects;
  readonly #counts: Counts;
  #lists = 0;

  constructor(
    options: ReconcilerOptions,
    parts: {
      readonly machines: FleetMachines;
      readonly actuator: Actuator;
      readonly effects: Effects;
      readonly counts: Counts;
    },
  ) {
    const { providers, isIncremental, domains } = options;
    this.#options = options;
    const cursor = new Uint8Array();
    const fresh = { listing: null, hasAnswered: false, isFailing: false, short: 0, cursor };
    this.#providers = providers.map((name) => ({ name, ...fresh }));
    this.#isIncremental = isIncremental;
    this.#domains = domains;
    this.#machines = parts.machines;
    this.#actuator = parts.actuator;
    this.#effects = parts.effects;
    this.#counts = parts.counts;
  }

  /** True once each provider has told its machines: before, nothing is known of what is missing. */
  get isReady(): boolean {
    return this.#providers.every(({ hasAnswered }) => hasAnswered);
  }

  get isListing(): boolean {
    return this.#providers.some(({ listing }) => listing !== null);
  }

  /** Other domains are the shard's now: lets go of what is not, and asks for what may be. */
  reassigned(): void {
    for (const machine of [...this.#machines.inventory.machines]) {
      if (this.#domains.keeps(machine) || this.#actuator.isBusy(machine.id)) continue;
      this.#machines.forget(machine.id);
    }
    this.listAnew();
  }

  /** The next Lists are whole ones: what was passed over may count now. */
  listAnew(): void {
    for (const provider of this.#providers) provider.cursor = new Uint8Array();
  }

  /** Asks all providers that are not being asked. */
  begin(): void {
    for (const [index, provider] of this.#providers.entries()) {
      if (provider.listing !== null) continue;
      const list = ++this.#lists;
      provider.listing = { list, asked: this.#machines.stamp() };
      const sinceRevision = this.#isIncremental ? provider.cursor : new Uint8Array();
      this.#effects.push({ kind: 'list', provider: index, list, sinceRevision });
    }
  }

  listed(index: number, list: number, answer: MachineList | CallFailure, nowMs: number): void {
    const provider = this.#providers[index];
    if (provider?.listing?.list !== list) return;
    const { asked } = provider.listing;
    provider.listing = null;
    if ('code' in answer) {
      if (!provider.isFailing) {
        this.#effects.log('warn', `provider ${provider.name} lists nothing: ${answer.message}`);
      }
      provider.isFailing = true;
      return;
    }
    if (provider.isFailing) this.#effects.log('info', `provider ${provider.name} lists again`);
    provider.isFailing = false;
    const isPart = provider.cursor.length > 0;
    if (!isPart && this.#isTooShort(provider, index, answer.machines.length)) return;
    provider.hasAnswered = true;
    const { seen, isWhole } = this.#merge(index, asked, answer, nowMs);
    // what was passed over must be told of again
    if (this.#isIncremental && isWhole) provider.cursor = answer.revision;
    if (!isPart) this.#removeMissing(index, asked, seen);
  }

  #isTooShort(provider: Provider, index: number, count: number): boolean {
    const known = this.#machines.countOf(index);
    const isShort = known >= GUARDED_MACHINES_MIN && count < GUARDED_SHARE * known;
    provider.short = isShort ? provider.short + 1 : 0;
    if (provider.short === 0 || provider.short >= GUARD_LISTS) return false;
    this.#effects.log(
      'warn',
      `provider ${provider.name} lists ${count} machines of ${known}: asked again`,
    );
    return true;
  }

  #merge(
    index: number,
    asked: number,
    { machines }: MachineList,
    nowMs: number,
  ): { readonly seen: ReadonlySet<string>; readonly isWhole: boolean } {
    const seen = new Set<string>();
    const { inventory } = this.#machines;
    let isWhole = true;
    for (const message of machines) {
      const { id } = message;
      if (seen.has(id)) continue;
      seen.add(id);
      // hot: most machines are as they were
      const { cluster, pricePerHour: price, interruptionProbability } = message;
      const state = stateWord(message.state);
      if (state !== '' && inventory.isAs({ id, state, cluster, price, interruptionProbability })) {
        continue;
      }
      if (!this.#learn(message, index, asked, nowMs)) isWhole = false;
    }
    return { seen, isWhole };
  }

  /** False if the provider must tell it again. */
  #learn(message: Machine, index: number, asked: number, nowMs: number): boolean {
    const { id } = message;
    const machines = this.#machines;
    if (machines.providerOf(id) === undefined && !this.#isOurs(message)) return true;
    if (this.#actuator.isBusy(id) || machines.isNewerThan(id, asked)) return false;
    const owner = machines.providerOf(id);
    if (owner !== undefined && owner !== index) {
      this.#counts.machinesRejected.add(1, 'structural');
      return true;
    }
    const record = recordOf(message);
    const hold = machines.holdOn(record, nowMs);
    if (hold !== undefined) return hold.untilMs === Infinity;
    machines.hosted(id, message.cluster === '' ? undefined : message.host);
    const merged = machines.learn(record, index, nowMs);
    if (REJECTIONS.some((word) => word === merged)) {
      this.#counts.machinesRejected.add(1, merged);
      return true;
    }
    return merged === 'illegal' || machines.inventory.stateOf(id) === record.state;
  }

  /** In our domains, or bound to a cluster that has told us what it wants. */
  #isOurs(message: Machine): boolean {
    return this.#domains.hasTold(message) || this.#options.serves(message.cluster);
  }

  #removeMissing(index: number, asked: number, seen: ReadonlySet<string>): void {
    const gone = [...this.#machines.idsOf(index)].filter((id) => {
      if (seen.has(id) || this.#actuator.isBusy(id)) return false;
      return !this.#machines.isNewerThan(id, asked);
    });
    for (const id of gone) this.#machines.forget(id);
  }
}

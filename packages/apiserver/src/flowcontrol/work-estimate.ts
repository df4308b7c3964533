/** How many seats a request takes: upstream's estimate by the bytes that a list holds at once. */
import type { Call } from '../request/call.ts';
import { rangeOf, type Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import type { FlowSeries } from './flow-metrics.ts';

const SEAT_BYTES = 100_000;
/** Lists are streamed: so much of one is held at a time at most. */
const HELD_BYTES_MAX = 1_000_000;
const LIST_SEATS_MAX = 100;
/** Objects whose sizes stand for all of their kind, and for how long. */
const SAMPLE_ITEMS = 16;
const SAMPLE_MS = 10_000;

/** What upstream's estimate for writes is made for. */
const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete']);

interface Sample {
  readonly bytes: number;
  readonly untilMs: number;
}

export class WorkEstimate {
  readonly #world: World;
  readonly #samples = new Map<string, Sample>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Seats for a request of `verb`; `seatsMax`: the most that its level gives to one. */
  seatsOf(call: Call, verb: string, served: Served | undefined, seatsMax: number): number {
    const isList = verb === 'list' || (verb === 'watch' && sendsState(call));
    if (!isList || served === undefined || !served.stored) return 1;
    const count = call.info.name === '' ? this.#countOf(call, served) : 1;
    const held = Math.min(count * this.#bytesOf(served, call.nowMs), HELD_BYTES_MAX);
    const seats = Math.ceil(held / SEAT_BYTES);
    return Math.max(1, Math.min(seats, seatsMax, LIST_SEATS_MAX));
  }

  /** Counts the watches that a write has to be told to. */
  countWatches({ info }: Call, verb: string, served: Served, series: FlowSeries): void {
    const { namespace, name, subresource } = info;
    if (!WRITES.has(verb) || !served.stored || subresource === 'token') return;
    series.watches.observe(this.#world.at(served).watchesOf(served, namespace, name));
  }

  #countOf({ query }: Call, served: Served): number {
    const { start, end } = rangeOf(served, '');
    const count = this.#world.at(served).storage.count(start, end);
    const limit = Number(query.text('limit'));
    return limit > 0 ? Math.min(count, limit) : count;
  }

  #bytesOf(served: Served, nowMs: number): number {
    const kept = this.#samples.get(served.prefix);
    if (kept !== undefined && kept.untilMs > nowMs) return kept.bytes;
    const { start, end } = rangeOf(served, '');
    let items = 0;
    let sum = 0;
    this.#world.at(served).storage.page(start, end, 0, (row) => {
      sum += row.end - row.start;
      items++;
      return items < SAMPLE_ITEMS;
    });
    const bytes = items === 0 ? 0 : sum / items;
    this.#samples.set(served.prefix, { bytes, untilMs: nowMs + SAMPLE_MS });
    return bytes;
  }
}

/** A watch that begins with the objects that there are. */
function sendsState({ query }: Call): boolean {
  if (query.flag('sendInitialEvents')) return true;
  const revision = query.text('resourceVersion');
  return revision === '' || revision === '0';
}

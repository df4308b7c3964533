// data plane: timers by the million
import { assert } from '../assert.ts';
import { Float64Column, Int32Column, Uint32Column } from '../collections/column.ts';

/**
 * A hierarchical timer wheel. Timers are numbers that the caller gives, dense from 0, one moment
 * each; arming, arming anew and cancelling cost the same few stores however many there are.
 *
 *   level 0   128 slots of one tick             due within 128 ticks
 *   level 1   128 slots of 64 ticks             ... 8192
 *   level k   128 slots of 64^k ticks           ... and so on, seven levels: 280 years of 1 ms
 *
 * Each slot is a doubly linked list in the order of arming. A slot of level k+1 is as long as half
 * of level k, so its timers can move down at any time while the slot before it passes: they move
 * a few at a time, and no tick ever pays for a whole slot.
 *
 * The promises: a timer never fires before its time; timers fire in the order of their ticks; at
 * most `fireMax` fire in one call, and the wheel then stands still until the next call, so that a
 * stall of the process or a jump of the clock never shows as a burst.
 */
export interface TimerWheelOptions {
  /** The moment from which ticks are counted. */
  readonly startMs: number;
  /** Length of a tick; timers fire up to this much late. */
  readonly tickMs?: number;
}

const LEVELS = 7;
const SLOTS = 128;
const SLOT_TICKS: Float64Array = Float64Array.from({ length: LEVELS }, (_, level) => 64 ** level);
// Slots are numbered through all levels from 1; a timer in slot 0 is not armed.
const SLOTS_END: number = LEVELS * SLOTS + 1;

export class TimerWheel {
  readonly #startMs: number;
  readonly #tickMs: number;
  #tick = 0;
  #size = 0;
  #isAdvancing = false;
  #isFiring = false;

  readonly #dueMs = new Float64Column();
  readonly #slotOf = new Int32Column();
  // Neighbours in the list of the slot, as id + 1.
  readonly #next = new Uint32Column();
  readonly #previous = new Uint32Column();
  readonly #head: Int32Array = new Int32Array(SLOTS_END);
  readonly #tail: Int32Array = new Int32Array(SLOTS_END);
  readonly #count: Int32Array = new Int32Array(SLOTS_END);
  readonly #levelCount: Int32Array = new Int32Array(LEVELS);

  constructor(options: TimerWheelOptions) {
    this.#startMs = options.startMs;
    this.#tickMs = options.tickMs ?? 1;
    assert(this.#tickMs > 0, 'tickMs is not positive');
  }

  /** Armed timers. */
  get size(): number {
    return this.#size;
  }

  /** Memory of the columns. */
  get memoryBytes(): number {
    return (
      this.#dueMs.memoryBytes +
      this.#slotOf.memoryBytes +
      this.#next.memoryBytes +
      this.#previous.memoryBytes
    );
  }

  /** Sets the moment at which a timer fires, whether it was armed or not. The past means soon. */
  arm(id: number, dueMs: number): void {
    assert(Number.isFinite(dueMs), 'a timer armed for no moment');
    if (this.#slotOf.get(id) !== 0) this.#unlink(id);
    else this.#size++;
    this.#dueMs.set(id, dueMs);
    this.#place(id, this.#dueTick(dueMs));
  }

  /** Disarms a timer; false if it was not armed. */
  cancel(id: number): boolean {
    if (this.#slotOf.get(id) === 0) return false;
    this.#unlink(id);
    this.#size--;
    return true;
  }

  /** Whether a timer is armed. */
  isArmed(id: number): boolean {
    return this.#slotOf.get(id) !== 0;
  }

  /** The moment for which a timer is armed, or was when it fired last. */
  dueMs(id: number): number {
    return this.#dueMs.get(id);
  }

  /**
   * Fires what is due by `nowMs`, at most `fireMax` timers, and returns how many. A timer is
   * disarmed before it fires; `fire` may arm and cancel any, itself too. When the result is
   * `fireMax` there may be more: call again soon. A clock that went back fires nothing.
   */
  advance(nowMs: number, fire: (id: number) => void, fireMax: number = Infinity): number {
    assert(!this.#isAdvancing, 'advance called by a timer');
    const target = Math.floor((nowMs - this.#startMs) / this.#tickMs);
    if (target < this.#tick) return 0;
    let fired = 0;
    this.#isAdvancing = true;
    for (;;) {
      fired += this.#fireSlot(fire, fireMax - fired);
      if (this.#tick >= target || fired >= fireMax) break;
      this.#stepTo(target);
    }
    this.#isAdvancing = false;
    return fired;
  }

  /**
   * No timer fires before this moment, so a shell may sleep until then; Infinity with none armed.
   * For timers far away it is earlier than the first of them.
   */
  nextDueMs(): number {
    if (this.#size === 0) return Infinity;
    let soonest = Infinity;
    for (let level = 0; level < LEVELS; level++) {
      if (this.#levelCount[level] === 0) continue;
      const ticks = SLOT_TICKS[level]!;
      const current = Math.floor(this.#tick / ticks);
      for (let ahead = 0; ahead < SLOTS; ahead++) {
        if (this.#count[slotAt(level, current + ahead)] === 0) continue;
        soonest = Math.min(soonest, Math.max(this.#tick, (current + ahead) * ticks));
        break;
      }
    }
    return this.#startMs + soonest * this.#tickMs;
  }

  #dueTick(dueMs: number): number {
    return Math.ceil((dueMs - this.#startMs) / this.#tickMs);
  }

  /** Fires the timers of the current tick. */
  #fireSlot(fire: (id: number) => void, fireMax: number): number {
    const slot = slotAt(0, this.#tick);
    let fired = 0;
    this.#isFiring = true;
    while (fired < fireMax && this.#head[slot] !== 0) {
      const id = this.#head[slot]! - 1;
      this.#unlink(id);
      this.#size--;
      fired++;
      fire(id);
    }
    this.#isFiring = false;
    return fired;
  }

  /** Goes to the next tick at which something can be due, at most to `target`. */
  #stepTo(target: number): void {
    let stride = 1;
    for (let level = 0; level < LEVELS - 1 && this.#levelCount[level] === 0; level++) {
      stride = SLOT_TICKS[level + 1]!;
    }
    const before = this.#tick;
    const after = Math.min(target, (Math.floor(before / stride) + 1) * stride);
    this.#tick = after;
    for (let level = LEVELS - 1; level > 0; level--) {
      if (this.#levelCount[level] === 0) continue;
      const ticks = SLOT_TICKS[level]!;
      const current = Math.floor(after / ticks);
      // What the boundary finds still here moves at once; with steady ticks it finds nothing.
      this.#cascade(level, current, Infinity);
      const waiting = this.#count[slotAt(level, current + 1)]!;
      if (waiting === 0) continue;
      const left = (current + 1) * ticks - after;
      this.#cascade(level, current + 1, Math.ceil((waiting * (after - before)) / left));
    }
  }

  /** Moves at most `countMax` timers of a slot to lower levels. */
  #cascade(level: number, index: number, countMax: number): void {
    const slot = slotAt(level, index);
    for (let moved = 0; moved < countMax && this.#head[slot] !== 0; moved++) {
      const id = this.#head[slot]! - 1;
      this.#unlink(id);
      this.#place(id, this.#dueTick(this.#dueMs.get(id)));
    }
  }

  #place(id: number, dueTick: number): void {
    // The list of the current tick is being fired: a timer for now or the past gets the next one.
    let due = Math.max(dueTick, this.#tick);
    if (this.#isFiring && due === this.#tick) due++;
    let level = 0;
    while (slotsAhead(level, due, this.#tick) >= SLOTS) {
      if (level === LEVELS - 1) {
        // Beyond the wheel: as far as it goes, and on from there.
        due = (Math.floor(this.#tick / SLOT_TICKS[level]!) + SLOTS - 1) * SLOT_TICKS[level]!;
        break;
      }
      level++;
    }
    const slot = slotAt(level, Math.floor(due / SLOT_TICKS[level]!));
    const tail = this.#tail[slot]!;
    this.#slotOf.set(id, slot);
    this.#next.set(id, 0);
    this.#previous.set(id, tail);
    if (tail === 0) this.#head[slot] = id + 1;
    else this.#next.set(tail - 1, id + 1);
    this.#tail[slot] = id + 1;
    this.#count[slot]!++;
    this.#levelCount[level]!++;
  }

  #unlink(id: number): void {
    const slot = this.#slotOf.get(id);
    const next = this.#next.get(id);
    const previous = this.#previous.get(id);
    if (previous === 0) this.#head[slot] = next;
    else this.#next.set(previous - 1, next);
    if (next === 0) this.#tail[slot] = previous;
    else this.#previous.set(next - 1, previous);
    this.#slotOf.set(id, 0);
    this.#count[slot]!--;
    this.#levelCount[((slot - 1) / SLOTS) | 0]!--;
  }
}

function slotsAhead(level: number, due: number, tick: number): number {
  const ticks = SLOT_TICKS[level]!;
  return Math.floor(due / ticks) - Math.floor(tick / ticks);
}

function slotAt(level: number, index: number): number {
  // Not `index & 127`: ticks outgrow 32 bits after 25 days.
  return 1 + level * SLOTS + (index - Math.floor(index / SLOTS) * SLOTS);
}

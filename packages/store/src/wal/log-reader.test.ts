import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Random } from '@megaplane/base/random';
import { trials } from '@megaplane/base/trials.sim';
import { newPage } from '../mvcc/ranges.ts';
import { SimulatedStore } from '../simulation/simulated-store.sim.ts';
import type { Store } from '../mvcc/store.ts';

const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
const numRuns = isLong ? 100_000 : 300;
const OPTIONS = { durability: 'fsync', prefixes: [] } as const;
const WRITES = 120;

function settle(sim: SimulatedStore): void {
  for (let i = 0; i < 4; i++) {
    sim.endTurn();
    sim.thread.step();
    sim.thread.hear();
  }
}

function put(store: Store, number: number): void {
  const bytes = Buffer.from(`key${number % 7}${`value${number}`.padEnd(number % 40, '.')}`);
  store.putIf(bytes, 0, 4, -1, bytes, 4, bytes.length, 0);
}

/** Everything that lives, as text. */
function dump(store: Store): string {
  const page = newPage();
  store.range(Buffer.from([0, 0]), 0, 1, 1, 2, 0, 0, page);
  const rows = [...page.refs.subarray(0, page.length)].map((ref) => {
    const bytes = store.record(ref);
    const key = bytes.latin1Slice(store.keyAt(ref), store.keyTo(ref));
    const value = bytes.latin1Slice(store.valueAt(ref), store.valueTo(ref));
    return `${key}=${value}@${store.modRevision(ref)}`;
  });
  return rows.join(' ');
}

/** A log of several segments, and what the store was after each write. */
function makeLog(): { files: Map<string, Buffer>; states: Map<string, number> } {
  const clock = { nowMs: 1 };
  const sim = new SimulatedStore(OPTIONS, new Map(), new Random(1), clock, 1);
  const states = new Map([['', 0]]);
  for (let number = 1; number <= WRITES; number++) {
    put(sim.store, number);
    settle(sim);
    states.set(dump(sim.store), number);
    if (number === 40) {
      sim.snapshot();
      for (let i = 0; i < 8; i++) {
        sim.tick(++clock.nowMs);
        settle(sim);
      }
    }
  }
  return { files: sim.disk.survivors(false), states };
}

const damage = fc.oneof(
  fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), bit: fc.nat(7) }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('zero' as const), at: fc.nat(), size: fc.nat(600) }),
  fc.record({ kind: fc.constant('move' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({
    kind: fc.constant('noise' as const),
    bytes: fc.uint8Array({ maxLength: 200, size: 'max' }),
  }),
);
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never;

function harmed(whole: Buffer, what: Damage): Buffer {
  const bytes = Buffer.from(whole);
  if (what.kind === 'noise') return Buffer.concat([bytes, what.bytes]);
  const at = what.at % bytes.length;
  if (what.kind === 'flip') bytes[at] = (bytes[at] ?? 0) ^ (1 << what.bit);
  if (what.kind === 'cut') return bytes.subarray(0, at);
  if (what.kind === 'zero') bytes.fill(0, at, Math.min(bytes.length, at + what.size));
  if (what.kind === 'move') bytes.copy(bytes, what.to % bytes.length, at, at + 512);
  return bytes;
}

test('a harmed log is refused with its place, or read up to the harm, never read wrong', () => {
  const { files, states } = makeLog();
  const names = [...files.keys()].filter((name) => /\.mp[ls]$/.test(name));
  assert(names.length > 2, names.join(' '));
  let refused = 0;
  let read = 0;
  fc.assert(
    fc.property(fc.constantFrom(...names), damage, (name, what) => {
      const copy = new Map(files);
      copy.set(name, harmed(files.get(name) ?? Buffer.alloc(0), what));
      let sim: SimulatedStore;
      try {
        sim = new SimulatedStore(OPTIONS, copy, new Random(2), { nowMs: 1 }, 1);
      } catch (error) {
        const { message } = error as Error;
        assert.match(message, /\.mp[ls] (is damaged at byte \d+: |was written by a newer version)/);
        refused++;
        return;
      }
      const number = states.get(dump(sim.store));
      assert(number !== undefined, `never was: ${dump(sim.store)}`);
      // It goes on from there.
      put(sim.store, number + 1);
      settle(sim);
      assert(!sim.store.isPending);
      read++;
    }),
    trials(numRuns),
  );
  assert(refused > 0 && read > 0, `${refused} refused, ${read} read`);
});

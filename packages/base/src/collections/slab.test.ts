import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Random } from '../random/random.ts';
import { Slab } from './slab.ts';
import { CLASS_BLOCKS, CLASS_BYTES, CLASS_OF_UNITS, CLASS_PAGES } from './slab-classes.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === '1' ? 2000 : 40;
const REGION = 2 ** 20;

/** A slab beside a list of blocks, each filled with bytes that only it has. */
class Pair {
  readonly slab: Slab;
  readonly blocks: { ref: number; readonly size: number; readonly mark: number }[] = [];
  #mark = 0;

  constructor(bytesMax: number, firstRegionBytes: number = REGION) {
    this.slab = new Slab({ regionBytes: REGION, firstRegionBytes, bytesMax });
  }

  allocate(size: number): boolean {
    const ref = this.slab.allocate(size);
    if (ref === 0) return false;
    const mark = (this.#mark = (this.#mark + 1) % 251);
    const start = this.slab.startAt(ref);
    assert.ok(this.slab.capacity(ref) >= size);
    this.slab.bytesAt(ref).fill(mark, start, start + this.slab.capacity(ref));
    this.blocks.push({ ref, size, mark });
    return true;
  }

  free(index: number): void {
    const block = this.blocks[index % this.blocks.length];
    if (block === undefined) return;
    this.blocks[index % this.blocks.length] = this.blocks.at(-1) ?? block;
    this.blocks.pop();
    this.slab.free(block.ref);
  }

  compact(bytes: number): number {
    const byRef = new Map(this.blocks.map((block) => [block.ref, block]));
    return this.slab.compactStep(bytes, (from, to) => {
      const block = byRef.get(from);
      assert.ok(block, 'a block moved that nobody holds, or moved twice');
      byRef.delete(from);
      block.ref = to;
      byRef.set(to, block);
    });
  }

  verify(): void {
    let live = 0;
    for (const { ref, size, mark } of this.blocks) {
      const start = this.slab.startAt(ref);
      const capacity = this.slab.capacity(ref);
      live += capacity;
      const bytes = this.slab.bytesAt(ref).subarray(start, start + size);
      assert.ok(bytes.length === size && bytes.every((byte) => byte === mark), 'bytes changed');
      assert.equal(this.slab.wordsAt(ref).byteOffset, 0);
      assert.equal(this.slab.wordAt(ref) * 4, start);
    }
    assert.equal(this.slab.liveBytes, live);
    assert.equal(this.slab.liveBlocks, this.blocks.length);
    assert.equal(this.slab.freeBytes, this.slab.reservedBytes - live);
    assert.ok(live <= this.slab.reservedBytes);
  }
}

test('blocks keep their bytes through any use, at the memory limit too', () => {
  const size = fc.oneof(
    fc.nat(64),
    fc.nat(2000),
    fc.integer({ min: 10_000, max: 20_000 }),
    fc.integer({ min: 100_000, max: REGION }),
  );
  const operation = fc.record({
    kind: fc.constantFrom('allocate', 'allocate', 'allocate', 'free', 'free', 'compact'),
    size,
    index: fc.nat(),
  });
  const first = fc.constantFrom(REGION / 8, REGION / 2, REGION);
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 150 }), first, (operations, firstBytes) => {
      const pair = new Pair(4 * REGION, firstBytes);
      for (const { kind, size, index } of operations) {
        if (kind === 'allocate') pair.allocate(size);
        else if (kind === 'free') pair.free(index);
        else pair.compact(50_000);
      }
      pair.verify();
      while (pair.blocks.length > 0) pair.free(0);
      while (pair.compact(1e6) > 0);
      assert.ok(pair.slab.reservedBytes <= REGION, 'empty regions went back');
      assert.equal(pair.slab.liveBytes, 0);
    }),
    { numRuns: RUNS },
  );
});

test('compaction in slices gives back what holes took, while the slab is in use', () => {
  const random = new Random(4);
  const pair = new Pair(64 * REGION);
  const sizeOf = (): number => 100 + random.below(900);
  for (let i = 0; i < 20_000; i++) pair.allocate(sizeOf());
  for (let i = 0; i < 15_000; i++) pair.free(random.below(2 ** 30));
  const before = pair.slab.reservedBytes;
  let slices = 0;
  while (pair.compact(64_000) > 0) {
    slices++;
    for (let i = 0; i < 20; i++) {
      pair.free(random.below(2 ** 30));
      pair.allocate(sizeOf());
    }
    assert.ok(slices < 1000, 'compaction comes to an end');
  }
  pair.verify();
  assert.ok(slices > 20, `${slices} slices`);
  assert.ok(pair.slab.reservedBytes < before / 2, `${pair.slab.reservedBytes} of ${before}`);
  assert.ok(pair.slab.liveBytes > pair.slab.reservedBytes * 0.6);
});

test('at the limit a slab refuses, except what is urgent, and serves again after a free', () => {
  const slab = new Slab({ regionBytes: REGION, bytesMax: REGION, urgentBytes: REGION });
  const refs: number[] = [];
  for (let ref = slab.allocate(5000); ref !== 0; ref = slab.allocate(5000)) refs.push(ref);
  assert.ok(refs.length > 170, `${refs.length} blocks`);
  const urgent = slab.allocate(5000, true);
  assert.notEqual(urgent, 0);
  assert.equal(slab.reservedBytes, 2 * REGION);
  slab.free(refs[0] ?? 0);
  assert.equal(slab.allocate(5000), refs[0]);
  assert.equal(slab.allocate(slab.blockBytesMax + 1), 0);
  assert.equal(slab.store(Buffer.from('abc'), 1, 3, true) !== 0, true);
});

test('a first region begins short and doubles until it is whole, no more once it went back', () => {
  const pair = new Pair(3 * REGION, REGION / 8);
  const lengths = new Set<number>();
  while (pair.allocate(1000)) lengths.add(pair.slab.reservedBytes);
  const expected = [1, 2, 4, 8, 16, 24].map((eighths) => (eighths * REGION) / 8);
  assert.deepEqual([...lengths], expected);
  pair.verify();
  for (let index = pair.blocks.length - 1; index >= 0; index--) {
    const region = Math.floor(((pair.blocks[index]?.ref ?? 0) * 8) / REGION);
    if (region === 0 || (region === 1 && index % 2 === 0)) pair.free(index);
  }
  while (pair.compact(1e6) > 0);
  pair.verify();
  assert.equal(pair.slab.reservedBytes, 2 * REGION);
  while (pair.allocate(1000));
  pair.verify();
  assert.equal(pair.slab.reservedBytes, 3 * REGION);
  assert.throws(() => new Pair(REGION, REGION / 16), /firstRegionBytes/);
});

test('pages that were given back serve blocks of any other size', () => {
  const slab = new Slab({ regionBytes: REGION, bytesMax: 2 * REGION });
  const fill = (size: number): number[] => {
    const refs: number[] = [];
    for (let ref = slab.allocate(size); ref !== 0; ref = slab.allocate(size)) refs.push(ref);
    return refs;
  };
  for (const size of [1000, 60_000, 24, 9000, 1000]) {
    const refs = fill(size);
    assert.ok(refs.length * size > 2 * REGION * 0.85, `${refs.length} blocks of ${size} bytes`);
    for (const ref of refs) slab.free(ref);
  }
});

test('blocks that are freed while their span is being emptied do not confuse compaction', () => {
  const pair = new Pair(8 * REGION);
  while (pair.slab.reservedBytes <= 2 * REGION) pair.allocate(1000);
  // The last region: a few blocks in each of two spans, so that it is the one to be emptied.
  for (let i = 0; i < 150; i++) pair.allocate(1000);
  for (let index = 0; index < pair.blocks.length; index++) {
    if ((pair.blocks[index]?.ref ?? 0) * 8 < 2 * REGION && index % 2 === 0) pair.free(index);
  }
  const last = pair.blocks.filter(({ ref }) => ref * 8 >= 2 * REGION);
  const firstSpan = Math.min(...last.map(({ ref }) => ref)) + 8192;
  assert.ok(pair.compact(10_000) > 0);
  for (let index = pair.blocks.length - 1; index >= 0; index--) {
    const ref = pair.blocks[index]?.ref ?? 0;
    if (ref * 8 >= 2 * REGION && ref < firstSpan) pair.free(index);
  }
  while (pair.compact(10_000) > 0);
  pair.verify();
  assert.ok(pair.slab.reservedBytes <= 2 * REGION);
});

test('a reserve is taken at once and kept', () => {
  const slab = new Slab({ regionBytes: REGION, bytesMax: 8 * REGION });
  slab.reserve(3.5 * REGION);
  assert.equal(slab.reservedBytes, 3 * REGION);
  const refs = Array.from({ length: 500 }, () => slab.allocate(10_000));
  assert.ok(slab.reservedBytes > 4 * REGION);
  for (const ref of refs) slab.free(ref);
  while (slab.compactStep(1e6, () => assert.fail('a block moved that is not there')) > 0);
  assert.ok(slab.reservedBytes >= 3 * REGION && slab.reservedBytes <= 4 * REGION);
  slab.reserve(100 * REGION);
  assert.equal(slab.reservedBytes, 8 * REGION);
});

test('freeing twice, or what was never given out, is a bug that shows', () => {
  const slab = new Slab({ regionBytes: REGION });
  const ref = slab.allocate(100_000);
  slab.free(ref);
  assert.throws(() => slab.free(ref), /names nothing/);
  const small = slab.allocate(24);
  assert.throws(() => slab.free(small + 1), /inside a block/);
  assert.throws(() => slab.free(small + 3), /not in use/);
  assert.throws(() => slab.free(0), /names nothing/);
});

test('size classes rise, waste little and fit their spans', () => {
  for (let sizeClass = 0; sizeClass < CLASS_BYTES.length; sizeClass++) {
    const size = CLASS_BYTES[sizeClass] ?? 0;
    const spanBytes = (CLASS_PAGES[sizeClass] ?? 0) * 8192;
    assert.ok(size > (CLASS_BYTES[sizeClass - 1] ?? 0) && size % 8 === 0);
    assert.ok((CLASS_BLOCKS[sizeClass] ?? 0) * size > spanBytes * 0.96, `tail of class ${size}`);
  }
  for (let size = 128; size <= 16_384; size++) {
    const block = CLASS_BYTES[CLASS_OF_UNITS[(size + 7) >>> 3] ?? 0] ?? 0;
    assert.ok(block >= size && block < size * 1.16 + 8, `${size} in ${block}`);
  }
});

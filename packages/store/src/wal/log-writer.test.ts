import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { DiskTimes } from '../disk-times.ts';
import { LogWriter } from './log-writer.ts';
import { SimulatedDisk } from '../simulation/simulated-disk.sim.ts';

interface Bed {
  readonly disk: SimulatedDisk;
  readonly writer: LogWriter;
  /** Descriptors by segment. */
  readonly open: Map<number, number>;
  held: number;
  flushesWell: boolean;
}

function bed(): Bed {
  const disk = new SimulatedDisk(new Random(1));
  const open = new Map<number, number>();
  const writer = new LogWriter({
    disk,
    clusterId: Buffer.alloc(8),
    memberId: Buffer.alloc(8),
    segment: 7,
    chain: 0,
    times: new DiskTimes(),
    nowMs: () => 0,
    segmentBytes: 1,
    flushedElsewhere: () => 0,
    flushesWell: () => made.flushesWell,
    heldElsewhere: () => made.held,
    onSegment: (fd, segment) => open.set(segment, fd),
    onSnapshot: () => assert.fail('there is no snapshot'),
  });
  const made: Bed = { disk, writer, open, held: 7, flushesWell: true };
  return made;
}

test('a segment stays open for who may be flushing it, however many have begun since', () => {
  const made = bed();
  const { disk, writer, open } = made;
  const flush = (segment: number): void => disk.flush(open.get(segment) ?? -1);
  writer.start(1);
  for (let segment = 8; segment <= 12; segment++) writer.cut(segment);
  for (let segment = 7; segment <= 12; segment++) flush(segment);
  made.held = 11;
  writer.cut(13);
  for (const segment of [7, 8, 9, 10]) assert.throws(() => flush(segment), /EBADF/);
  for (const segment of [11, 12, 13]) flush(segment);
});

test('where a flush beside it failed no segment begins, and nothing is said to be flushed', () => {
  const made = bed();
  const { disk, writer } = made;
  writer.start(1);
  made.flushesWell = false;
  assert.throws(() => writer.cut(2), /a flush beside this one has failed/);
  assert.throws(() => writer.flush(), /a flush beside this one has failed/);
  assert.deepEqual(disk.list(), ['log-00000007.mpl']);
});

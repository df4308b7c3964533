/**
 * Records of 500 bytes through a ring of 64 MiB: appended, read, dropped as the budget asks.
 *
 *     node packages/base/src/collections/ring.bench.ts
 */
import { ByteRing } from './ring.ts';

const RECORDS = 2_000_000;
const RUNS = 3;
const record = new Uint8Array(500).fill(7);

for (let run = 0; run < RUNS; run++) {
  const ring = new ByteRing({ bytesMax: 64 * 2 ** 20 });
  let sum = 0;
  const start = process.cpuUsage();
  for (let index = 0; index < RECORDS; index++) {
    const sequence = ring.append(record, 0, record.length);
    sum += ring.bytesAt(sequence)[ring.startAt(sequence)] ?? 0;
  }
  const { user, system } = process.cpuUsage(start);
  const rate = RECORDS / ((user + system) / 1e6);
  process.stdout.write(`${(rate / 1e6).toFixed(2)} M records per CPU second (${sum})\n`);
}

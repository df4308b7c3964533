/**
 * Reading and writing an etcd put request: a key of 50 bytes, a value of 1 KB and a lease.
 *
 *     node packages/wire/src/protobuf/protobuf.bench.ts
 */
import { ProtobufReader } from './protobuf.ts';
import { writeBytesField, writeVarint64Field } from './protobuf-write.ts';

const ROUNDS = 5_000_000;
const KEY = Buffer.from('/registry/leases/kube-node-lease/node-000000000001');
const VALUE = Buffer.alloc(1024, 'v');
const out = Buffer.alloc(2048);
const reader = new ProtobufReader();

function encode(): number {
  let at = writeBytesField(out, 0, 1, KEY, 0, KEY.length);
  at = writeBytesField(out, at, 2, VALUE, 0, VALUE.length);
  return writeVarint64Field(out, at, 3, 0x89abcdef, 0x01234567);
}

function decode(end: number): number {
  reader.reset(out, 0, end);
  let sum = 0;
  while (reader.next()) {
    if (reader.field <= 2) {
      reader.chunk();
      sum += reader.chunkEnd - reader.chunkStart;
    } else {
      reader.varint();
      sum += reader.low;
    }
  }
  return sum;
}

function measure(name: string, work: () => number): void {
  let sum = 0;
  for (let i = 0; i < ROUNDS / 10; i++) sum += work();
  const start = process.cpuUsage();
  for (let i = 0; i < ROUNDS; i++) sum += work();
  const { user, system } = process.cpuUsage(start);
  const perSecond = ROUNDS / (user + system);
  console.log(`${name}: ${perSecond.toFixed(1)} M per CPU s (check ${sum})`);
}

const length = encode();
measure('encode', encode);
measure('decode', () => decode(length));

/** What a client reads in the answers of the KV service: the revision, and the records. */
import { ProtobufReader } from '@megaplane/wire/protobuf';

export interface Answer {
  readonly revision: number;
  /** `key mod create/version=value`. */
  readonly kvs: readonly string[];
}

/** Reads a RangeResponse; of others the header counts. */
export function readAnswer(bytes: Buffer): Answer {
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  let revision = 0;
  const kvs: string[] = [];
  while (reader.next()) {
    if (reader.wireType !== 2) {
      reader.skip();
      continue;
    }
    reader.chunk();
    const content = bytes.subarray(reader.chunkStart, reader.chunkEnd);
    if (reader.field === 1) revision = numbersOf(content).get(3) ?? 0;
    if (reader.field === 2) kvs.push(showKeyValue(content));
  }
  return { revision, kvs };
}

function numbersOf(bytes: Buffer): Map<number, number> {
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  const numbers = new Map<number, number>();
  while (reader.next()) {
    if (reader.wireType === 0) numbers.set(reader.field, reader.int64());
    else reader.skip();
  }
  return numbers;
}

function showKeyValue(bytes: Buffer): string {
  const numbers = numbersOf(bytes);
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  let key = '';
  let value = '';
  while (reader.next()) {
    if (reader.wireType !== 2) {
      reader.skip();
      continue;
    }
    reader.chunk();
    const text = bytes.latin1Slice(reader.chunkStart, reader.chunkEnd);
    if (reader.field === 1) key = text;
    else value = text;
  }
  return `${key} ${numbers.get(3)} ${numbers.get(2)}/${numbers.get(4)}=${value}`;
}

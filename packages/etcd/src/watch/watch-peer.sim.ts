/** For tests: a WatchResponse in readable form. */
import { ProtobufReader } from '@megaplane/wire/protobuf';

export interface Shown {
  readonly revision: number;
  readonly id: string;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly compact: number;
  readonly reason: string;
  readonly fragment: boolean;
  /** `PUT key mod/create/version/lease=value [was mod=value]`, one each. */
  readonly events: readonly string[];
}

function signed(reader: ProtobufReader): string {
  const bits = (BigInt(reader.high >>> 0) << 32n) | BigInt(reader.low >>> 0);
  return String(BigInt.asIntN(64, bits));
}

export function showWatch(bytes: Buffer, start: number, end: number): Shown {
  const reader = new ProtobufReader().reset(bytes, start, end);
  const shown = {
    ...{ revision: 0, id: '0', created: false, canceled: false, compact: 0, reason: '' },
    ...{ fragment: false, events: [] as string[] },
  };
  while (reader.next()) {
    const { field } = reader;
    if (reader.wireType === 0) {
      const value = reader.int64();
      if (field === 2) shown.id = signed(reader);
      if (field === 3) shown.created = value !== 0;
      if (field === 4) shown.canceled = value !== 0;
      if (field === 5) shown.compact = value;
      if (field === 7) shown.fragment = value !== 0;
      continue;
    }
    reader.chunk();
    const { chunkStart, chunkEnd } = reader;
    if (field === 1) shown.revision = headerRevision(bytes, chunkStart, chunkEnd);
    if (field === 6) shown.reason = bytes.toString('utf8', chunkStart, chunkEnd);
    if (field === 11) shown.events.push(showEvent(bytes, chunkStart, chunkEnd));
  }
  return shown;
}

function headerRevision(bytes: Buffer, start: number, end: number): number {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let revision = 0;
  while (reader.next()) {
    if (reader.field === 3) revision = reader.int64();
    else reader.skip();
  }
  return revision;
}

function showEvent(bytes: Buffer, start: number, end: number): string {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let type = 'PUT';
  let kv = '';
  let previous = '';
  while (reader.next()) {
    if (reader.wireType === 0) {
      if (reader.int64() === 1) type = 'DELETE';
      continue;
    }
    reader.chunk();
    const shown = showKeyValue(bytes, reader.chunkStart, reader.chunkEnd);
    if (reader.field === 2) kv = shown;
    else previous = ` was ${shown}`;
  }
  return `${type} ${kv}${previous}`;
}

function showKeyValue(bytes: Buffer, start: number, end: number): string {
  const reader = new ProtobufReader().reset(bytes, start, end);
  const numbers = new Map<number, number>();
  let key = '';
  let value = '';
  while (reader.next()) {
    if (reader.wireType === 0) {
      numbers.set(reader.field, reader.int64());
      continue;
    }
    reader.chunk();
    const text = bytes.latin1Slice(reader.chunkStart, reader.chunkEnd);
    if (reader.field === 1) key = text;
    else value = text;
  }
  const [create = 0, mod = 0, version = 0, lease = 0] = [2, 3, 4, 6].map((n) => numbers.get(n));
  return `${key} ${mod} ${create}/${version}/${lease}=${value}`;
}

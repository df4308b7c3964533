// shell: the work behind `megaplane store hand-over`
/** Asks the leader of a group to let another member lead. */
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { writeVarint64Field } from '@megaplane/wire/protobuf-write';
import { type RemoteFlags, print, remoteOf } from './store-tools.ts';

const EMPTY = Buffer.alloc(0);

interface HandOverFlags extends RemoteFlags {
  readonly output?: 'text' | 'json';
  readonly to?: string;
}

/** An id of 64 bits, as hexadecimal digits. */
type Id = string;

interface Listed {
  readonly id: Id;
  readonly name: string;
}

/** Throws what is wrong where no member leads, or the one asked for is not there. */
export async function handOver(flags: HandOverFlags): Promise<number> {
  const { endpoints = 'http://127.0.0.1:2379', to } = flags;
  for (const { url } of parseEndpoints('--endpoints', endpoints)) {
    const remote = await remoteOf(flags, url);
    try {
      const { own, leader } = statusOf(await remote.call('Maintenance/Status', EMPTY));
      if (own !== leader) continue;
      const members = membersOf(await remote.call('Cluster/MemberList', EMPTY));
      const target = choose(members, own, to);
      await remote.call('Maintenance/MoveLeader', encodeId(target.id));
      const from = members.find(({ id }) => id === own)?.name ?? own;
      print(flags, { from, to: target.name });
      return 0;
    } finally {
      remote.close();
    }
  }
  throw new Error(`--endpoints: none of ${endpoints} leads; name all members`);
}

function choose(members: readonly Listed[], own: Id, to: string | undefined): Listed {
  const others = members.filter(({ id }) => id !== own);
  const [first] = others;
  if (first === undefined) throw new Error('the group has no other member');
  if (to === undefined) return first;
  const found = others.find(({ name }) => name === to);
  if (found !== undefined) return found;
  throw new Error(`--to: ${to} is none of ${others.map(({ name }) => name).join(', ')}`);
}

function idOf(reader: ProtobufReader): Id {
  reader.varint();
  const [high, low] = [reader.high >>> 0, reader.low >>> 0];
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}

function encodeId(id: Id): Buffer {
  const bytes = Buffer.from(id, 'hex');
  const out = Buffer.alloc(16);
  const at = writeVarint64Field(out, 0, 1, bytes.readUInt32BE(4), bytes.readUInt32BE(0));
  return out.subarray(0, at);
}

function statusOf(answer: Buffer): { readonly own: Id; readonly leader: Id } {
  const reader = new ProtobufReader().reset(answer, 0, answer.length);
  let own = '';
  let leader = '';
  while (reader.next()) {
    if (reader.field === 1) {
      reader.chunk();
      const header = new ProtobufReader().reset(answer, reader.chunkStart, reader.chunkEnd);
      while (header.next()) {
        if (header.field === 2) own = idOf(header);
        else header.skip();
      }
    } else if (reader.field === 4) leader = idOf(reader);
    else reader.skip();
  }
  return { own, leader };
}

function membersOf(answer: Buffer): Listed[] {
  const reader = new ProtobufReader().reset(answer, 0, answer.length);
  const members: Listed[] = [];
  while (reader.next()) {
    if (reader.field !== 2) {
      reader.skip();
      continue;
    }
    reader.chunk();
    const one = new ProtobufReader().reset(answer, reader.chunkStart, reader.chunkEnd);
    let id = '';
    let name = '';
    while (one.next()) {
      if (one.field === 1) id = idOf(one);
      else if (one.field === 2) name = one.text();
      else one.skip();
    }
    members.push({ id, name });
  }
  return members;
}

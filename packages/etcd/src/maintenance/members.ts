// data plane: the Cluster service
/**
 * What is wrong with a change of members is said in etcd's words. A right one is refused: a store
 * on a file is its own only member, and those on a journal come by themselves; only what is gone
 * for good can be taken off their list.
 */
import type { GrpcMethods, InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeTextField,
  writeVarint64Field,
} from '@megaplane/wire/protobuf-write';
import { type EtcdContext, unlessMalformed } from '../call/context.ts';
import type { MemberInfo as GroupMember } from '../call/router.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';

export interface MemberInfo {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly peerUrls: readonly string[];
}

/** Writes a member's id as a field. */
export function writeId(id: Buffer, out: Buffer, at: number, field: number): number {
  return writeVarint64Field(out, at, field, id.readUInt32BE(4), id.readUInt32BE(0));
}

function writeMember(out: Buffer, from: number, member: GroupMember): number {
  const { id, name, peerUrls, clientUrls } = member;
  const start = openMessage(out, from, 2);
  let at = writeId(id, out, start, 1);
  at = writeTextField(out, at, 2, name);
  for (const url of peerUrls) at = writeTextField(out, at, 3, url);
  for (const url of clientUrls) at = writeTextField(out, at, 4, url);
  return closeMessage(out, start, at);
}

function memberListHandler(context: EtcdContext, member: MemberInfo): InPlaceHandler {
  return (_bytes, _start, _end, out, offset, call) => {
    let at = context.writeHeader(out, offset, 0);
    if (context.group !== null) {
      for (const one of context.group.members()) at = writeMember(out, at, one);
      return at;
    }
    const start = openMessage(out, at, 2);
    at = writeId(context.memberId, out, start, 1);
    if (member.name !== '') at = writeTextField(out, at, 2, member.name);
    for (const url of member.peerUrls) at = writeTextField(out, at, 3, url);
    for (const url of member.clientUrls) at = writeTextField(out, at, 4, url);
    context.guard(call.connection);
    return closeMessage(out, start, at);
  };
}

/** A request about one member: its id, and addresses of peers. */
interface MemberChange {
  readonly id: Buffer;
  readonly isOwn: boolean;
  readonly urls: readonly string[];
}

function decode(
  context: EtcdContext,
  bytes: Buffer,
  start: number,
  end: number,
  urlField: number,
): MemberChange | null {
  const reader = new ProtobufReader().reset(bytes, start, end);
  const { memberId } = context;
  const urls: string[] = [];
  const id = Buffer.alloc(8);
  let isOwn = false;
  while (reader.next()) {
    if (reader.wireType === WIRE_BYTES && reader.field === urlField) {
      reader.chunk();
      urls.push(bytes.toString('utf8', reader.chunkStart, reader.chunkEnd));
    } else if (reader.wireType === 0 && reader.field === 1) {
      reader.varint();
      const isHigh = reader.high === memberId.readUInt32BE(0);
      isOwn = isHigh && reader.low === memberId.readUInt32BE(4);
      id.writeUInt32BE(reader.high, 0);
      id.writeUInt32BE(reader.low, 4);
    } else reader.skip();
  }
  return reader.failure === FAILURE_NONE ? { id, isOwn, urls } : null;
}

/** etcd's rule of an address: a scheme, a host with a port, and no path. */
function isPeerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:', 'unix:', 'unixs:'].includes(url.protocol)) return false;
  return /^\w+:\/\/[^/]+:\d+$/.test(text);
}

/** Answers every request of a method with the failure that fits it. */
function refuse(
  context: EtcdContext,
  urlField: number,
  why: (change: MemberChange) => EtcdFailure,
): InPlaceHandler {
  return (bytes, start, end, _out, _offset, call) => {
    const change = decode(context, bytes, start, end, urlField);
    return context.fail(call, change === null ? ETCD.malformed : why(change));
  };
}

function areUrls({ urls }: Pick<MemberChange, 'urls'>): boolean {
  return urls.length > 0 && urls.every(isPeerUrl);
}

/** Are the addresses of a MemberAddRequest good, so that it matters who sends it? */
export function hasMemberUrls(bytes: Buffer, start: number, end: number): boolean {
  const urls = decodeUrls(bytes, start, end);
  return urls !== null && areUrls({ urls });
}

function decodeUrls(bytes: Buffer, start: number, end: number): string[] | null {
  const reader = new ProtobufReader().reset(bytes, start, end);
  const urls: string[] = [];
  while (reader.next()) {
    if (reader.wireType === WIRE_BYTES && reader.field === 1) urls.push(reader.text());
    else reader.skip();
  }
  return reader.failure === FAILURE_NONE ? urls : null;
}

type Request = Parameters<InPlaceHandler>;

/** Where an answer goes. */
function behind([, , , out, offset, call]: Request): [Request[3], Request[4], Request[5]] {
  return [out, offset, call];
}

export function registerMembers(
  methods: GrpcMethods,
  context: EtcdContext,
  member: MemberInfo,
): void {
  const service = '/etcdserverpb.Cluster';
  const list = unlessMalformed(context, memberListHandler(context, member));
  methods.unary(`${service}/MemberList`, list);
  methods.unary(
    `${service}/MemberAdd`,
    refuse(context, 1, (change) => {
      if (!areUrls(change)) return ETCD.memberUrls;
      const isOwn = change.urls.some((url) => member.peerUrls.includes(url));
      return isOwn ? ETCD.peerUrlsExist : ETCD.notSupported;
    }),
  );
  const refusal = refuse(context, 0, ({ isOwn }) =>
    isOwn ? ETCD.notEnoughMembers : ETCD.memberNotFound,
  );
  methods.unary(`${service}/MemberRemove`, (...request) => {
    const [bytes, start, end] = request;
    const change = decode(context, bytes, start, end, 0);
    const isRemoved = change !== null && !change.isOwn && context.group?.remove(change.id) === true;
    return isRemoved ? list(bytes, start, start, ...behind(request)) : refusal(...request);
  });
  methods.unary(
    `${service}/MemberUpdate`,
    refuse(context, 2, ({ isOwn }) => (isOwn ? ETCD.notSupported : ETCD.memberNotFound)),
  );
  methods.unary(
    `${service}/MemberPromote`,
    refuse(context, 0, ({ isOwn }) => (isOwn ? ETCD.notLearner : ETCD.memberNotFound)),
  );
}

/**
 * Frames between a parent (the root, or a relay) and a child (a relay, or a shard) on the one
 * stream that the child opens (`sharding.proto`). A relay looks at the numbers of a frame; pods and
 * changes pass as the bytes that they are.
 */
import { chunkOf, readRecord, RecordWriter } from './record.ts';

/** From the root down. */
export interface DownFrame {
  /** The shard that it is for; empty: all. */
  readonly to: string;
  /** A change of the cluster (`state.ts`); null: none. */
  readonly state: Uint8Array | null;
  /** A round (`rounds.ts`), and its number, from 1 on; null: none. */
  readonly round: Uint8Array | null;
  readonly number: number;
}

/** Who a child is: its first frame. A relay says so again when shards join or leave it. */
export interface Hello {
  /** Shards that it is or leads to. */
  readonly members: readonly string[];
  /** Of each of them a text that no other process of the name has: one that comes again knows
   *  nothing. Left out where no shard ever comes again. */
  readonly incarnations?: readonly string[];
  readonly version: string;
  /** Of the configuration that decides; those of all must be equal. */
  readonly configHash: string;
  /** The configuration itself in JSON, to name a difference by. */
  readonly configText?: string;
}

/** From a child up: who it is, or the answer to a round. */
export interface UpFrame {
  readonly hello: Hello | null;
  readonly number: number;
  readonly reply: Uint8Array | null;
}

/** The method by which children join. */
export const JOIN_PATH = '/megaplane.scheduler.v1.Shards/Join';
/** Octets of one frame; a pod that does not fit is no pod of an API server. */
export const FRAME_BYTES_MAX: number = 64 * 1024 * 1024;
/** Shards that one child may lead to. */
export const MEMBERS_MAX = 4096;

export function encodeDown({ to, state, round, number }: DownFrame): Buffer {
  const record = new RecordWriter();
  if (to !== '') record.text(1, to);
  if (state !== null) record.bytes(2, state);
  if (round !== null) record.number(3, number).bytes(4, round);
  return record.done();
}

/** Throws where the frame is malformed. */
export function decodeDown(bytes: Uint8Array): DownFrame {
  let to = '';
  let number = 0;
  let state: Uint8Array | null = null;
  let round: Uint8Array | null = null;
  readRecord(bytes, (reader) => {
    if (reader.field === 1) to = reader.text();
    else if (reader.field === 2) state = chunkOf(reader);
    else if (reader.field === 3) number = reader.uint64();
    else if (reader.field === 4) round = chunkOf(reader);
    else return false;
    return true;
  });
  return { to, state, round, number };
}

export function encodeUp({ hello, number, reply }: UpFrame): Buffer {
  const record = new RecordWriter();
  if (hello !== null) {
    record.message(1, (inner) => {
      inner.text(1, hello.version).text(2, hello.configHash);
      for (const member of hello.members) inner.text(3, member);
      for (const one of hello.incarnations ?? []) inner.text(4, one);
      if (hello.configText !== undefined) inner.text(5, hello.configText);
    });
  }
  if (reply !== null) record.number(2, number).bytes(3, reply);
  return record.done();
}

/** Throws where the frame is malformed. */
export function decodeUp(bytes: Uint8Array): UpFrame {
  let hello: Hello | null = null;
  let number = 0;
  let reply: Uint8Array | null = null;
  readRecord(bytes, (reader) => {
    if (reader.field === 1) hello = readHello(chunkOf(reader));
    else if (reader.field === 2) number = reader.uint64();
    else if (reader.field === 3) reply = chunkOf(reader);
    else return false;
    return true;
  });
  return { hello, number, reply };
}

function readHello(bytes: Uint8Array): Hello {
  let version = '';
  let configHash = '';
  let configText: string | undefined;
  const members: string[] = [];
  const incarnations: string[] = [];
  readRecord(bytes, (reader) => {
    if (reader.field === 1) version = reader.text();
    else if (reader.field === 2) configHash = reader.text();
    else if (reader.field === 3) members.push(reader.text());
    else if (reader.field === 4) incarnations.push(reader.text());
    else if (reader.field === 5) configText = reader.text();
    else return false;
    if (Math.max(members.length, incarnations.length) > MEMBERS_MAX)
      throw new Error(`more than ${MEMBERS_MAX} members`);
    return true;
  });
  return {
    ...{ version, configHash, members },
    ...(incarnations.length === 0 ? {} : { incarnations }),
    ...(configText === undefined ? {} : { configText }),
  };
}

/** What the root tells shards of the cluster, change by change, before it asks about it. */
import type { ProtobufReader } from '@megaplane/wire/protobuf';
import type { ImageState } from '../../framework/node-info.ts';
import { chunkOf, readRecord, RecordWriter } from './record.ts';

export type StateChange =
  /** An object in JSON, created or replaced. */
  | { readonly kind: 'apply'; readonly object: Uint8Array }
  | { readonly kind: 'delete'; readonly objectKind: string; readonly key: string }
  /** Images of a node: how many nodes hold one, only the root knows. */
  | {
      readonly kind: 'images';
      readonly node: string;
      readonly images: ReadonlyMap<string, ImageState>;
    }
  /** The nodes of the share, in the order in which it answers about them. */
  | { readonly kind: 'order'; readonly nodes: readonly string[] }
  /**
   * Of a live scheduler: a node is there, or changed; its pods stay. `id`: the root's number of it.
   */
  | {
      readonly kind: 'node';
      readonly id: number;
      readonly object: Uint8Array;
      readonly imageNames: readonly string[];
    }
  /** With all pods on it. */
  | { readonly kind: 'nodeGone'; readonly id: number }
  /** A pod is on a node. Many have the same spec, byte for byte. */
  | {
      readonly kind: 'pod';
      readonly row: number;
      readonly node: number;
      /** Metadata and status in JSON. */
      readonly object: Uint8Array;
      readonly spec: Uint8Array;
      /** What it takes from its node, where that is not what its spec says; else empty. */
      readonly sums: Uint8Array;
    }
  | { readonly kind: 'podGone'; readonly row: number }
  /** How many nodes hold an image; 0: it is gone. */
  | {
      readonly kind: 'image';
      readonly name: string;
      readonly sizeBytes: number;
      readonly nodes: number;
    }
  /** An object of another kind. */
  | {
      readonly kind: 'object';
      readonly objectKind: string;
      readonly key: string;
      readonly object: Uint8Array;
    }
  /** From now on rounds of this epoch are answered; 0: none, and all that was told is void. */
  | { readonly kind: 'epoch'; readonly number: number };

const KINDS = [
  ...(['apply', 'delete', 'images', 'order'] as const),
  ...(['node', 'nodeGone', 'pod', 'podGone', 'image', 'object', 'epoch'] as const),
] as const;
const NO_BYTES: Uint8Array = Buffer.alloc(0);

export function encodeState(change: StateChange): Buffer {
  const record = new RecordWriter().number(1, KINDS.indexOf(change.kind) + 1);
  switch (change.kind) {
    case 'apply':
      record.bytes(2, change.object);
      break;
    case 'delete':
      record.text(3, change.objectKind).text(4, change.key);
      break;
    case 'images':
      record.text(4, change.node);
      for (const [name, { sizeBytes, nodes }] of change.images) {
        record.message(5, (inner) => inner.text(1, name).number(2, sizeBytes).number(3, nodes));
      }
      break;
    case 'order':
      for (const name of change.nodes) record.text(6, name);
      break;
    case 'node':
      record.bytes(2, change.object).number(7, change.id);
      for (const name of change.imageNames) record.text(6, name);
      break;
    case 'nodeGone':
      record.number(7, change.id);
      break;
    case 'pod':
      record.bytes(2, change.object).number(7, change.row).number(8, change.node);
      record.bytes(9, change.spec);
      if (change.sums.length > 0) record.bytes(10, change.sums);
      break;
    case 'podGone':
      record.number(7, change.row);
      break;
    case 'image':
      record.text(4, change.name).number(7, change.sizeBytes).number(8, change.nodes);
      break;
    case 'object':
      record.bytes(2, change.object).text(3, change.objectKind).text(4, change.key);
      break;
    case 'epoch':
      record.number(7, change.number);
      break;
  }
  return record.done();
}

/** Throws where the message is malformed or of no known kind. */
export function decodeState(bytes: Uint8Array): StateChange {
  let kind = 0;
  let object: Uint8Array = NO_BYTES;
  let spec: Uint8Array = NO_BYTES;
  let sums: Uint8Array = NO_BYTES;
  let number = 0;
  let second = 0;
  let objectKind = '';
  let key = '';
  const images = new Map<string, ImageState>();
  const nodes: string[] = [];
  const takers: Readonly<Record<number, (reader: ProtobufReader) => void>> = {
    1: (reader) => void (kind = reader.uint64()),
    2: (reader) => void (object = chunkOf(reader)),
    3: (reader) => void (objectKind = reader.text()),
    4: (reader) => void (key = reader.text()),
    5: (reader) => readImage(chunkOf(reader), images),
    6: (reader) => void nodes.push(reader.text()),
    7: (reader) => void (number = reader.uint64()),
    8: (reader) => void (second = reader.uint64()),
    9: (reader) => void (spec = chunkOf(reader)),
    10: (reader) => void (sums = chunkOf(reader)),
  };
  readRecord(bytes, (reader) => {
    const take = takers[reader.field];
    take?.(reader);
    return take !== undefined;
  });
  switch (KINDS[kind - 1]) {
    case 'apply':
      return { kind: 'apply', object };
    case 'delete':
      return { kind: 'delete', objectKind, key };
    case 'images':
      return { kind: 'images', node: key, images };
    case 'order':
      return { kind: 'order', nodes };
    case 'node':
      return { kind: 'node', id: number, object, imageNames: nodes };
    case 'nodeGone':
      return { kind: 'nodeGone', id: number };
    case 'pod':
      return { kind: 'pod', row: number, node: second, object, spec, sums };
    case 'podGone':
      return { kind: 'podGone', row: number };
    case 'image':
      return { kind: 'image', name: key, sizeBytes: number, nodes: second };
    case 'object':
      return { kind: 'object', objectKind, key, object };
    case 'epoch':
      return { kind: 'epoch', number };
    case undefined:
    default:
      throw new Error(`malformed message: a change of kind ${kind}`);
  }
}

function readImage(bytes: Uint8Array, images: Map<string, ImageState>): void {
  let name = '';
  let sizeBytes = 0;
  let nodes = 0;
  readRecord(bytes, (reader) => {
    if (reader.field === 1) name = reader.text();
    else if (reader.field === 2) sizeBytes = reader.int64();
    else if (reader.field === 3) nodes = reader.int64();
    else return false;
    return true;
  });
  images.set(name, { sizeBytes, nodes });
}

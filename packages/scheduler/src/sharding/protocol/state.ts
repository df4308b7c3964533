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
  | { readonly kind: 'order'; readonly nodes: readonly string[] };

const KINDS = ['apply', 'delete', 'images', 'order'] as const;

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
  }
  return record.done();
}

/** Throws where the message is malformed or of no known kind. */
export function decodeState(bytes: Uint8Array): StateChange {
  let kind = 0;
  let object: Uint8Array = new Uint8Array(0);
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

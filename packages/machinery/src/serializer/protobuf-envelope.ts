/** `runtime.Unknown`: the message around an object that names its type, after the magic `k8s\0`. */

import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import type { BackwardWriter } from './backward-writer.ts';

/** The parts of a `runtime.Unknown` message; `raw` is a range of the bytes that were read. */
export interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly rawStart: number;
  readonly rawEnd: number;
}

/** Type, object, `contentEncoding` and `contentType`. */
const ENVELOPE_FIELDS = 4;

const outer = new ProtobufReader();
const inner = new ProtobufReader();

/** Reads the message after the magic. Undefined if the bytes are none. */
export function readEnvelope(bytes: Buffer, start: number, end: number): Envelope | undefined {
  let apiVersion = '';
  let kind = '';
  let rawStart = end;
  let rawEnd = end;
  outer.reset(bytes, start, end);
  while (outer.next()) {
    if (outer.field > ENVELOPE_FIELDS) {
      outer.skip();
      continue;
    }
    // all of its fields are texts, bytes or messages
    if (outer.wireType !== WIRE_BYTES) return undefined;
    outer.chunk();
    if (outer.field > 2) continue;
    if (outer.field === 2) {
      rawStart = outer.chunkStart;
      rawEnd = outer.chunkEnd;
      continue;
    }
    inner.reset(bytes, outer.chunkStart, outer.chunkEnd);
    while (inner.next()) {
      if (inner.field > 2) inner.skip();
      else if (inner.wireType !== WIRE_BYTES) return undefined;
      else if (inner.field === 1) apiVersion = inner.text();
      else kind = inner.text();
    }
    if (inner.failure !== FAILURE_NONE) return undefined;
  }
  if (outer.failure !== FAILURE_NONE) return undefined;
  return { apiVersion, kind, rawStart, rawEnd };
}

const MAGIC = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

/** Writes what stands behind the object: `contentEncoding` and `contentType`, both empty. */
export function openEnvelope(out: BackwardWriter): void {
  out.varint(0);
  out.varint(0x22);
  out.varint(0);
  out.varint(0x1a);
}

/** Writes what stands before the object, which has been written since `mark`. */
export function closeEnvelope(
  out: BackwardWriter,
  mark: number,
  apiVersion: string,
  kind: string,
): void {
  out.length(2, mark);
  const typeMark = out.mark();
  out.string(2, kind);
  out.string(1, apiVersion);
  out.length(1, typeMark);
  out.copy(MAGIC);
}

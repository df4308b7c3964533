import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';

/** The parts of a `runtime.Unknown` message; `raw` is a range of the bytes that were read. */
export interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly rawStart: number;
  readonly rawEnd: number;
}

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
    if (outer.wireType !== WIRE_BYTES || outer.field > 2) {
      outer.skip();
      continue;
    }
    outer.chunk();
    if (outer.field === 2) {
      rawStart = outer.chunkStart;
      rawEnd = outer.chunkEnd;
      continue;
    }
    inner.reset(bytes, outer.chunkStart, outer.chunkEnd);
    while (inner.next()) {
      if (inner.wireType !== WIRE_BYTES) inner.skip();
      else if (inner.field === 1) apiVersion = inner.text();
      else if (inner.field === 2) kind = inner.text();
      else inner.skip();
    }
    if (inner.failure !== FAILURE_NONE) return undefined;
  }
  if (outer.failure !== FAILURE_NONE) return undefined;
  return { apiVersion, kind, rawStart, rawEnd };
}

/**
 * The node ports that are taken, as upstream keeps them: a RangeAllocation whose data are a large
 * number, in bytes from the highest, with a bit for each port of the range.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { readEnvelope } from '@megaplane/machinery/protobuf-envelope';
import { isProtobuf } from '@megaplane/machinery/protobuf';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import type { Row } from '../../storage/storage.ts';

export const PORT_FIRST = 30_000;
export const PORT_LAST = 32_767;
export const PORTS_KEY: Buffer = Buffer.from('/registry/ranges/servicenodeports');

const RANGE = `${PORT_FIRST}-${PORT_LAST}`;
const reader = new ProtobufReader();

/** The ports in a record of ours or of upstream's. */
export function decodePorts({ bytes, start, end }: Row): Set<number> {
  const data = isProtobuf(bytes, start, end)
    ? protobufData(bytes, start, end)
    : jsonData(bytes.toString('utf8', start, end));
  const ports = new Set<number>();
  for (let at = 0; at < data.length; at++) {
    const byte = data[data.length - 1 - at] ?? 0;
    for (let bit = 0; bit < 8; bit++) {
      if ((byte & (1 << bit)) !== 0) ports.add(PORT_FIRST + at * 8 + bit);
    }
  }
  return ports;
}

function jsonData(text: string): Buffer {
  const { data } = parseJson(text) as { readonly data?: string };
  return Buffer.from(data ?? '', 'base64');
}

function protobufData(bytes: Buffer, start: number, end: number): Buffer {
  const envelope = readEnvelope(bytes, start + 4, end);
  if (envelope === undefined) return Buffer.alloc(0);
  reader.reset(bytes, envelope.rawStart, envelope.rawEnd);
  let data = Buffer.alloc(0);
  while (reader.next()) {
    if (reader.field === 3) {
      reader.chunk();
      data = Buffer.from(bytes.subarray(reader.chunkStart, reader.chunkEnd));
    } else reader.skip();
  }
  return data;
}

/** A record with these ports, in JSON, which upstream reads as well. */
export function encodePorts(ports: ReadonlySet<number>): Buffer {
  const highest = Math.max(PORT_FIRST, ...ports) - PORT_FIRST;
  const data = Buffer.alloc((highest >> 3) + 1);
  for (const port of ports) {
    const bit = port - PORT_FIRST;
    if (bit < 0 || port > PORT_LAST) continue;
    const at = data.length - 1 - (bit >> 3);
    data[at] = (data[at] ?? 0) | (1 << (bit & 7));
  }
  const text = ports.size === 0 ? '' : data.toString('base64');
  return Buffer.from(
    JSON.stringify({
      kind: 'RangeAllocation',
      apiVersion: 'v1',
      metadata: {},
      range: RANGE,
      data: text,
    }),
  );
}

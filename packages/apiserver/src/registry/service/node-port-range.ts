/**
 * The node ports that are taken, as upstream keeps them: a RangeAllocation whose data are a large
 * number, in bytes from the highest, with a bit for each port of the range.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { readEnvelope } from '@megaplane/machinery/protobuf-envelope';
import { isProtobuf } from '@megaplane/machinery/protobuf';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import type { Row } from '../../storage/storage.ts';

const USUAL = { first: 30_000, last: 32_767 };
const PORT_MAX = 65_535;
/** Which Services get, both included. One range for the process: `applyNodePortRange`. */
export const NODE_PORTS: { first: number; last: number } = { ...USUAL };
export const PORTS_KEY: Buffer = Buffer.from('/registry/ranges/servicenodeports');

const reader = new ProtobufReader();

/** `--service-node-port-range`: `A-B`, `A+COUNT` or `A`; empty for the usual one. Throws. */
export function applyNodePortRange(text: string): void {
  const found = parseRange(text);
  if (found === null) {
    const want = 'want ports from 1 to 65535 such as 30000-32767';
    throw new Error(`--service-node-port-range: ${text} is no range; ${want}`);
  }
  NODE_PORTS.first = found.first;
  NODE_PORTS.last = found.last;
}

function parseRange(text: string): { first: number; last: number } | null {
  if (text.trim() === '') return USUAL;
  const parts = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.trim());
  if (parts === null) return null;
  const first = Number(parts[1]);
  const second = Number(parts[3] ?? first);
  const last = parts[2] === '+' ? Math.min(first + second, PORT_MAX) : second;
  return first >= 1 && last >= first && last <= PORT_MAX ? { first, last } : null;
}

/** The ports in a record of ours or of upstream's. */
export function decodePorts({ bytes, start, end }: Row): Set<number> {
  const { data, range } = isProtobuf(bytes, start, end)
    ? protobufRecord(bytes, start, end)
    : jsonRecord(bytes.toString('utf8', start, end));
  // It may have been written by a server with another range.
  const first = parseRange(range)?.first ?? NODE_PORTS.first;
  const ports = new Set<number>();
  for (let at = 0; at < data.length; at++) {
    const byte = data[data.length - 1 - at] ?? 0;
    for (let bit = 0; bit < 8; bit++) {
      if ((byte & (1 << bit)) !== 0) ports.add(first + at * 8 + bit);
    }
  }
  return ports;
}

interface Allocation {
  readonly data: Buffer;
  readonly range: string;
}

function jsonRecord(text: string): Allocation {
  const { data = '', range = '' } = parseJson(text) as { data?: string; range?: string };
  return { data: Buffer.from(data, 'base64'), range };
}

function protobufRecord(bytes: Buffer, start: number, end: number): Allocation {
  const envelope = readEnvelope(bytes, start + 4, end);
  if (envelope === undefined) return { data: Buffer.alloc(0), range: '' };
  reader.reset(bytes, envelope.rawStart, envelope.rawEnd);
  let data = Buffer.alloc(0);
  let range = '';
  while (reader.next()) {
    if (reader.field === 2 || reader.field === 3) {
      const isRange = reader.field === 2;
      reader.chunk();
      const chunk = Buffer.from(bytes.subarray(reader.chunkStart, reader.chunkEnd));
      if (isRange) range = chunk.toString('utf8');
      else data = chunk;
    } else reader.skip();
  }
  return { data, range };
}

/** A record with these ports, in JSON, which upstream reads as well. */
export function encodePorts(ports: ReadonlySet<number>): Buffer {
  const { first, last } = NODE_PORTS;
  const highest = Math.min(Math.max(first, ...ports), last) - first;
  const data = Buffer.alloc((highest >> 3) + 1);
  for (const port of ports) {
    const bit = port - first;
    if (bit < 0 || port > last) continue;
    const at = data.length - 1 - (bit >> 3);
    data[at] = (data[at] ?? 0) | (1 << (bit & 7));
  }
  const text = ports.size === 0 ? '' : data.toString('base64');
  return Buffer.from(
    JSON.stringify({
      kind: 'RangeAllocation',
      apiVersion: 'v1',
      metadata: {},
      range: `${first}-${last}`,
      data: text,
    }),
  );
}

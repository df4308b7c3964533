// shell: sockets of an upgraded connection
/**
 * Port-forward of kubectl 1.31 and later: a WebSocket whose messages are the bytes of SPDY/3.1
 * (KEP-4006). The kubelet gets the bytes, the client gets them as messages.
 */
import { guarded } from '@megaplane/base/deferred';
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Call } from '../request/call.ts';
import { joinEnds, type Answer } from './joined-ends.ts';
import {
  binaryFrame,
  closeFrame,
  FrameReader,
} from '@megaplane/machinery/streams/websocket-frames';
import type { FieldList } from '@megaplane/wire/fields';

/** RFC 6455 section 1.3. */
const ACCEPT_KEY = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const PREFIX = 'SPDY/3.1+';

function protocolsOf(call: Call): string[] {
  const text = call.exchange.header('sec-websocket-protocol') ?? '';
  return text.split(',').map((one) => one.trim());
}

/** True where the client's messages are SPDY's bytes. */
export function isTunnel(call: Call): boolean {
  const isSocket = call.exchange.upgradeProtocol === 'websocket';
  return isSocket && protocolsOf(call).some((one) => one.startsWith(PREFIX));
}

/** The head of the request that the kubelet gets in place of the WebSocket's. */
export function tunnelFields(fields: FieldList): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? '';
    const value = fields[at + 1] ?? '';
    if (name === 'sec-websocket-protocol') {
      for (const one of value.split(',')) {
        const trimmed = one.trim();
        if (trimmed.startsWith(PREFIX)) {
          kept.push('x-stream-protocol-version', trimmed.slice(PREFIX.length));
        }
      }
    } else if (!name.startsWith('sec-websocket-')) kept.push(name, value);
  }
  return kept;
}

/** Joins the client's WebSocket with the kubelet's SPDY connection. */
export function tunnel(call: Call, socket: Socket, answer: Answer, ended: () => void): void {
  const key = call.exchange.header('sec-websocket-key') ?? '';
  const accept = createHash('sha1')
    .update(key + ACCEPT_KEY)
    .digest('base64');
  const at = answer.fields.indexOf('x-stream-protocol-version');
  const version = at < 0 ? '' : (answer.fields[at + 1] ?? '');
  const offered = protocolsOf(call).filter((one) => one.startsWith(PREFIX));
  const chosen = offered.find((one) => one === PREFIX + version) ?? offered[0] ?? '';
  call.code = 101;
  const near = call.exchange.upgrade([
    'sec-websocket-accept',
    accept,
    'sec-websocket-protocol',
    chosen,
  ]);
  const reader = new FrameReader({
    onData: (bytes) => {
      if (!socket.write(bytes)) near.pause();
    },
    onReply: (bytes) => near.write(bytes),
    onClose: () => socket.end(),
  });
  near.onData = (bytes, start, end) => reader.read(bytes.subarray(start, end));
  socket.on(
    'drain',
    guarded(() => near.resume()),
  );
  const send = (bytes: Buffer): void => {
    near.write(binaryFrame(bytes));
    if (near.writable() <= 0) socket.pause();
  };
  if (answer.rest.length > 0) send(answer.rest);
  socket.on('data', guarded(send));
  socket.on(
    'end',
    guarded(() => near.write(closeFrame())),
  );
  near.onWritable = () => socket.resume();
  joinEnds(near, socket, ended);
  socket.resume();
}

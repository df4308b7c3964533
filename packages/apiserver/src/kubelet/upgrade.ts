// shell: a connection of the client's, joined with one to the target
import { afterMs, guarded } from '@megaplane/base/deferred';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { clientTls } from '@megaplane/base/tls-parts';
import { unclassified } from '@megaplane/machinery/status';
import { fieldLines } from '@megaplane/wire/http1-output';
import type { Call } from '../request/call.ts';
import { goText, withAdvice } from '../webhook/dial-text.ts';
import { answerFields, joinEnds, type Answer } from './joined-ends.ts';
import type { Target } from '../webhook/target.ts';
import { isTunnel, tunnel, tunnelFields } from './spdy-tunnel.ts';
import type { FieldList } from '@megaplane/wire/fields';

/** PEM; `isInsecure` takes any certificate. */
export interface UpgradeTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly isInsecure: boolean;
}

/** The head of an answer is no longer. */
const HEAD_BYTES_MAX = 64 * 1024;
/** The words of a refusal are no longer. */
const REFUSAL_BYTES_MAX = 50_000;
/** For the way to the target and its answer. */
const ANSWER_MS_MAX = 30_000;

/** Asks the target to upgrade as the client did, and joins the two; `ended` is called once. */
export function openUpgrade(
  call: Call,
  target: Target,
  fields: FieldList,
  tls: UpgradeTls,
  ended: () => void,
): void {
  const protocol = call.exchange.upgradeProtocol ?? '';
  askUpgrade(
    call,
    target,
    requestHead(call, target, fields, protocol),
    tls,
    ended,
    (socket, answer) => {
      if (answer.code !== 101 && isTunnel(call)) {
        // the kubelet does not know WebSocket for this: it gets SPDY, and the client's messages
        // are taken apart here
        socket.destroy();
        const plain = requestHead(call, target, tunnelFields(fields), 'SPDY/3.1');
        askUpgrade(call, target, plain, tls, ended, (second, told) => {
          if (told.code === 101) tunnel(call, second, told, ended);
          else refuse(call, second, told, ended);
        });
      } else if (answer.code === 101) joinStreams(call, socket, answer, ended);
      else refuse(call, socket, answer, ended);
    },
  );
}

function requestHead(call: Call, target: Target, fields: FieldList, protocol: string): string {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  let head = `${call.exchange.method} ${target.path} HTTP/1.1\r\nhost: ${host}:${target.port}\r\n`;
  head += fieldLines(fields);
  if (call.exchange.method === 'POST') head += 'content-length: 0\r\n';
  return `${head}${fieldLines(['connection', 'Upgrade', 'upgrade', protocol])}\r\n`;
}

/** Connects, sends the head and reads the answer's; a failure is answered. */
function askUpgrade(
  call: Call,
  target: Target,
  head: string,
  tls: UpgradeTls,
  ended: () => void,
  done: (socket: Socket, answer: Answer) => void,
): void {
  const { exchange } = call;
  const { host, port } = target;
  const { ca, cert, key, isInsecure } = tls;
  const socket = target.isTls
    ? connectTls({
        ...{ host, port, ...clientTls({ ca, cert, key, isInsecure }) },
        servername: target.serverName,
      })
    : connectPlain({ host, port });
  let isDone = false;
  let received: Buffer = Buffer.alloc(0);
  const fail = guarded((error: Error): void => {
    if (isDone) return;
    isDone = true;
    socket.destroy();
    ended();
    if (exchange.closed) return;
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    const why = withAdvice(goText(error, address), target);
    call.fail(unclassified(`error dialing backend: ${why}`));
  });
  const timer = afterMs(ANSWER_MS_MAX, () => fail(new Error('dial timeout')));
  const onData = guarded((bytes: Buffer): void => {
    received = Buffer.concat([received, bytes]);
    const end = received.indexOf('\r\n\r\n');
    if (end < 0) {
      if (received.length > HEAD_BYTES_MAX) fail(new Error('the answer has no end to its head'));
      return;
    }
    isDone = true;
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('error', fail);
    socket.pause();
    const answer = readHead(received.toString('latin1', 0, end));
    try {
      done(socket, { ...answer, rest: received.subarray(end + 4) });
    } catch (error) {
      socket.destroy();
      ended();
      throw error;
    }
  });
  socket.on('error', fail);
  socket.on(
    'close',
    guarded(() => {
      clearTimeout(timer);
      fail(new Error('socket hang up'));
    }),
  );
  socket.on('data', onData);
  exchange.onClose = () => {
    isDone = true;
    clearTimeout(timer);
    socket.destroy();
    ended();
  };
  socket.write(head, 'latin1');
}

function readHead(text: string): { readonly code: number; readonly fields: string[] } {
  const [status = '', ...lines] = text.split('\r\n');
  const fields: string[] = [];
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    fields.push(line.slice(0, colon).toLowerCase().trim(), line.slice(colon + 1).trim());
  }
  return { code: Number(status.split(' ')[1] ?? 0), fields };
}

function joinStreams(call: Call, socket: Socket, answer: Answer, ended: () => void): void {
  call.code = 101;
  const near = call.exchange.upgrade(answerFields(answer.fields));
  if (answer.rest.length > 0) near.write(answer.rest);
  near.onData = (bytes, start, end) => {
    // the wire's bytes are good during the call only
    if (!socket.write(Buffer.from(bytes.subarray(start, end)))) near.pause();
  };
  socket.on(
    'drain',
    guarded(() => near.resume()),
  );
  joinEnds(near, socket, ended);
  socket.on(
    'data',
    guarded((bytes: Buffer) => {
      near.write(bytes);
      if (near.writable() <= 0) socket.pause();
    }),
  );
  near.onWritable = () => socket.resume();
  socket.resume();
}

/** Hands on why the target did not upgrade. */
function refuse(call: Call, socket: Socket, answer: Answer, ended: () => void): void {
  let body = answer.rest;
  const finish = (): void => {
    socket.destroy();
    ended();
    if (call.exchange.closed || call.code !== 0) return;
    const at = answer.fields.indexOf('content-type');
    const type = at < 0 ? 'text/plain; charset=utf-8' : (answer.fields[at + 1] ?? null);
    call.send(answer.code === 0 ? 502 : answer.code, type, body);
  };
  const lengthAt = answer.fields.indexOf('content-length');
  const length = lengthAt < 0 ? Infinity : Number(answer.fields[lengthAt + 1]);
  const limit = Math.min(length, REFUSAL_BYTES_MAX);
  const onData = (bytes: Buffer): void => {
    body = Buffer.concat([body, bytes]).subarray(0, REFUSAL_BYTES_MAX);
    if (body.length >= limit) finish();
  };
  socket.on('data', guarded(onData));
  socket.on('close', guarded(finish));
  socket.on(
    'error',
    guarded(() => socket.destroy()),
  );
  if (body.length >= limit) finish();
  else socket.resume();
}

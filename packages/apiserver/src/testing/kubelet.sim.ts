// shell
/** For tests: a kubelet's HTTPS port, with as much behind it as the tests look at. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { issueCertificate, type KeyAndCertificate } from '../pki/certificates.ts';
import {
  binaryFrame,
  closeFrame,
  FrameReader,
} from '@megaplane/machinery/streams/websocket-frames';

const DAY_MS = 86_400_000;

/** An authority, or what it signs. */
export function issue(
  commonName: string,
  use: 'authority' | 'server' | 'client',
  authority: KeyAndCertificate | null,
): KeyAndCertificate {
  const nowMs = Date.now();
  const times = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + DAY_MS };
  const names = ['127.0.0.1', 'localhost'];
  return issueCertificate({ commonName, use, names, ...times, serial: randomBytes(8) }, authority);
}

const STATUS_CHANNEL = 3;
const CLOSE_CHANNEL = 255;

export class KubeletModel {
  /** `GET /containerLogs/... user` for each request. */
  readonly seen: string[] = [];
  readonly #server: Server;
  /** Lines of a followed log are sent when this is called. */
  say: (line: string) => void = () => {};

  constructor(serving: KeyAndCertificate, clientCa: string) {
    this.#server = createServer(
      {
        key: serving.key,
        cert: serving.certificate,
        ca: clientCa,
        requestCert: true,
        rejectUnauthorized: true,
      },
      (request, response) => {
        this.#note(request);
        const path = request.url ?? '';
        if (path.startsWith('/containerLogs/default/p/c?follow=true')) {
          response.writeHead(200, { 'content-type': 'text/plain' });
          response.write('first\n');
          this.say = (line) => response.write(line);
        } else if (path.startsWith('/containerLogs/default/p/c')) response.end('one\ntwo\n');
        else if (path.startsWith('/containerLogs/')) {
          response.writeHead(404, { 'content-type': 'text/plain' }).end('container not found');
        } else if (path.startsWith('/echo')) {
          response.writeHead(201, { 'content-type': 'text/x-echo', 'x-kubelet': 'yes' });
          request.pipe(response);
        } else response.end(`path ${path}`);
      },
    );
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
      this.#note(request);
      this.#upgrade(request, socket);
    });
  }

  #note(request: IncomingMessage): void {
    const subject = (request.socket as TLSSocket).getPeerCertificate().subject;
    const user = String(subject?.CN ?? 'nobody');
    const authorization = request.headers.authorization ?? 'no authorization';
    this.seen.push(`${request.method} ${request.url} ${user} ${authorization}`);
  }

  #upgrade(request: IncomingMessage, socket: Socket): void {
    const key = String(request.headers['sec-websocket-key']);
    const protocols = String(request.headers['sec-websocket-protocol'] ?? '').split(/, */);
    if (request.headers.upgrade === 'SPDY/3.1') {
      const version = String(request.headers['x-stream-protocol-version']);
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n' +
          `X-Stream-Protocol-Version: ${version}\r\n\r\nhello `,
      );
      // whatever a client of SPDY says comes back, in capitals
      socket.on('data', (bytes: Buffer) => socket.write(bytes.toString('latin1').toUpperCase()));
      socket.on('end', () => socket.end());
      return;
    }
    const protocol = protocols.find((one) => /^v[45]\.channel/.test(one));
    if (protocol === undefined) {
      socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 17\r\n\r\nunknown protocol\n');
      return;
    }
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${accept.digest('base64')}\r\n` +
        `Sec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
    );
    let channel = 0;
    const reader = new FrameReader({
      onData: (bytes, isContinued) => {
        if (!isContinued) channel = bytes[0] ?? 0;
        const data = isContinued ? bytes : bytes.subarray(1);
        if (channel === 0) socket.write(binaryFrame(Buffer.concat([Buffer.from([1]), data])));
        else if (channel === CLOSE_CHANNEL && data.length > 0) this.#succeed(socket);
      },
      onReply: (bytes) => socket.write(bytes),
      onClose: () => socket.end(),
    });
    socket.on('data', (bytes: Buffer) => reader.read(bytes));
    socket.on('error', () => socket.destroy());
  }

  #succeed(socket: Socket): void {
    const status = Buffer.from('{"metadata":{},"status":"Success"}');
    socket.write(binaryFrame(Buffer.concat([Buffer.from([STATUS_CHANNEL]), status])));
    socket.write(closeFrame());
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as { port: number }).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

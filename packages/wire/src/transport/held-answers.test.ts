import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { trials } from '@megaplane/base/trials.sim';
import { FakeTransport as FakeSocket } from '../../test/fake-transport.ts';
import { ACK, FakeTransport, frame, get, HELLO } from '../../test/scripted-peer.ts';
import { BodyBudget } from './body-budget.ts';
import type { Connection, Exchange } from '../http/exchange.ts';
import { FRAMES } from '../http2/frames.ts';
import { Http1Server } from '../http1/http1-server.ts';
import { Http2Server } from '../server/http2-server.ts';
import { SERVER_LIMITS } from '../limits.ts';

const STEPS = ['ask', 'release', 'drain', 'tick', 'room', 'ping', 'wrong', 'end'] as const;
type Step = (typeof STEPS)[number];

/** A server whose every answer is held, and its client. */
interface Scene {
  /** Answers that the client has. */
  readonly arrived: () => number;
  readonly isOver: () => boolean;
  readonly take: (step: Exclude<Step, 'release'>) => void;
  readonly settle: () => void;
}

class Held {
  readonly connections: Connection[] = [];

  readonly handler = (exchange: Exchange): void => {
    exchange.connection.hold();
    this.connections.push(exchange.connection);
    exchange.respond(200, null, 'held');
  };

  options() {
    return {
      handler: this.handler,
      streamsBody: () => false,
      limits: SERVER_LIMITS,
      onError: (error: unknown) => assert.fail(String(error)),
      grpc: null,
      bodies: new BodyBudget(Infinity),
    };
  }
}

function http2(held: Held): Scene {
  const socket = new FakeTransport();
  const server = new Http2Server(socket, held.options());
  socket.protocol = server;
  socket.send(HELLO);
  socket.send(ACK);
  let id = 1;
  const heads = (): number => socket.frames().filter(({ type }) => type === FRAMES.headers).length;
  const steps = {
    ask: () => socket.send(get((id += 2) - 2)),
    drain: () => server.drain(),
    tick: () => {
      socket.timeMs += 1000;
      server.tick(socket.timeMs);
    },
    room: () => server.drained(),
    ping: () => socket.send(frame(FRAMES.ping, 1, 0, Buffer.alloc(8))),
    wrong: () => socket.send(frame(FRAMES.data, 0, 0)),
    end: () => server.ended(),
  };
  return {
    arrived: heads,
    isOver: () => socket.ended,
    take: (step) => steps[step](),
    settle: () => socket.settle(),
  };
}

function http1(held: Held): Scene {
  const socket = new FakeSocket();
  const server = new Http1Server(socket, held.options());
  socket.protocol = server;
  const steps = {
    ask: () => socket.receive('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
    drain: () => server.drain(),
    tick: () => {
      socket.timeMs += 1000;
      server.tick(socket.timeMs);
    },
    room: () => server.drained(),
    ping: () => socket.receive('\r\n'),
    wrong: () => socket.receive('\0\r\n\r\n'),
    end: () => server.ended(),
  };
  return {
    arrived: () => socket.text.split('held').length - 1,
    isOver: () => socket.isEnded || socket.isDestroyed,
    take: (step) => steps[step](),
    settle: () => socket.settle(),
  };
}

for (const [name, make] of [
  ['HTTP/2', http2],
  ['HTTP/1.1', http1],
] as const) {
  test(`over ${name} no answer leaves while its connection is held, whatever ends it`, () => {
    const steps = fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(steps, (script) => {
        const held = new Held();
        const scene = make(held);
        let left = 0;
        for (const step of script) {
          if (scene.isOver()) break;
          if (step === 'release') held.connections.pop()?.release();
          else scene.take(step);
          scene.settle();
          if (held.connections.length > 0) assert.equal(scene.arrived(), left, script.join(' '));
          left = scene.arrived();
        }
      }),
      trials(500),
    );
  });
}

test('a server that drains ends once what is held was let go', () => {
  const held = new Held();
  const scene = http2(held);
  for (const step of ['ask', 'drain', 'tick', 'tick'] as const) {
    scene.take(step);
    scene.settle();
  }
  assert.deepEqual([scene.arrived(), scene.isOver()], [0, false]);
  held.connections.pop()?.release();
  scene.settle();
  assert.deepEqual([scene.arrived(), scene.isOver()], [1, true]);
});

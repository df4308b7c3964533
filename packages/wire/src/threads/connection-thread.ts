// shell: a thread that owns sockets
/**
 * Listens on the port that all connection threads share, and carries octets between its sockets and
 * the thread that serves. Certificates come by messages, and so does the end.
 */
import { everyMs, guarded, nextTurn, tellErrors } from '@megaplane/base/deferred';
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { listen, type Listener } from '../server/listener.ts';
import type { Protocol } from '../transport/transport.ts';
import { Relays } from './relays.ts';
import { PULSE_MS, type FromThread, type ThreadStart, type ToThread } from './thread-start.ts';

const start = workerData as ThreadStart;
const port = parentPort as MessagePort;
const tell = (news: FromThread): void => port.postMessage(news);
const pulse = new Int32Array(start.memory.pulse);
const relays = new Relays(start.memory, () => tell(null), nextTurn);

tellErrors((error) => tell({ kind: 'error', text: textOf(error) }));

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** For a connection that finds no slot. */
const NOBODY: Protocol = {
  receive: () => {},
  flush: () => {},
  drained: () => {},
  ended: () => {},
  closed: () => {},
  tick: () => {},
  drain: () => {},
};

function open(): Promise<Listener> {
  const { host, port: number, tls, rules, limits } = start;
  return listen({
    ...rules,
    host,
    port: number,
    reusePort: true,
    ...(tls === null ? {} : { tls }),
    limits,
    handler: (exchange) => exchange.reset(),
    take: (transport, isHttp2) => {
      const relay = relays.take(transport, isHttp2);
      if (relay === null) transport.destroy();
      return relay ?? NOBODY;
    },
    onError: (error) => tell({ kind: 'error', text: textOf(error) }),
  });
}

async function run(): Promise<void> {
  const opening = open();
  // messages wait until somebody takes them
  const listener = await opening;
  everyMs(PULSE_MS, () => void Atomics.add(pulse, 0, 1));
  port.on(
    'message',
    guarded((news: ToThread) => {
      if (news === null) return relays.woken();
      if (news.kind === 'tls') return listener.reloadTls(news.tls);
      // connections end one by one, as the thread that serves says
      listener.close(news.graceMs).then(
        () => process.exit(),
        () => process.exit(),
      );
    }),
  );
  relays.woken();
  tell({ kind: 'listening', port: listener.address.port, host: listener.address.host });
}

run().catch((error: unknown) => {
  const { message, cause } = error as Error;
  const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  tell({ kind: 'failed', text: message, code });
});

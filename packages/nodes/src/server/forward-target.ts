// shell: sockets
/** A forwarded connection that leads to an address. */
import { guarded } from '@megaplane/base/deferred';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { reasonOf } from './log-reader.ts';
import type { ForwardItem } from './pod-rules.ts';

/** Joins the client's end with the target; `fail` hears why it cannot be reached. */
export function dial(
  { address, port }: NonNullable<ForwardItem['target']>,
  near: Duplex,
  fail: (why: string) => void,
): void {
  const far = connect({ host: address, port });
  far.on(
    'error',
    guarded((error: NodeJS.ErrnoException) => {
      const shown = `${address}:${port}`;
      if (far.connecting || error.syscall === 'connect' || error.syscall === 'getaddrinfo') {
        fail(`failed to dial ${shown}: dial tcp ${shown}: connect: ${reasonOf(error)}`);
      }
      near.destroy();
    }),
  );
  far.on(
    'close',
    guarded(() => {
      const isFlushing = near.writableEnded && !near.writableFinished;
      // the target's last bytes are still on their way to the client
      if (isFlushing)
        near.once(
          'finish',
          guarded(() => near.destroy()),
        );
      else near.destroy();
    }),
  );
  near.on(
    'close',
    guarded(() => far.destroy()),
  );
  near.pipe(far).pipe(near);
}

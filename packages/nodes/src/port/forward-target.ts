// shell: sockets
/** A forwarded connection that leads to an address. */
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
  far.on('error', (error: NodeJS.ErrnoException) => {
    const shown = `${address}:${port}`;
    if (far.connecting || error.syscall === 'connect' || error.syscall === 'getaddrinfo') {
      fail(`failed to dial ${shown}: dial tcp ${shown}: connect: ${reasonOf(error)}`);
    }
    near.destroy();
  });
  far.on('close', () => {
    const isFlushing = near.writableEnded && !near.writableFinished;
    // the target's last bytes are still on their way to the client
    if (isFlushing) near.once('finish', () => near.destroy());
    else near.destroy();
  });
  near.on('close', () => far.destroy());
  near.pipe(far).pipe(near);
}

/**
 * Which connections are to come again, so that all threads have work.
 *
 * The kernel spreads new connections over the threads by a hash of their addresses: of thousands
 * each thread has its share, of four one thread may have all. Nothing can hand a socket to another
 * thread. But a client of HTTP/2 that is told GOAWAY opens another connection, and what is under
 * way ends where it is; so a thread that has too many asks some to come again, a few at a time.
 */

/** A thread as it was since the last look. */
export interface ThreadLoad {
  /** Octets received, connection by connection. */
  readonly recentBytes: readonly number[];
}

/** Fewer connections than this more than the others are not worth a handshake. */
const SPARE_CONNECTIONS = 8;
/** The part of its share that a thread may have more. */
const SPARE_PART = 0.25;
/** Of the connections that a thread has too many, those that are asked in one look. */
const ASKED_PART = 0.25;
/** Octets a second of a thread that has much to do. */
const BUSY_BYTES: number = 1024 * 1024;

/**
 * By thread, how many of its connections are to come again; where there are few, of those that send
 * most: one of them goes when its thread does twice what another does, and has two of them.
 */
export function connectionsToMove(threads: readonly ThreadLoad[]): number[] {
  if (threads.length < 2) return threads.map(() => 0);
  const counts = threads.map(({ recentBytes }) => recentBytes.length);
  const share = counts.reduce((sum, count) => sum + count, 0) / threads.length;
  const loads = threads.map(({ recentBytes }) => recentBytes.reduce((sum, each) => sum + each, 0));
  const leastLoad = Math.min(...loads);
  return threads.map(({ recentBytes }, index) => {
    const tooMany = (counts[index] ?? 0) - share;
    if (tooMany > SPARE_CONNECTIONS + SPARE_PART * share) return Math.ceil(tooMany * ASKED_PART);
    const load = loads[index] ?? 0;
    const busy = recentBytes.filter((each) => each > BUSY_BYTES / 4).length;
    return load > BUSY_BYTES && load > 2 * leastLoad && busy > 1 ? 1 : 0;
  });
}

// data plane
/**
 * Octets that this process has given to its secure sockets and that the kernel has not taken.
 *
 * A secure socket takes a write or two in each turn of the event loop. What a connection may send
 * in a turn is therefore generous, as long as few of them have peers that do not read.
 */

/** Beyond this, connections may keep no more than one block each. */
const OUTSTANDING_BYTES_MAX: number = 64 * 1024 * 1024;

let outstandingBytes = 0;

/** Counts `change` octets more, or fewer. */
export function countOutstanding(change: number): void {
  outstandingBytes += change;
}

/** Whether so much waits for slow peers that each may keep only little more. */
export function isCrowded(): boolean {
  return outstandingBytes > OUTSTANDING_BYTES_MAX;
}

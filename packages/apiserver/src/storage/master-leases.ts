/**
 * By what API servers on one etcd know of each other: a key for each, that ends when it is not
 * written again. Keys and times are upstream's, so servers of both kinds see each other.
 */
const MASTER_LEASES = '/registry/masterleases/';
const PREFIX = Buffer.from(MASTER_LEASES);

/** What the prefix is called where resources are named. */
export const MASTER_LEASE_RESOURCE = 'apiServerIPInfo';
export const MASTER_LEASE_PREFIX: string = MASTER_LEASES;
/** A server that is not heard of for so long is gone. */
export const MASTER_LEASE_SECONDS = 15;

/** True for keys that tell of an API server. */
export function isMasterLeaseKey(key: Buffer): boolean {
  return key.length > PREFIX.length && PREFIX.compare(key, 0, PREFIX.length) === 0;
}

/** The key of the server at this address. */
export function masterLeaseKey(address: string): Buffer {
  return Buffer.from(MASTER_LEASES + address);
}

/** Where all of them are, `[start, end)`. */
export function masterLeaseRange(): { readonly start: Buffer; readonly end: Buffer } {
  // '0' is the byte after '/'
  return { start: PREFIX, end: Buffer.from('/registry/masterleases0') };
}

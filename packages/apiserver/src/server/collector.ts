// shell: flags of the runtime that serves
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps what belongs to one request in the young generation, where it dies for nothing. Left alone
 * the runtime allots objects among the old whose likes once outlived a collection, as those of
 * requests do that wait for their turn. Each such object is dead when its request is answered, but
 * keeps all that it knows (the call, its exchange, every text of it) alive and copied twice until
 * the whole heap is marked: 1.9 KB of each read, and a third of what reads cost when they are
 * warm. To be called before much code has run: code that is compiled keeps what it was compiled
 * with.
 */
export function keepRequestsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * When a request may be answered from a storage that others write to as well.
 *
 * Such a storage is read through a replica, which may be a moment behind. So reads that ask for
 * the newest state wait until the replica is known to have it; reads at a given revision, or at
 * any, wait for nothing. Writes go ahead on what the replica shows, since the write itself is
 * conditional: only a refusal is doubted, and then decided anew on a fresh state.
 */
import { unclassified } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import { keyOf, type Served } from '../storage/served.ts';
import type { World } from './world.ts';

/** Runs `answer`, at once or when the storage is as fresh as the request needs it. */
export function whenFresh(world: World, call: Call, served: Served, answer: () => void): void {
  const { storage } = world;
  if (!storage.isShared) {
    answer();
    return;
  }
  const settle = (fault: string | null): void => {
    if (call.exchange.closed) return;
    if (fault === null) answer();
    else call.fail(unclassified(fault));
  };
  const refresh = (about: Buffer | null): void =>
    storage.refresh(about, call.timed('etcd', settle));
  const isWrite = call.exchange.method !== 'GET';
  const { namespace, name } = call.info;
  const knowsNames = storage.knowsNames === true;
  const isCreation = knowsNames && call.exchange.method === 'POST';
  const key = name === '' && !isCreation ? null : keyOf(served, namespace, name);
  if (isWrite) {
    call.keepBody();
    call.retry = () => refresh(knowsNames ? key : null);
  }
  const isReady = isCreation || storage.isLoaded !== false;
  // what is to be deleted of a collection is a list, and nothing would refuse one that is old
  const isList = !isWrite || (call.exchange.method === 'DELETE' && name === '');
  if (isReady && (!isList || !asksForNewest(call))) {
    answer();
    return;
  }
  refresh(key);
}

/** No revision was given, by which upstream reads consistently; except for plain watches. */
function asksForNewest({ query }: Call): boolean {
  if (query.text('resourceVersion') !== '') return false;
  return !query.flag('watch') || query.flag('sendInitialEvents');
}

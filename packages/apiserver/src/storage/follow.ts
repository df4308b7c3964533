/** For what is kept by the server about some objects: when to look at them again. */
import type { KeyRange } from './served.ts';
import { emptyEvent, type Storage, type StorageWatch } from './storage.ts';

const event = emptyEvent();

/**
 * Calls `onChange` whenever objects of the range have changed, for as long as the storage lives.
 * Which ones is not told; where history was lost, they count as changed.
 */
export function followChanges(
  storage: Storage,
  { start, end }: KeyRange,
  onChange: () => void,
): void {
  let watch: StorageWatch | null = null;
  const open = (): void => {
    watch?.close();
    watch = storage.watch(start, end, storage.publishedRevision, () => {
      onChange();
      // a cursor that never moves holds history back
      let outcome = watch?.next(event);
      while (outcome === 'event') outcome = watch?.next(event);
      if (outcome === 'gone') open();
    });
  };
  open();
}

/** Calls `done` once, as soon as `isReached` is true; asked after each change of the range. */
export function followUntil(
  storage: Storage,
  { start, end }: KeyRange,
  isReached: () => boolean,
  done: () => void,
): void {
  if (isReached()) {
    done();
    return;
  }
  let watch: StorageWatch | null = null;
  const look = (): void => {
    let outcome = watch?.next(event);
    while (outcome === 'event') outcome = watch?.next(event);
    if (isReached()) {
      watch?.close();
      done();
    } else if (outcome === 'gone') {
      watch?.close();
      watch = storage.watch(start, end, storage.publishedRevision, look);
    }
  };
  watch = storage.watch(start, end, storage.publishedRevision, look);
}

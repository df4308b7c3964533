import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WORD_STATE } from './log-files.ts';
import type { LogWorld, WorkerNews } from './log-thread.ts';
import { Log } from '../open/log.ts';
import { Store } from '../mvcc/store.ts';

/** A log whose thread does nothing by itself, and what the store is told of failures. */
class IdleLog {
  readonly told: string[] = [];
  words: Int32Array = new Int32Array(0);
  tell: (news: WorkerNews) => void = () => {};
  onTimer: () => void = () => {};
  endFlush: (error: Error | null) => void = () => {};

  constructor() {
    const store = new Store({ dataDir: '', durability: 'buffered', prefixes: [] }, 5);
    store.onLogFailure((message) => this.told.push(message));
    const [clusterId, memberId] = [Buffer.alloc(8, 1), Buffer.alloc(8, 2)];
    const start = { dir: '', clusterId, memberId, segment: 0, chain: 0, wallMs: 0 };
    const log = new Log(store, start, this.#world());
    this.tell({ kind: 'segment', fd: 7, segment: 0 });
    // The first frame reserves revisions, and is flushed at once.
    for (let i = 0; i < 2; i++) {
      store.putIf(Buffer.from('kv'), 0, 1, -1, Buffer.from('kv'), 1, 2, 0);
      store.flush();
      log.submit();
    }
    this.onTimer();
  }

  #world(): LogWorld {
    return {
      start: (start, onNews) => {
        this.words = new Int32Array(start.words);
        this.tell = onNews;
        return {
          wake: () => {},
          appendHere: () => false,
          whenDone: () => {},
          flush: (_fd, callback) => (this.endFlush = callback),
          join: () => Promise.resolve(),
          end: () => {},
        };
      },
      nowMs: () => 0,
      wallMs: () => 0,
      every: (_ms, callback) => {
        this.onTimer = callback;
        return () => {};
      },
      pause: () => Promise.resolve(),
    };
  }
}

test('a flush that fails stops the store', () => {
  const log = new IdleLog();
  log.endFlush(new Error('EIO: i/o error, fdatasync'));
  assert.deepEqual(log.told, ['the log cannot be flushed: EIO: i/o error, fdatasync']);
});

test('a thread that has failed tells why, not the flush of the file that ended with it', () => {
  const log = new IdleLog();
  Atomics.store(log.words, WORD_STATE, -1);
  log.endFlush(new Error('EBADF: bad file descriptor, fdatasync'));
  assert.deepEqual(log.told, []);
  log.tell({ kind: 'failed', message: 'the log cannot be written: EFBIG' });
  assert.deepEqual(log.told, ['the log cannot be written: EFBIG']);
});

/** What every journal promises, asked of each. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { AppendOutcome, Journal, JournalEntry } from '@megaplane/store/journal';
import { ENGINES, type Engine } from './engines.sim.ts';

const WAIT_MS = 5000;

/** Entries from a position on, as many as asked for. */
async function readAll(journal: Journal, from: number, count: number): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for (let tries = 0; entries.length < count && tries < 50; tries++) {
    const outcome = await journal.read(from + entries.length, WAIT_MS);
    if (outcome.kind === 'unavailable') continue;
    assert.equal(outcome.kind, 'entries');
    if (outcome.kind === 'entries') entries.push(...outcome.entries);
  }
  return entries;
}

/** Makes an append as often as it takes to know what came of it; true when it stands. */
async function appendSurely(journal: Journal, entry: Buffer, expected: number): Promise<boolean> {
  for (let tries = 0; tries < 100; tries++) {
    const { kind } = await journal.append(entry, expected);
    if (kind === 'appended') return true;
    if (kind === 'moved') {
      const [standing] = await readAll(journal, expected + 1, 1);
      return standing?.bytes.equals(entry) === true;
    }
    assert(kind === 'unknown' || kind === 'unavailable', `the append is ${kind}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('no append had an outcome');
}

for (const kind of ENGINES) {
  void describe(`a journal in ${kind.name}`, { skip: kind.missing }, () => {
    let engine: Engine;
    let journal: Journal;
    let last = 0;
    /** Everything that was appended. */
    const all: Buffer[] = [];

    const append = async (text: string): Promise<void> => {
      const entry = Buffer.from(text);
      assert.deepEqual(await journal.append(entry, last), { kind: 'appended' });
      all.push(entry);
      last++;
    };

    before(async () => {
      engine = await kind.start();
      journal = await engine.open();
    });

    after(async () => {
      await journal.close();
      await engine.stop();
    });

    test('is empty at first', async () => {
      const end = await journal.end();
      assert(end.kind === 'end');
      assert.deepEqual([end.first, end.last], [1, 0]);
      assert.deepEqual(await journal.read(1, 0), { kind: 'entries', entries: [] });
    });

    test('gives a place to one of two who want it', async () => {
      const other = await engine.open();
      const outcomes = await Promise.all([
        journal.append(Buffer.from('one'), 0),
        other.append(Buffer.from('two'), 0),
      ]);
      const kinds = outcomes.map((outcome: AppendOutcome) => outcome.kind).toSorted();
      assert.deepEqual(kinds, ['appended', 'moved']);
      const winner = outcomes[0].kind === 'appended' ? 'one' : 'two';
      all.push(Buffer.from(winner));
      last = 1;
      const [entry] = await readAll(other, 1, 1);
      assert.equal(entry?.bytes.toString(), winner);
      await other.close();
    });

    test('takes nothing behind a place that is not written yet', async () => {
      const { kind: outcome } = await journal.append(Buffer.from('ahead'), last + 3);
      assert.notEqual(outcome, 'appended');
      await append('behind');
      assert.equal((await readAll(journal, 2, 1))[0]?.bytes.toString(), 'behind');
    });

    test('holds an append once that is made twice', async () => {
      const entry = Buffer.from('twice'.padEnd(100, '.'));
      assert.equal(await appendSurely(journal, entry, last), true);
      assert.equal(await appendSurely(journal, entry, last), true);
      all.push(entry);
      last++;
      await append('after it');
      const entries = await readAll(journal, 1, last);
      assert.deepEqual(
        entries.map(({ bytes }) => bytes.toString()),
        all.map((bytes) => bytes.toString()),
      );
    });

    test('wakes a reader who waits', async () => {
      const reader = await engine.open();
      const reading = readAll(reader, last + 1, 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      await append('news');
      assert.equal((await reading)[0]?.bytes.toString(), 'news');
      await reader.close();
    });

    test('takes an entry as large as it says', async () => {
      const entry = Buffer.alloc(journal.entryBytesMax, 'x');
      assert.deepEqual(await journal.append(entry, last), { kind: 'appended' });
      all.push(entry);
      last++;
      const [found] = await readAll(journal, last, 1);
      assert(found?.bytes.equals(entry));
    });

    test('tells a reader that what it asks for was trimmed, and goes on behind', async () => {
      assert.deepEqual(await journal.trim(3), { kind: 'trimmed' });
      const reader = await engine.open();
      assert.deepEqual(await reader.read(2, WAIT_MS), { kind: 'trimmed', first: 4 });
      const entries = await readAll(reader, 4, last - 3);
      assert.deepEqual(
        entries.map(({ position }) => position),
        all.slice(3).map((_, index) => index + 4),
      );
      await append('after the trim');
      await reader.close();
    });

    test('keeps the last entry, so that its place is not forgotten', async () => {
      assert.deepEqual(await journal.trim(last), { kind: 'trimmed' });
      assert.deepEqual(await journal.trim(last + 100), { kind: 'trimmed' });
      const end = await journal.end();
      assert(end.kind === 'end');
      assert.deepEqual([end.first, end.last], [last, last]);
      await append('still in its place');
    });

    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
      test(`knows in the end what came of an append while ${signal} holds it up`, async (t) => {
        const { signal: send } = engine;
        if (send === null) {
          t.skip('no process of its own');
          return;
        }
        send(signal);
        const entry = Buffer.from(`while ${signal}`);
        const first = journal.append(entry, last);
        if (signal === 'SIGKILL') await engine.restart();
        else {
          const { kind: outcome } = await first;
          // It may have been taken before the process stood still.
          assert(outcome === 'unknown' || outcome === 'appended', outcome);
          send('SIGCONT');
        }
        await first;
        assert.equal(await appendSurely(journal, entry, last), true);
        last++;
        await append(`after ${signal}`);
        const entries = await readAll(journal, last - 1, 2);
        assert.deepEqual(
          entries.map(({ bytes }) => bytes.toString()),
          [`while ${signal}`, `after ${signal}`],
        );
      });
    }
  });
}

// shell: `megaplane store import http://...`: moves a running etcd
import { guarded, pauseMs } from '@megaplane/base/deferred';
import { rmSync } from 'node:fs';
import { Follower } from '@megaplane/etcd/follower';
import { importFile } from '@megaplane/etcd/import-file';
import type { Remote } from '@megaplane/etcd/remote';
import { saveRemote } from '@megaplane/etcd/snapshot-file';
import { openStore } from '@megaplane/store/open';
import { refuseUsed } from '@megaplane/store/snapshot-writer';
import { Bytes } from '../service/byte-progress.ts';

const LOOK_EVERY_MS = 500;
/** At most one line on the lag per so long. */
const SAY_EVERY_MS = 5000;

export interface FollowOptions {
  readonly dataDir: string;
  /** Go on until a signal, not only until nothing is behind. */
  readonly isFollowing: boolean;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Resolves with the exit code. What it prints at the end says whether the data are the same. */
export async function followRemote(
  remote: Remote,
  options: FollowOptions,
  print: (fields: Readonly<Record<string, unknown>>) => void,
): Promise<number> {
  refuseUsed(options.dataDir);
  await importSnapshot(remote, options.dataDir);
  const opened = openStore({ dataDir: options.dataDir, durability: 'buffered', prefixes: [] });
  try {
    const follower = new Follower(remote, opened);
    let failure = '';
    opened.store.onLogFailure((message) => {
      failure = message;
    });
    follower.start();
    await untilLevel(follower, options.isFollowing, () => failure);
    const compared = await follower.compare();
    const leases = await follower.syncLeases();
    follower.stop();
    print({ ...compared, leases, events: follower.events, dataDir: options.dataDir });
    return 0;
  } finally {
    await opened.close();
  }
}

async function importSnapshot(remote: Remote, dataDir: string): Promise<void> {
  const file = `${dataDir.replace(/\/+$/, '')}.import.db`;
  const bars = { snapshot: new Bytes('snapshot'), checksum: new Bytes('checksum') };
  const records = new Bytes('records');
  try {
    await saveRemote(remote, file, (done, total) => bars.snapshot.show(done, total));
    bars.snapshot.finish();
    await importFile({
      ...{ file, dataDir, bumpRevision: 0, skipHashCheck: false },
      onProgress: (stage, done, total) => {
        if (stage === 'records') bars.checksum.finish();
        (stage === 'records' ? records : bars.checksum).show(done, total);
      },
    });
    records.finish();
  } finally {
    rmSync(file, { force: true });
  }
}

/** Until nothing is behind; when following, until a signal and then until nothing is behind. */
async function untilLevel(
  follower: Follower,
  isFollowing: boolean,
  failure: () => string,
): Promise<void> {
  let isAsked = !isFollowing;
  const onSignal = guarded((): void => {
    if (isAsked) process.exit(1);
    isAsked = true;
    say('stopping as soon as nothing is behind; once more stops at once');
  });
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  let saidMs = -Infinity;
  try {
    for (;;) {
      const lag = await follower.lag();
      if (failure() !== '') throw new Error(failure());
      if (lag === 0 && isAsked) return;
      if (performance.now() - saidMs > SAY_EVERY_MS) {
        saidMs = performance.now();
        say(`revision ${follower.revision}, ${lag} behind, ${follower.events} events so far`);
      }
      await pauseMs(lag > 0 ? 20 : LOOK_EVERY_MS);
    }
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

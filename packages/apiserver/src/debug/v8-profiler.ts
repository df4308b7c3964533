// shell: V8's inspector, clocks and timers
/** Takes profiles of this process by V8's own profilers. */
import { pauseMs } from '@megaplane/base/deferred';
import { Session } from 'node:inspector/promises';
import { encodeProfile } from './pprof.ts';
import type { Profiler, ProfileKind } from './profiling.ts';
import { cpuProfileOf, heapProfileOf, HEAP_NAME } from './v8-profiles.ts';

/** As Go does it: a hundred times a second, and once in half a megabyte. */
const CPU_INTERVAL_US = 10_000;
const HEAP_INTERVAL_BYTES: number = 512 * 1024;

export class V8Profiler implements Profiler {
  #isBusy = false;

  take(kind: ProfileKind, seconds: number, then: (taken: Buffer | string) => void): void {
    if (this.#isBusy) {
      then('Could not enable profiling: a profile is being taken already');
      return;
    }
    this.#isBusy = true;
    const session = new Session();
    session.connect();
    const work = kind === 'profile' ? takeCpu(session, seconds) : takeHeap(session, seconds);
    void work
      .catch((error: unknown) => `Could not enable profiling: ${String(error)}`)
      .then((taken) => {
        this.#isBusy = false;
        session.disconnect();
        then(taken);
      });
  }
}

async function takeCpu(session: Session, seconds: number): Promise<Buffer> {
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL_US });
  const startedMs = Date.now();
  await session.post('Profiler.start');
  await pause(seconds);
  const { profile } = await session.post('Profiler.stop');
  return encodeProfile(cpuProfileOf(profile, startedMs, CPU_INTERVAL_US));
}

async function takeHeap(session: Session, seconds: number): Promise<Buffer> {
  const startedMs = Date.now();
  const samplingInterval = HEAP_INTERVAL_BYTES;
  await session.post('HeapProfiler.startSampling', { samplingInterval });
  await pause(seconds);
  const { profile } = await session.post('HeapProfiler.stopSampling');
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  const other = {
    [HEAP_NAME]: heapUsed,
    'array buffers': arrayBuffers,
    'other memory of objects': Math.max(0, external - arrayBuffers),
  };
  const durationMs = seconds * 1000;
  const { head } = profile;
  return encodeProfile(heapProfileOf(head, other, startedMs, durationMs, HEAP_INTERVAL_BYTES));
}

function pause(seconds: number): Promise<void> {
  return pauseMs(seconds * 1000);
}

/** How failures slow down the making of pods: backoff_utils.go of upstream's job controller. */
import { assert } from '@megaplane/base/assert';

const BACKOFF_MS_MIN = 10_000;
const BACKOFF_MS_MAX = 600_000;

/** Failures since the last success. */
export interface JobBackoff {
  failures: number;
  lastFailureMs: number;
}

interface Ended {
  readonly endedS: number;
}

/** Takes note of pods that have ended since; whether their failure counts is no matter. */
export function noteEnds(
  backoff: JobBackoff,
  succeeded: readonly Ended[],
  failed: readonly Ended[],
): void {
  if (succeeded.length > 0) backoff.failures = backoff.lastFailureMs = 0;
  const lastSuccessS = Math.max(-Infinity, ...succeeded.map((pod) => pod.endedS));
  const after = failed.map((pod) => pod.endedS).filter((endedS) => endedS > lastSuccessS);
  if (after.length === 0) return;
  backoff.failures += after.length;
  backoff.lastFailureMs = Math.max(...after) * 1000;
}

/** How long no pod is made after so many failures; 0 where one may be. */
export function remainingMs(failures: number, lastFailureMs: number, nowMs: number): number {
  assert(failures >= 0, 'failures are counted from 0');
  if (failures === 0) return 0;
  const delayMs = Math.min(BACKOFF_MS_MIN * 2 ** Math.min(failures - 1, 20), BACKOFF_MS_MAX);
  return Math.max(0, lastFailureMs + delayMs - nowMs);
}

/** etcd's flags of automatic compaction. */
import { parseDurationMs } from '@megaplane/base/limits';
import type { AutoCompactionPolicy } from '@megaplane/etcd/auto-compaction';

const HOUR_MS = 3_600_000;

/**
 * A whole number is hours in mode `periodic` and revisions in mode `revision`; `periodic` takes a
 * duration too. 0 turns it off: null. Throws an Error that names the flag.
 */
export function compactionPolicy(mode: string, retention: string): AutoCompactionPolicy | null {
  const isNumber = /^\d+$/.test(retention);
  if (isNumber && Number(retention) === 0) return null;
  if (mode === 'revision') {
    if (isNumber) return { mode, keep: Number(retention) };
    throw new Error(`--auto-compaction-retention: ${retention} is no number of revisions`);
  }
  if (mode !== 'periodic') {
    throw new Error(`--auto-compaction-mode: ${mode} is neither periodic nor revision`);
  }
  if (isNumber) return { mode, periodMs: Number(retention) * HOUR_MS };
  const parsed = parseDurationMs(retention);
  if (parsed.kind === 'invalid' || parsed.value < 0) {
    throw new Error(`--auto-compaction-retention: ${retention} is no duration such as 30m or 12h`);
  }
  return parsed.value === 0 ? null : { mode, periodMs: parsed.value };
}

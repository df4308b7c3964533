/** `/debug/vars`, as Go's expvar prints what etcd publishes: for scripts that look there. */
import type { EtcdContext } from '../call/context.ts';
import type { ProcessSizes } from './process-stats.ts';

/** One line for each; of Go's memory what has a meaning here. */
export function varsText(
  context: EtcdContext,
  sizes: ProcessSizes,
  commandLine: readonly string[],
): string {
  const { store, term } = context;
  const id = context.memberId.toString('hex').replace(/^0+(?=.)/, '');
  const applied = store.publishedRevision;
  const progress = { [id]: { match: applied, next: applied + 1, state: 'StateReplicate' } };
  const { residentBytes, usedBytes, heapBytes } = sizes;
  const vars: Readonly<Record<string, unknown>> = {
    cmdline: commandLine,
    file_descriptor_limit: sizes.maxFds,
    memstats: {
      ...{ Alloc: usedBytes, Sys: residentBytes, HeapAlloc: usedBytes, HeapSys: heapBytes },
      ...{ HeapIdle: heapBytes - usedBytes, HeapInuse: usedBytes },
    },
    'raft.status': {
      ...{ id, term, vote: id, commit: applied, lead: id, raftState: 'StateLeader', applied },
      ...{ progress, leadtransferee: '0' },
    },
  };
  const lines = Object.entries(vars).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`);
  return `{\n${lines.join(',\n')}\n}\n`;
}

/** What is attached where, under upstream's names. */
import type { Counter, LabelValues, MetricsRegistry } from '../../framework/metrics-registry.ts';
import type { Attachment, Attachments } from './attachments.ts';

const DRIVER = 'kubernetes.io/csi:';

/** Returns what counts volumes that were detached though they may be in use. */
export function attachMetrics(board: MetricsRegistry, actual: Attachments): Counter {
  const counted = (labels: (one: Attachment) => readonly LabelValues[]) => () => {
    const counts: Map<string, [LabelValues, number]> = new Map();
    for (const values of actual.all().flatMap(labels)) {
      const key = values.join(' ');
      counts.set(key, [values, (counts.get(key)?.[1] ?? 0) + 1]);
    }
    return counts.values();
  };
  const inUse = ['node', 'volume_plugin'];
  board.reading(
    'storage_count_attachable_volumes_in_use',
    'Measure number of volumes in use',
    inUse,
    counted(({ node, volume, unwantedMs }) =>
      unwantedMs === 0 ? [[node, DRIVER + volume.driver]] : [],
    ),
  );
  board.reading(
    'attachdetach_controller_total_volumes',
    'Number of volumes in A/D Controller',
    ['plugin_name', 'state'],
    counted(({ volume, state, unwantedMs }) => {
      const of = (world: string): LabelValues => [
        DRIVER + volume.driver,
        `${world}_state_of_world`,
      ];
      const desired = unwantedMs === 0 ? [of('desired')] : [];
      return state === 'attached' || state === 'detaching' ? [...desired, of('actual')] : desired;
    }),
  );
  // Upstream's name says twice whose it is.
  const name = 'attach_detach_controller_attachdetach_controller_forced_detaches';
  return board.counter(name, 'Number of times the A/D Controller performed a forced detach', [
    'reason',
  ]);
}

/** Metrics of a coordinator, under the reference's names. */
import { Exposition } from '@megaplane/client/exposition';
import type { Coordinator } from './coordinator.ts';

const PREFIX = 'bigfleet_coordinator_';

export function coordinatorMetrics(coordinator: Coordinator): string {
  const page = new Exposition();
  const gauge = (name: string, help: string, value: number): void => {
    page.family(PREFIX + name, 'gauge', help);
    page.value({}, value);
  };
  const { leadership, registry, applied, instructions } = coordinator;
  gauge(
    'raft_term',
    'Revision of etcd at which this one began to lead; 0: it does not.',
    leadership.term,
  );
  gauge('is_leader', 'Whether this one leads.', leadership.term > 0 ? 1 : 0);
  page.family(`${PREFIX}apply_total`, 'counter', 'Changes, by how their writing ended.');
  for (const [outcome, count] of Object.entries(applied)) page.value({ outcome }, count);
  page.family(`${PREFIX}pending_instructions`, 'gauge', 'Not yet acknowledged, by shard.');
  for (const { shardId } of registry.shards.all) {
    page.value({ shard: shardId }, instructions.openFor(shardId));
  }
  page.family(`${PREFIX}records`, 'gauge', 'What is kept, by kind.');
  for (const table of registry.tables) page.value({ kind: table.word }, table.size);
  return page.toString();
}

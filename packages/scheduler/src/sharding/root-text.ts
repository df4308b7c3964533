/** What the root of live shards counts, in Prometheus' text format. */
import { Exposition } from '@megaplane/client/exposition';
import type { ShardHost } from './shard-host.ts';

export function rootText(host: ShardHost): string {
  const out = new Exposition();
  const { counts, members, feed, epoch, traffic } = host;
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): void => {
    out.family(`megaplane_scheduler_shards_${name}`, type, help);
    out.value({}, value);
  };
  one('members', 'gauge', 'Shards that nodes are shared out over.', members.length);
  one('epoch', 'counter', 'Changes of the members so far.', epoch);
  out.family('megaplane_scheduler_shards_nodes', 'gauge', 'Nodes by shard.');
  for (const shard of members) out.value({ shard }, feed.nodesOf(shard));
  out.family('megaplane_scheduler_shards_decisions_total', 'counter', 'Tries by how they ended.');
  for (const [outcome, count] of Object.entries(counts.outcomes)) out.value({ outcome }, count);
  one('rounds_total', 'counter', 'Rounds that were asked.', traffic.rounds);
  one('round_seconds_total', 'counter', 'From a round to the last answer.', traffic.seconds);
  one('late_total', 'counter', 'Rounds that were given up.', counts.late);
  one('dropped_total', 'counter', 'Children that had to join anew for being late.', counts.dropped);
  one('moved_nodes_total', 'counter', 'Nodes that a shard was told of whole.', feed.moved);
  one('sent_bytes_total', 'counter', 'Octets sent to children.', traffic.sentBytes);
  one('read_bytes_total', 'counter', 'Octets of their answers.', traffic.readBytes);
  return out.toString();
}

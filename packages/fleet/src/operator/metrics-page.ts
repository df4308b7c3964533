/** Metrics of an operator, under the reference's names. */
import { Exposition } from '@megaplane/client/exposition';
import type { Operator } from './operator.ts';

const PREFIX = 'bigfleet_operator_';
export function operatorMetrics(operator: Operator): string {
  const page = new Exposition();
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): void => {
    page.family(PREFIX + name, type, help);
    page.value({}, value);
  };
  const { session, status, nodes, measures } = operator;
  page.family(`${PREFIX}rollup_duration_seconds`, 'histogram', 'Building of roll-ups.');
  page.histogram({}, measures.rollUpSeconds);
  one('rollups_total', 'counter', 'Roll-ups that were offered to the session.', measures.rollUps);
  one('rollup_bytes', 'gauge', 'Size of the last one.', measures.rollUpBytes);
  one('acknowledged_total', 'counter', 'Requests that were acknowledged.', status.acknowledged);
  one('status_failures_total', 'counter', 'Writes of status that failed.', status.failures);
  const reconnects = Math.max(0, session.metrics.sessions - 1);
  one('session_reconnects_total', 'counter', 'Sessions after the first one.', reconnects);
  one('session_open', 'gauge', 'Whether a session is open.', session.isOpen ? 1 : 0);
  one(
    'outbox_dropped_total',
    'counter',
    'Frames that were replaced or dropped.',
    session.metrics.dropped,
  );
  one('malformed_total', 'counter', 'Frames that were none.', session.metrics.malformed);
  page.family(`${PREFIX}upcoming_node_writes_total`, 'counter', 'Writes of UpcomingNodes.');
  for (const [key, count] of nodes.writes) {
    const [op = '', outcome = ''] = key.split('/');
    page.value({ op, outcome }, count);
  }
  one('dispatch_inflight', 'gauge', 'UpcomingNodes that are being written.', nodes.inFlight);
  return page.toString();
}

/** `/debug/api_priority_and_fairness/*`: levels, queues and requests, in upstream's tables. */
import type { Call } from '../request/call.ts';
import type { Fairness } from './fairness.ts';
import type { Ticket } from './flow-queues.ts';
import type { Held } from './held-request.ts';

export const DUMPS_PATH = '/debug/api_priority_and_fairness/';
const CELL_WIDTH_MIN = 8;

/** Answers one of the dumps; false where the path names none. */
export function answerDump(fairness: Fairness, call: Call): boolean {
  const rows = rowsOf(fairness, call);
  if (rows === null) return false;
  call.send(200, 'text/plain; charset=utf-8', table(rows));
  return true;
}

function rowsOf(fairness: Fairness, call: Call): string[][] | null {
  switch (call.info.path.slice(DUMPS_PATH.length)) {
    case 'dump_priority_levels':
      return dumpLevels(fairness);
    case 'dump_queues':
      return dumpQueues(fairness);
    case 'dump_requests':
      return dumpRequests(fairness, call);
    default:
      return null;
  }
}

/** Columns as Go's tabwriter aligns them: all but the last end in a comma. */
function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? CELL_WIDTH_MIN, cell.length + 2);
    }
  }
  const lines = rows.map((row) =>
    row
      .map((cell, index) => {
        const isLast = index === row.length - 1;
        return isLast ? cell : `${cell},`.padEnd(widths[index] ?? 0);
      })
      .join(''),
  );
  return `${lines.join('\n')}\n`;
}

function dumpLevels({ config }: Fairness): string[][] {
  const head = [
    'PriorityLevelName',
    'ActiveQueues',
    'IsIdle',
    'IsQuiescing',
    'WaitingRequests',
    'ExecutingRequests',
    'DispatchedRequests',
    'RejectedRequests',
    'TimedoutRequests',
    'CancelledRequests',
  ];
  const levels = config.levels.all().toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rows = levels.map((level) => [
    level.name,
    ...[
      level.queues.active().filter((queue) => queue.waiting > 0).length,
      level.isIdle,
      level.isQuiescing,
      level.waiting,
      level.executing,
      level.dispatched,
      level.rejected,
      // upstream counts those as cancelled, and nothing here
      0,
      level.cancelled,
    ].map(String),
  ]);
  return [head, ...rows];
}

function dumpQueues({ config }: Fairness): string[][] {
  const head = [
    'PriorityLevelName',
    'Index',
    'PendingRequests',
    'ExecutingRequests',
    'SeatsInUse',
    'NextDispatchR',
    'InitialSeatsSum',
    'MaxSeatsSum',
    'TotalWorkSum',
  ];
  const rows: string[][] = [];
  for (const level of config.levels.all()) {
    if (level.config.type !== 'queue') continue;
    const active = new Map(level.queues.active().map((queue) => [queue.index, queue]));
    for (let index = 0; index < level.queues.shape.queues; index++) {
      const queue = active.get(index);
      const seats = queue?.seatsWaiting ?? 0;
      rows.push([
        level.name,
        ...[index, queue?.waiting ?? 0, queue?.executing ?? 0, queue?.seatsInUse ?? 0].map(String),
        seatSeconds(queue?.nextR ?? 0),
        String(seats),
        String(seats),
        // 3 ms for each, as long as nothing else is known
        seatSeconds(seats * 3),
      ]);
    }
  }
  return [head, ...rows];
}

function seatSeconds(seatMs: number): string {
  return `${(seatMs / 1000).toFixed(8)}ss`;
}

function dumpRequests(fairness: Fairness, call: Call): string[][] {
  const isDetailed = call.query.text('includeRequestDetails') !== '';
  const head = [
    'PriorityLevelName',
    'FlowSchemaName',
    'QueueIndex',
    'RequestIndexInQueue',
    'FlowDistingsher',
    'ArriveTime',
    'InitialSeats',
    'FinalSeats',
    'AdditionalLatency',
    'StartTime',
  ];
  if (isDetailed) {
    const more = 'UserName,Verb,APIPath,Namespace,Name,APIVersion,Resource,SubResource';
    head.push(...more.split(','));
  }
  const rows: string[][] = [];
  for (const level of fairness.config.levels.all()) {
    for (const queue of level.queues.active()) {
      for (const [place, ticket] of queue.list().entries()) {
        rows.push(requestRow(queue.index, place, ticket, isDetailed));
      }
    }
  }
  for (const ticket of fairness.executing()) {
    const isQueued = ticket.request.route.level.config.type === 'queue';
    const index = isQueued ? (ticket.queue?.index ?? -1) : -1;
    rows.push(requestRow(index, -1, ticket, isDetailed));
  }
  return [head, ...rows];
}

/** `place` is -1 for what runs. */
function requestRow(
  queue: number,
  place: number,
  ticket: Ticket<Held>,
  isDetailed: boolean,
): string[] {
  const { waiter, verb, route, distinguisher } = ticket.request;
  const { level, schema } = route;
  const startedMs = waiter.nowMs + ticket.startedMs - ticket.arrivedMs;
  const row = [
    level.name,
    schema.name,
    String(queue),
    String(place),
    level.config.type === 'queue' ? distinguisher : '',
    new Date(waiter.nowMs).toISOString(),
    String(ticket.seats),
    '0',
    '0s',
    place >= 0 ? '0001-01-01T00:00:00Z' : new Date(startedMs).toISOString(),
  ];
  if (isDetailed) {
    const { info, identity } = waiter;
    const version = info.group === '' ? info.version : `${info.group}/${info.version}`;
    row.push(identity.user, verb, info.path, info.namespace, info.name);
    row.push(version, info.resource, info.subresource);
  }
  return row;
}

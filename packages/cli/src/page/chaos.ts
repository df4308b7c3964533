/** Scenarios of `nodes chaos`, begun and ended from the page. */
import type { Client } from '@megaplane/client/client';
import { addFault, listFaults, removeFaults } from '@megaplane/nodes/chaos/fault-list';
import type { Fault } from '@megaplane/nodes/chaos/fault';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';

const ZONE_LABEL = 'topology.kubernetes.io/zone';
const ZONE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const SECONDS_MAX = 86_400;
const PERIOD_MS_MIN = 1000;

/** Faults of now. */
export function faults(client: Client): Promise<readonly Fault[]> {
  return listFaults(client);
}

/** Begins a fault, or returns a text for people that says what is wrong with the question. */
export async function beginFault(client: Client, asked: JsonValue): Promise<Fault | string> {
  if (!isObject(asked)) return 'one object is needed';
  const { kind, zone = '', percent, seconds, periodSeconds = 60 } = asked;
  if (kind !== 'down' && kind !== 'flap') return 'kind: down or flap is needed';
  if (typeof zone !== 'string' || (zone !== '' && !ZONE.test(zone))) return 'zone: no such name';
  if (typeof percent !== 'number' || !(percent > 0 && percent <= 100)) {
    return 'percent: a number above 0 and up to 100 is needed';
  }
  if (typeof seconds !== 'number' || !(seconds >= 1 && seconds <= SECONDS_MAX)) {
    return `seconds: a number from 1 to ${SECONDS_MAX} is needed`;
  }
  const periodMs = Number(periodSeconds) * 1000;
  if (!(periodMs >= PERIOD_MS_MIN)) return 'periodSeconds: 1 or more is needed';
  const fault = {
    kind,
    selector: zone === '' ? '' : `${ZONE_LABEL}=${zone}`,
    names: [],
    percent,
    untilMs: client.timers.wallMs() + seconds * 1000,
    periodMs: kind === 'flap' ? periodMs : 0,
  } as const;
  return addFault(client, fault, () => undefined);
}

/** Ends a fault; true if it was there. */
export async function endFault(client: Client, id: string): Promise<boolean> {
  return (await removeFaults(client, [id], () => undefined)).length > 0;
}

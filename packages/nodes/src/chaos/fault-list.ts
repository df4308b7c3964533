/** Adds and removes faults in the ConfigMap that simulators watch. */
import { STATUS_NONE, type Client } from '@megaplane/client/client';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FAULTS_KEY, FAULTS_MAX, FAULTS_NAME, FAULTS_NAMESPACE, readFaults } from './fault.ts';
import type { Fault } from './fault.ts';
import { persist, PERSIST_MS } from './persist.ts';

const COLLECTION = `/api/v1/namespaces/${FAULTS_NAMESPACE}/configmaps`;
/** Others may write at the same time; so often it is tried again. */
const TRIES_MAX = 10;

/** Faults that stand in the list, those that are over left out. */
export async function listFaults(client: Client): Promise<readonly Fault[]> {
  const answer = await client.request({ method: 'GET', path: `${COLLECTION}/${FAULTS_NAME}` });
  if (answer.ok) return withoutOld(client, readFaults(answer.object));
  if (answer.code === 404) return [];
  throw new Error(answer.status.message ?? 'the faults cannot be read');
}

/** Adds a fault; resolves with it under the name that it got. */
export async function addFault(
  client: Client,
  fault: Omit<Fault, 'id'>,
  log: (message: string) => void,
): Promise<Fault> {
  let added: Fault | null = null;
  await change(client, log, (faults) => {
    if (faults.length >= FAULTS_MAX) throw new Error(`there are ${FAULTS_MAX} faults already`);
    const last = Math.max(0, ...faults.map(({ id }) => Number(/^f(\d+)$/.exec(id)?.[1] ?? 0)));
    added = { id: `f${last + 1}`, ...fault };
    return [...faults, added];
  });
  if (added === null) throw new Error('the fault was not added');
  return added;
}

/** Removes faults by their names; none given: all. Resolves with those that were there. */
export async function removeFaults(
  client: Client,
  ids: readonly string[],
  log: (message: string) => void,
): Promise<readonly Fault[]> {
  let removed: readonly Fault[] = [];
  await change(client, log, (faults) => {
    removed = faults.filter(({ id }) => ids.length === 0 || ids.includes(id));
    return faults.filter((fault) => !removed.includes(fault));
  });
  return removed;
}

function withoutOld(client: Client, faults: readonly Fault[]): readonly Fault[] {
  const nowMs = client.timers.wallMs();
  return faults.filter(({ untilMs }) => untilMs === 0 || untilMs > nowMs);
}

async function change(
  client: Client,
  log: (message: string) => void,
  next: (faults: readonly Fault[]) => readonly Fault[],
): Promise<void> {
  const path = `${COLLECTION}/${FAULTS_NAME}`;
  let written = '';
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const found = await persist(client, { method: 'GET', path }, PERSIST_MS, log);
    if (!found.ok && found.code !== 404) throw new Error(found.status.message ?? 'no answer');
    // the answer to what was written was lost, and it is there
    if (found.ok && written !== '' && stringAt(found.object, 'data', FAULTS_KEY) === written)
      return;
    const faults = next(found.ok ? withoutOld(client, readFaults(found.object)) : []);
    written = JSON.stringify(faults);
    const data = { [FAULTS_KEY]: written };
    const fresh: JsonObject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: FAULTS_NAME, namespace: FAULTS_NAMESPACE },
      data,
    };
    const answer = found.ok
      ? await client.request({ method: 'PUT', path, body: { ...found.object, data } })
      : await client.request({ method: 'POST', path: COLLECTION, body: fresh });
    if (answer.ok) return;
    const isUnknown = answer.code === STATUS_NONE || answer.code === 429 || answer.code >= 500;
    if (!isUnknown && answer.code !== 409)
      throw new Error(answer.status.message ?? 'the fault list is refused');
  }
  throw new Error(`the list of faults changed ${TRIES_MAX} times while it was written`);
}

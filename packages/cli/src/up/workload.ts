/**
 * The pods that `up --pods N` wants: `res-0` and on, in namespace `default`, each owned by the
 * first, so that deleting `res-0` lets the garbage collector remove them all. Those that a data
 * directory has already are counted, and only what lacks is created.
 */
import { guarded } from '@megaplane/base/deferred';
import { asBuffer } from '@megaplane/base/bytes';
import type { Client, ClientResponse } from '@megaplane/client/client';
import { CONTENT, STATUS_NONE } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { readPages } from '@megaplane/client/pager';
import { findPath, pathOf, stringValue } from '@megaplane/machinery/scan';

const PATH = '/api/v1/namespaces/default/pods';
const LABEL = 'app=res';
const NAME = pathOf('metadata', 'name');
const LIST_ITEMS = 2000;
const RETRY_MS = 500;
const FIRST_POD_MS_MAX = 20_000;

/** The body of pod number `index`; `ownerUid` is that of pod 0, '' for pod 0 itself. */
export function podBody(index: number, ownerUid: string): string {
  const owners =
    ownerUid === ''
      ? ''
      : `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"res-0","uid":"${ownerUid}"}],`;
  return (
    `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"res-${index}",${owners}` +
    '"labels":{"app":"res"}},"spec":{"terminationGracePeriodSeconds":1,"tolerations":' +
    '[{"key":"kwok.x-k8s.io/node","operator":"Exists","effect":"NoSchedule"}],"containers":' +
    '[{"name":"main","image":"registry.k8s.io/pause:3.10","resources":{"requests":' +
    '{"cpu":"100m","memory":"64Mi"}}}]}}'
  );
}

/**
 * Sees to it that pods 0 to `count` exist, as fast as the client takes them. Rejects when one is
 * refused; stops early, resolving, once `signal` is aborted.
 */
export async function createPods(
  client: Client,
  count: number,
  signal: AbortSignal,
): Promise<void> {
  if (count === 0) return;
  const found = await firstPod(client, signal);
  if (signal.aborted) return;
  if (!found.ok) throw new Error(`cannot create pod res-0: ${found.status.message}`);
  const uid = (found.object['metadata'] as { readonly uid?: string }).uid ?? '';
  const exists = await existing(client, count);
  if (!signal.aborted) await createOwned(client, exists, uid, signal);
}

/** Whether a pod of the workload is not bound yet (`bound`), or not past Pending (`running`). */
export async function lacksPods(client: Client, what: 'bound' | 'running'): Promise<boolean> {
  const fieldSelector = what === 'bound' ? 'spec.nodeName=' : 'status.phase=Pending';
  const query = { labelSelector: LABEL, fieldSelector, limit: '1' };
  const found = await client.request({ method: 'GET', path: withQuery(PATH, query) });
  return !found.ok || (found.object['items'] as readonly unknown[]).length > 0;
}

/** Which of the pods 0 to `count` the cluster has: a 1 at the index of each. */
async function existing(client: Client, count: number): Promise<Uint8Array> {
  const found = new Uint8Array(count);
  const result = await readPages({
    client,
    path: PATH,
    labelSelector: LABEL,
    limit: LIST_ITEMS,
    onItem: (bytes, start, end) => {
      const name = stringValue(asBuffer(bytes), findPath(bytes, start, end, NAME), end);
      const index = /^res-(0|[1-9]\d*)$/.exec(name)?.[1];
      if (index !== undefined && Number(index) < count) found[Number(index)] = 1;
    },
  });
  if (!result.ok) throw new Error(`cannot list the pods that exist: ${result.status.message}`);
  return found;
}

/** Where no controller of this cluster makes the service account it may still be on its way. */
async function firstPod(client: Client, signal: AbortSignal): Promise<ClientResponse> {
  const endMs = client.timers.nowMs() + FIRST_POD_MS_MAX;
  for (;;) {
    const made = await client.request({ method: 'POST', path: PATH, body: podBody(0, '') });
    if (made.ok) return made;
    if (made.code === 409) return client.request({ method: 'GET', path: `${PATH}/res-0` });
    if (made.code !== 403 || client.timers.nowMs() > endMs || signal.aborted) return made;
    await new Promise<void>((resolve) => client.timers.after(RETRY_MS, resolve));
  }
}

/** Creates the pods whose mark in `exists` is 0. */
function createOwned(
  client: Client,
  exists: Uint8Array,
  ownerUid: string,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const again: number[] = [];
    let next = exists.indexOf(0);
    let lacking = exists.reduce((sum, one) => sum - one, exists.length);
    const pump = (): void => {
      if (signal.aborted || lacking === 0) return resolve();
      while (client.room() > 0 && (again.length > 0 || next >= 0)) {
        const index = again.pop() ?? next;
        const isTaken = client.send(
          'POST',
          PATH,
          CONTENT.json,
          podBody(index, ownerUid),
          onAnswer,
          index,
        );
        if (index === next) next = exists.indexOf(0, next + 1);
        if (isTaken) continue;
        again.push(index);
        return;
      }
    };
    const onAnswer = (
      status: number,
      bytes: Uint8Array,
      start: number,
      end: number,
      index: number,
    ): void => {
      if (status === 201 || status === 409) {
        lacking--;
        pump();
      } else if (status === STATUS_NONE || status === 429 || status >= 500) {
        again.push(index);
        client.timers.after(RETRY_MS, pump);
      } else {
        const text = Buffer.from(bytes.subarray(start, end)).toString('utf8');
        reject(new Error(`pod res-${index} is refused (${status}): ${text.slice(0, 500)}`));
      }
    };
    signal.addEventListener(
      'abort',
      guarded(() => resolve()),
    );
    client.onRoom(pump);
    pump();
  });
}

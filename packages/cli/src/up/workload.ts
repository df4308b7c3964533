/**
 * The pods that `up --pods N` creates: `res-0` and on, in namespace `default`, each owned by the
 * first, so that deleting `res-0` lets the garbage collector remove them all.
 */
import type { Client, ClientResponse } from '@megaplane/client/client';
import { CONTENT, STATUS_NONE } from '@megaplane/client/client';

const PATH = '/api/v1/namespaces/default/pods';
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

/** Creates `count` pods as fast as the client takes them. Rejects when one is refused. */
export async function createPods(client: Client, count: number): Promise<void> {
  if (count === 0) return;
  const found = await firstPod(client);
  if (!found.ok) throw new Error(`cannot create pod res-0: ${found.status.message}`);
  const uid = (found.object['metadata'] as { readonly uid?: string }).uid ?? '';
  await createOwned(client, count, uid);
}

/** In a cluster seconds old the service account that pods need may still be on its way. */
async function firstPod(client: Client): Promise<ClientResponse> {
  const endMs = client.timers.nowMs() + FIRST_POD_MS_MAX;
  for (;;) {
    const made = await client.request({ method: 'POST', path: PATH, body: podBody(0, '') });
    if (made.ok) return made;
    if (made.code === 409) return client.request({ method: 'GET', path: `${PATH}/res-0` });
    if (made.code !== 403 || client.timers.nowMs() > endMs) return made;
    await new Promise<void>((resolve) => client.timers.after(RETRY_MS, resolve));
  }
}

function createOwned(client: Client, count: number, ownerUid: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const again: number[] = [];
    let next = 1;
    let done = 1;
    const pump = (): void => {
      while (client.room() > 0 && (again.length > 0 || next < count)) {
        const index = again.pop() ?? next++;
        if (client.send('POST', PATH, CONTENT.json, podBody(index, ownerUid), onAnswer, index))
          continue;
        again.push(index);
        return;
      }
      if (done === count) resolve();
    };
    const onAnswer = (
      status: number,
      bytes: Uint8Array,
      start: number,
      end: number,
      index: number,
    ): void => {
      if (status === 201 || status === 409) {
        done++;
        pump();
      } else if (status === STATUS_NONE || status === 429 || status >= 500) {
        again.push(index);
        client.timers.after(RETRY_MS, pump);
      } else {
        const text = Buffer.from(bytes.subarray(start, end)).toString('utf8');
        reject(new Error(`pod res-${index} is refused (${status}): ${text.slice(0, 500)}`));
      }
    };
    client.onRoom(pump);
    pump();
  });
}

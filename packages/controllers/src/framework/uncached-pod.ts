/** A pod as the server has it, for those who make what it needs: an informer may be behind. */
import type { Client } from '@megaplane/client/client';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';

/** Where the pod of a key (`namespace/name`) is. */
export function podPath(key: string): string {
  const [namespace = '', name = ''] = key.split('/');
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

type Over = 'done' | 'retry';

/** The pod, or how the work on it ends: it is gone, going or over, or cannot be read now. */
export async function livePod(client: Client, key: string): Promise<JsonObject | Over> {
  const answer = await client.request({ method: 'GET', path: podPath(key) });
  if (!answer.ok) return answer.code === 404 ? 'done' : 'retry';
  const pod = answer.object;
  const phase = stringAt(pod, 'status', 'phase');
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  return isOver || stringAt(pod, 'metadata', 'deletionTimestamp') !== '' ? 'done' : pod;
}

import type { Client } from '@megaplane/client/client';

const PATH = '/api/v1/namespaces/default/serviceaccounts/default';
const RETRY_MS = 50;
const WAIT_MS_MAX = 20_000;

/**
 * Resolves once namespace `default` has the service account that admission wants of every pod, or
 * `signal` is aborted: a user who is told that the cluster is there may create pods in it at once.
 * The result is false where nobody made it in time.
 */
export async function awaitDefaultAccount(client: Client, signal: AbortSignal): Promise<boolean> {
  const endMs = client.timers.nowMs() + WAIT_MS_MAX;
  while (!signal.aborted) {
    if ((await client.request({ method: 'GET', path: PATH })).ok) return true;
    if (client.timers.nowMs() >= endMs) return false;
    await new Promise<void>((resolve) => client.timers.after(RETRY_MS, resolve));
  }
  return false;
}

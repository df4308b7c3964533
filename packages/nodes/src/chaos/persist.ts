/** Requests that may be repeated: what is begun is brought to its end though servers fail. */
import type { Client, ClientRequest, ClientResponse } from '@megaplane/client/client';
import { isPassing } from '../client/retry.ts';

/** So long a server may be away in the middle of work that changes nodes. */
export const PERSIST_MS = 120_000;
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 8000;

/** The answer, or after `durationMs` the last failure; `log` hears why somebody has to wait. */
export async function persist(
  client: Client,
  request: ClientRequest,
  durationMs: number,
  log: (message: string) => void,
): Promise<ClientResponse> {
  const { timers } = client;
  const endMs = timers.nowMs() + durationMs;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2)) {
    const answer = await client.request(request);
    if (answer.ok || !isPassing(answer.code) || timers.nowMs() >= endMs) return answer;
    if (pauseMs === PAUSE_MS_MIN) {
      log(`${answer.status.message ?? `the server answers ${answer.code}`}; trying on`);
    }
    const jitteredMs = pauseMs * (1 + client.random());
    await new Promise<void>((resolve) => timers.after(jitteredMs, resolve));
  }
}

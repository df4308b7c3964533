/** What events cost API servers that follow a journal: one, and three. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENT } from '@megaplane/client/client';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import * as harness from '../harness.ts';

const WATCHERS_EACH = 300;
const CONNECTIONS_EACH = 3;
const OBJECTS = 200;
const WRITES = 8;
const FILLER = 'x'.repeat(600);
const MAPS = '/api/v1/namespaces/default/configmaps';
const LINE_FEED = 10;

interface Watching {
  readonly pid: number;
  readonly client: KubeClient;
  readonly readers: readonly KubeClient[];
  events: number;
  open: number;
  stop(): Promise<void>;
}

async function startServer(journal: string, dir: string): Promise<Watching> {
  const flags = ['apiserver', '--data-dir', dir, '--secure-port', '0', '--journal', journal];
  const server = await harness.startMegaplane(flags, '0,1');
  const kubeconfig = join(dir, 'kubeconfig');
  const client = await createKubeClient({ kubeconfig, limits: { connections: 1 } });
  const readers = await Promise.all(
    Array.from({ length: CONNECTIONS_EACH }, () =>
      createKubeClient({ kubeconfig, limits: { connections: 1 } }),
    ),
  );
  const stop = async (): Promise<void> => {
    for (const one of [client, ...readers]) one.close();
    await server.stop();
  };
  return { pid: server.pid, client, readers, events: 0, open: 0, stop };
}

function watchAll(server: Watching, count: number, from: string): void {
  for (let at = 0; at < count; at++) {
    server.readers[at % CONNECTIONS_EACH]?.stream(`${MAPS}?watch=1&resourceVersion=${from}`, {
      onHead: (status) => {
        if (status === 200) server.open++;
      },
      onData: (bytes, start, end) => {
        for (let found = bytes.indexOf(LINE_FEED, start); found >= 0 && found < end;) {
          server.events++;
          found = bytes.indexOf(LINE_FEED, found + 1);
        }
      },
      onEnd: () => {},
    });
  }
}

let round = 0;

async function write(client: KubeClient, index: number, isNew: boolean): Promise<void> {
  const name = `m-${index}`;
  const data = { filler: FILLER, round: `${++round}` };
  const body = isNew ? { metadata: { name }, data } : { data: { round: data.round } };
  const answer = await client.request({
    method: isNew ? 'POST' : 'PATCH',
    path: isNew ? MAPS : `${MAPS}/${name}`,
    contentType: isNew ? CONTENT.json : CONTENT.mergePatch,
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`a write failed: ${JSON.stringify(answer)}`);
}

/** Events that each server tells in a second of its processor, all servers together. */
async function capacity(servers: readonly Watching[], seconds: number): Promise<number> {
  const [writer] = servers;
  if (writer === undefined) throw new Error('no server');
  const list = await writer.client.request({ method: 'GET', path: `${MAPS}?limit=1` });
  if (!list.ok) throw new Error('no list');
  const { resourceVersion } = list.object['metadata'] as { resourceVersion: string };
  for (const server of servers) watchAll(server, WATCHERS_EACH, resourceVersion);
  while (servers.some(({ open }) => open < WATCHERS_EACH)) await sleep(20);
  const before = servers.map(({ pid, events }) => ({ cpu: harness.cpuSecondsExact(pid), events }));
  const endMs = performance.now() + seconds * 1000;
  for (let index = 0; performance.now() < endMs; index += WRITES) {
    const some = Array.from({ length: WRITES }, (_, at) => (index + at) % OBJECTS);
    await Promise.all(some.map((at) => write(writer.client, at, false)));
  }
  await sleep(500);
  return servers.reduce((sum, { pid, events }, at) => {
    const then = before[at];
    if (then === undefined) return sum;
    return sum + (events - then.events) / (harness.cpuSecondsExact(pid) - then.cpu);
  }, 0);
}

/** Writes are made at the first server; each has as many watches of everything. */
export async function watchCost(
  journal: string,
  dir: string,
  seconds: number,
): Promise<Readonly<Record<string, number>>> {
  const servers: Watching[] = [];
  try {
    servers.push(await startServer(journal, join(dir, 'api-0')));
    const [first] = servers;
    if (first === undefined) throw new Error('no server');
    for (let at = 0; at < OBJECTS; at += WRITES) {
      const some = Array.from({ length: WRITES }, (_one, i) => at + i).filter((i) => i < OBJECTS);
      await Promise.all(some.map((index) => write(first.client, index, true)));
    }
    const one = await capacity([first], seconds);
    await first.stop();
    servers.length = 0;
    for (let at = 0; at < 3; at++) {
      servers.push(await startServer(journal, join(dir, `three-${at}`)));
    }
    const three = await capacity(servers, seconds);
    return { 'one: events/cpu s': one, 'three: events/cpu s': three, ratio: three / one };
  } finally {
    for (const server of servers) await server.stop();
  }
}

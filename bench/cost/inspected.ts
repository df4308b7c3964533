/**
 * A cluster of `megaplane up` whose processes can be asked what they hold: each is started with
 * V8's inspector on a free port of 127.0.0.1. Its figures are those after a collection of garbage,
 * so that what is still held can be told from what merely was not collected yet.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { adopt } from '../children.ts';
import { cpuSecondsExact, ROOT, rssMib, UP_PARTS, upPids } from '../harness.ts';

export type Part = 'up' | (typeof UP_PARTS)[number];
export const PARTS: readonly Part[] = ['up', ...UP_PARTS];

/** What a process holds. Memory in KiB, after a collection. */
export interface Held {
  /** Objects of JavaScript, and what is kept for them outside: buffers, columns, native code. */
  readonly liveKib: number;
  readonly heapKib: number;
  readonly residentKib: number;
  readonly cpuSeconds: number;
  readonly descriptors: number;
  readonly timers: number;
  /** Everything else that keeps an event loop busy: sockets, watchers, requests. */
  readonly handles: number;
}

export interface Inspected {
  readonly kubeconfig: string;
  readonly pids: ReadonlyMap<Part, number>;
  /** Asks one after the other: collections of two processes do not stand in each other's way. */
  held(): Promise<Map<Part, Held>>;
  /** Writes a heap snapshot of a process, for the developer's tools of a browser. */
  snapshot(part: Part, file: string): Promise<void>;
  stop(): Promise<void>;
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly chunk?: string };
  readonly error?: { readonly message: string };
  readonly result?: { readonly result?: { readonly value?: string } };
}

const ASK = `JSON.stringify({
  memory: process.memoryUsage(),
  resources: process.getActiveResourcesInfo(),
})`;
/** One collection finds what the one before has let go: finalizers, weak maps. */
const COLLECTIONS = 2;
const CONNECT_MS_MAX = 30_000;
const LOOK_MS = 100;

/** One connection to the inspector of a process. */
class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting: Map<number, (reply: Reply) => void> = new Map();
  #next = 1;
  onChunk: (chunk: string) => void = () => {};

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const reply = JSON.parse(String(data)) as Reply;
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply);
      else if (reply.method === 'HeapProfiler.addHeapSnapshotChunk') {
        this.onChunk(reply.params?.chunk ?? '');
      }
    });
    socket.addEventListener('close', () => {
      for (const answer of this.#waiting.values()) answer({ error: { message: 'it has ended' } });
    });
  }

  async ask(method: string, params: object = {}): Promise<Reply> {
    const id = this.#next++;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    this.#waiting.set(id, resolve);
    this.#socket.send(JSON.stringify({ id, method, params }));
    const reply = await promise;
    this.#waiting.delete(id);
    if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
    return reply;
  }

  close(): void {
    this.#socket.close();
  }
}

/** Ports on which a process listens, by the tables of the kernel. */
function listensOf(pid: number): number[] {
  const own = new Set<string>();
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    const found = /^socket:\[(\d+)\]$/.exec(readLink(`/proc/${pid}/fd/${name}`))?.[1];
    if (found !== undefined) own.add(found);
  }
  const ports: number[] = [];
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    const isListening = fields[3] === '0A';
    if (!isListening || !own.has(fields[9] ?? '')) continue;
    ports.push(Number.parseInt(fields[1]?.split(':')[1] ?? '', 16));
  }
  return ports;
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** The address of the inspector, asked on each port: the others do not answer so. */
async function addressOf(pid: number): Promise<string> {
  for (const endMs = performance.now() + CONNECT_MS_MAX; performance.now() < endMs;) {
    for (const port of listensOf(pid)) {
      const address = await inspectorAt(port);
      if (address !== undefined) return address;
    }
    await sleep(LOOK_MS);
  }
  throw new Error(`process ${pid} has no inspector`);
}

async function inspectorAt(port: number): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(1000);
    const answer = await fetch(`http://127.0.0.1:${port}/json/list`, { signal });
    const [first] = (await answer.json()) as { readonly webSocketDebuggerUrl?: string }[];
    return first?.webSocketDebuggerUrl;
  } catch {
    return undefined;
  }
}

async function openInspector(pid: number): Promise<Inspector> {
  const socket = new WebSocket(await addressOf(pid));
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error(`no inspector of ${pid}`)));
  });
  return new Inspector(socket);
}

async function heldBy(pid: number, inspector: Inspector): Promise<Held> {
  for (let left = COLLECTIONS; left > 0; left--) await inspector.ask('HeapProfiler.collectGarbage');
  const { result } = await inspector.ask('Runtime.evaluate', { expression: ASK });
  const { memory, resources } = JSON.parse(result?.result?.value ?? '') as {
    readonly memory: NodeJS.MemoryUsage;
    readonly resources: readonly string[];
  };
  const timers = resources.filter((one) => one === 'Timeout' || one === 'Immediate').length;
  return {
    liveKib: (memory.heapUsed + memory.external) / 1024,
    heapKib: memory.heapUsed / 1024,
    residentKib: rssMib(pid) * 1024,
    cpuSeconds: cpuSecondsExact(pid),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    timers,
    handles: resources.length - timers,
  };
}

/** Starts one with so many simulated nodes, which are ready when it resolves. */
export async function startInspected(
  nodes: number,
  flags: readonly string[] = [],
): Promise<Inspected> {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const own = ['--nodes', String(nodes), '--data-dir', dataDir, '--secure-port', '0'];
  const args = [entry, 'up', ...own, '--page-port', '0', '--output', 'json', ...flags];
  const up = adopt(
    spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '--inspect=127.0.0.1:0 --inspect-publish-uid=http' },
    }),
  );
  const inspectors: Map<Part, Inspector> = new Map();
  const stop = async (): Promise<void> => {
    for (const inspector of inspectors.values()) inspector.close();
    const ended = up.exitCode === null ? once(up, 'exit') : undefined;
    up.kill('SIGINT');
    await ended;
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    const ended = once(up, 'exit').then(() => {
      throw new Error(`up ended with code ${up.exitCode}`);
    });
    const [chunk] = (await Promise.race([once(up.stdout, 'data'), ended])) as [Buffer];
    ended.catch(() => undefined);
    const { kubeconfig } = JSON.parse(chunk.toString()) as { readonly kubeconfig: string };
    const parent = up.pid ?? 0;
    const pids = new Map(PARTS.map((part, at) => [part, [parent, ...upPids(parent)][at] ?? 0]));
    for (const [part, pid] of pids) inspectors.set(part, await openInspector(pid));
    return {
      ...{ kubeconfig, pids, stop },
      async held() {
        const found = new Map<Part, Held>();
        for (const [part, inspector] of inspectors) {
          found.set(part, await heldBy(pids.get(part) ?? 0, inspector));
        }
        return found;
      },
      snapshot: (part, file) => writeSnapshot(inspectors.get(part), file),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function writeSnapshot(inspector: Inspector | undefined, file: string): Promise<void> {
  if (inspector === undefined) return;
  const out = openSync(file, 'w');
  inspector.onChunk = (chunk) => void writeSync(out, chunk);
  await inspector.ask('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  closeSync(out);
}

// shell: asks programs for their metrics, and the kernel for their processes
/**
 * Where the figures of a cluster come from: the metrics of its programs over HTTP, and of the
 * programs of this machine memory and processor time.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { readFileSync } from 'node:fs';
import type { Client } from '@megaplane/client/client';
import { processUsage } from './process-usage.ts';
import type { Families } from './exposition.ts';
import { readFamilies } from './exposition.ts';

/** A program of the cluster. */
export interface Source {
  readonly name: string;
  /** 0: it does not run on this machine. */
  readonly pid: number;
  /** URL of its metrics; '' where none is known: those of the API server are asked of itself. */
  readonly metrics: string;
}

/** What was seen of a program at a moment. */
export interface Seen {
  readonly name: string;
  readonly families: Families;
  readonly rssMib: number;
  readonly rssPeakMib: number;
  readonly cpuSeconds: number;
}

/** All programs at a moment. */
export interface Look {
  readonly timeMs: number;
  /** By a clock that nobody sets. */
  readonly steadyMs: number;
  readonly seen: ReadonlyMap<string, Seen>;
  readonly troubles: readonly string[];
}

const SCRAPE_MS_MAX = 10_000;
/** More is no page of metrics of ours. */
const SCRAPE_BYTES_MAX = 32 * 2 ** 20;
const NOTHING: Families = new Map();

/** Looks at all programs at once. One that does not answer is named among the troubles. */
export async function lookAt(
  sources: readonly Source[],
  client: Client,
  wanted: ReadonlySet<string>,
): Promise<Look> {
  const troubles: string[] = [];
  const seen = new Map<string, Seen>();
  const steadyMs = performance.now();
  await Promise.all(
    sources.map(async (source) => {
      let families = NOTHING;
      try {
        const text = await metricsOf(source, client);
        if (text !== null) families = readFamilies(text, wanted);
      } catch (error) {
        troubles.push(`${source.name}: ${(error as Error).message}`);
      }
      const usage = source.pid === 0 ? undefined : processUsage(source.pid);
      seen.set(source.name, {
        name: source.name,
        families,
        rssMib: usage?.rssMib ?? NaN,
        rssPeakMib: usage?.rssPeakMib ?? NaN,
        cpuSeconds: usage?.cpuSeconds ?? NaN,
      });
    }),
  );
  return { timeMs: Date.now(), steadyMs, seen, troubles };
}

/** The text of its metrics; null where it has none. Rejects with the reason. */
async function metricsOf(source: Source, client: Client): Promise<string | null> {
  if (source.name === 'apiserver' && source.metrics === '') return metricsOfServer(client);
  if (source.metrics === '') return null;
  const signal = AbortSignal.timeout(SCRAPE_MS_MAX);
  let response: Response;
  try {
    response = await fetch(source.metrics, { signal, redirect: 'error' });
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: string } };
    throw new Error(`${source.metrics} does not answer (${cause?.code ?? String(error)})`, {
      cause: error,
    });
  }
  if (!response.ok) throw new Error(`${source.metrics} answers ${response.status}`);
  return boundedText(response);
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > SCRAPE_BYTES_MAX) throw new Error(`more than ${SCRAPE_BYTES_MAX} bytes of metrics`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Through the client, whose credentials the server wants. */
function metricsOfServer(client: Client): Promise<string> {
  return new Promise((resolve, reject) => {
    const isTaken = client.send('GET', '/metrics', '', null, (status, bytes, start, end) => {
      const text = Buffer.from(bytes.subarray(start, end)).toString('utf8');
      if (status === 200) return resolve(text);
      return reject(new Error(status === 0 ? `does not answer (${text})` : `answers ${status}`));
    });
    if (!isTaken) reject(new Error('too many requests wait for it'));
  });
}

/** The file that `up` keeps true: which programs it runs. */
export interface ProcessFile {
  readonly processes: readonly Source[];
}

/** The programs that a file names; none where it is not there, or not readable as such. */
export function readProcesses(file: string): readonly Source[] {
  try {
    const { processes } = parseNested(readFileSync(file, 'utf8')) as ProcessFile;
    return processes;
  } catch {
    // written anew in one step; before the first time there is none
    return [];
  }
}

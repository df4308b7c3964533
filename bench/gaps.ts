/**
 * Which numbered objects are missing on any server, and which of the nodes or pods there are not
 * ready: read page by page. Ends with code 1 where some are.
 *
 *     node bench/gaps.ts --kubeconfig F --resource nodes --prefix node- --count 100000
 */
import { readPages } from '@megaplane/client/pager';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { isReady } from '@megaplane/nodes/node-scan';
import { COMMON, flagsOf, namespaceOf, needed, usage, whole } from './load/flags.ts';
import { openClients } from './load/requests.ts';
import { writeResults } from './harness.ts';

const PATHS: Readonly<Record<string, string>> = {
  pods: '/api/v1/namespaces/{namespace}/pods',
  nodes: '/api/v1/nodes',
  leases: '/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases',
};
const values = flagsOf(
  {
    ...COMMON,
    prefix: { type: 'string', default: 'node-' },
    resource: { type: 'string', default: 'nodes' },
    namespace: { type: 'string', default: 'default' },
    /** Ranges that are printed. */
    show: { type: 'string', default: '20' },
    /** Nodes and pods that are there but not ready count as missing. */
    ready: { type: 'boolean', default: false },
  },
  'bench gaps: which numbered objects are missing',
);
const path = PATHS[values.resource];
if (path === undefined) usage(`--resource: one of ${Object.keys(PATHS).join(', ')} is needed`);
const collection = (path ?? '').replace('{namespace}', namespaceOf(values.namespace));
const shown = whole('show', values.show);
const first = whole('skip', values.skip);
const count = whole('count', values.count, 1);
const seen = new Uint8Array(count);
const scan = new ObjectScan();
const prefix = Buffer.from(values.prefix);
/** As numbered objects are named: `node-07` and `node-` are others. */
const NUMBER = /^(0|[1-9]\d*)$/;
let others = 0;

function note(bytes: Uint8Array, start: number, end: number): void {
  if (!scan.scan(bytes, start, end)) return;
  const name = Buffer.from(
    bytes.buffer,
    bytes.byteOffset + scan.nameStart,
    scan.nameEnd - scan.nameStart,
  );
  const isOurs = name.subarray(0, prefix.length).equals(prefix);
  const digits = isOurs ? name.toString('latin1', prefix.length) : '';
  const at = NUMBER.test(digits) ? Number(digits) - first : NaN;
  if (Number.isNaN(at) || at < 0 || at >= count) others++;
  else seen[at] = !values.ready || isReady(bytes, scan.statusStart, scan.statusEnd) ? 1 : 2;
}

const [client] = await openClients(needed('kubeconfig', values.kubeconfig), 1, 4);
if (client === undefined) throw new Error('no client');
const startMs = performance.now();
const result = await readPages({
  client,
  path: collection,
  onItem: note,
});
client.close();
if (!result.ok) throw new Error(result.status.message ?? 'the collection cannot be read');
const ranges: string[] = [];
let missing = 0;
let unready = 0;
for (let at = 0; at < count; at++) {
  if (seen[at] === 1) continue;
  const from = at;
  const kind = seen[at];
  while (at + 1 < count && seen[at + 1] === kind) at++;
  const size = at - from + 1;
  if (kind === 0) missing += size;
  else unready += size;
  const text = size === 1 ? `${first + from}` : `${first + from}-${first + at}`;
  ranges.push(kind === 0 ? text : `${text} (not ready)`);
}
const seconds = (performance.now() - startMs) / 1000;
for (const range of ranges.slice(0, shown)) process.stdout.write(`${values.prefix}${range}\n`);
if (ranges.length > shown) process.stdout.write(`... and ${ranges.length - shown} more ranges\n`);
const summary = `${missing} of ${count} ${values.resource} are missing, ${unready} are not ready`;
process.stdout.write(`${summary}, ${others} are others; read in ${seconds.toFixed(1)} s\n`);
writeResults(values.output, { missing, unready, others, seconds });
process.exitCode = missing + unready > 0 ? 1 : 0;

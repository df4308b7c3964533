/**
 * Creates Nodes on any server: zones and kinds of machines in turn, addresses for their pods, and a
 * run that was cut off is taken up again.
 *
 *     node bench/nodes.ts --kubeconfig F --count 100000
 *     node bench/nodes.ts --kubeconfig F --count 1000 --machines small:4:16Gi:110,big:64:256Gi:250
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { canonicalQuantity } from '@megaplane/machinery/quantity';
import { networkOf } from '@megaplane/nodes/pod-addresses';
import { flagsOf, LOAD, loadNumbers, needed, prefixOf, usage, whole } from './load/flags.ts';
import { judgeCreate, openClients, printResult, runLoad } from './load/requests.ts';
import { writeResults } from './harness.ts';

const values = flagsOf(
  {
    ...LOAD,
    prefix: { type: 'string', default: 'kwok-node-' },
    'pods-per-node': { type: 'string', default: '32' },
    /** Nodes with one value of the label kwok-group. */
    'per-group': { type: 'string', default: '10000' },
    zones: { type: 'string', default: 'zone-a,zone-b,zone-c' },
    /** `name:cpu:memory[:pods]`, dealt in turn. */
    machines: { type: 'string', default: 'simulated-32:32:256Gi' },
    /** Each node gets the next /24 of it; '' for none. */
    'pod-cidr': { type: 'string', default: '' },
    taint: { type: 'string', default: 'kwok.x-k8s.io/node=fake:NoSchedule' },
    annotation: { type: 'string', default: 'kwok.x-k8s.io/node=fake' },
    label: { type: 'string', multiple: true, default: [] },
  },
  'bench nodes: creates Nodes on any server',
);

interface Machine {
  readonly name: string;
  readonly resources: JsonObject;
}

function machineOf(text: string): Machine {
  const [name = '', cpu = '', memory = '', pods = values['pods-per-node']] = text.split(':');
  if (name === '' || cpu === '' || memory === '') {
    usage(`--machines: ${text} is not name:cpu:memory or name:cpu:memory:pods`);
  }
  for (const quantity of [cpu, memory, pods]) {
    const isOne = canonicalQuantity(quantity) !== undefined;
    if (!isOne) usage(`--machines: ${text}: ${quantity} is no quantity, such as 4 or 16Gi`);
  }
  return { name, resources: { cpu, memory, pods, 'ephemeral-storage': '1Ti' } };
}

function pair(flag: string, text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at <= 0) usage(`--${flag}: ${text} is not name=value`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function taintOf(text: string): JsonObject {
  const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text);
  if (match === null) usage(`--taint: ${text} is not key=value:Effect`);
  return { key: match?.[1] ?? '', value: match?.[2] ?? '', effect: match?.[3] ?? '' };
}

const zones = values.zones.split(',').filter((zone) => zone !== '');
const machines = values.machines.split(',').map(machineOf);
const taints = values.taint === '' ? [] : [taintOf(values.taint)];
const annotations = values.annotation === '' ? [] : [pair('annotation', values.annotation)];
const labels = values.label.map((text) => pair('label', text));
const perGroup = whole('per-group', values['per-group'], 1);
const cidr = /^(\d+)\.(\d+)\.\d+\.\d+\/(\d+)$/.exec(values['pod-cidr']);
const isCidr =
  cidr !== null && Number(cidr[3]) <= 24 && networkOf(values['pod-cidr']) !== undefined;
if (values['pod-cidr'] !== '' && !isCidr) {
  usage(`--pod-cidr: ${values['pod-cidr']} is no IPv4 network of /8 to /24, such as 10.0.0.0/8`);
}

const subnets = 2 ** (24 - Number(cidr?.[3] ?? 0));
const numbers = loadNumbers(values);
const last = numbers.first + numbers.count;
prefixOf('prefix', values.prefix, last);
if (cidr !== null && last > subnets) {
  usage(`--pod-cidr: ${values['pod-cidr']} has ${subnets} networks of /24, not ${last}`);
}

/** The `index`th /24 of the network. */
function podCidr(index: number): JsonObject {
  if (cidr === null) return {};
  const at = Number(cidr[1]) * 65_536 + Number(cidr[2]) * 256 + index;
  const own = `${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}.0/24`;
  return { podCIDR: own, podCIDRs: [own] };
}

function body(index: number): string {
  const name = `${values.prefix}${index}`;
  const machine = machines[index % machines.length];
  const zone = zones[index % Math.max(1, zones.length)];
  return JSON.stringify({
    kind: 'Node',
    apiVersion: 'v1',
    metadata: {
      name,
      annotations: Object.fromEntries([...annotations, ['node.alpha.kubernetes.io/ttl', '300']]),
      labels: {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'kubernetes.io/hostname': name,
        'kwok-group': String(Math.floor(index / perGroup)),
        'node.kubernetes.io/instance-type': machine?.name,
        ...(zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone }),
        type: 'kwok',
        ...Object.fromEntries(labels),
      },
    },
    spec: { ...podCidr(index), ...(taints.length > 0 ? { taints } : {}) },
    status: { allocatable: machine?.resources, capacity: machine?.resources },
  });
}

const clients = await openClients(
  needed('kubeconfig', values.kubeconfig),
  numbers.clients,
  numbers.inFlight,
);
const result = await runLoad({
  ...numbers,
  clients,
  what: 'nodes',
  shot: (index) => ({ method: 'POST', path: '/api/v1/nodes', body: body(index) }),
  judge: judgeCreate,
});
printResult('nodes', result);
const { done, seconds, latencyMs } = result;
writeResults(values.output, { nodes: done, seconds, p99Ms: latencyMs.quantile(0.99) });
for (const client of clients) client.close();

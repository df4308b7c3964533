/** A plan as people and programs read it. */
import { gatewayOf, nodeOf, podPrefix, podsPerNode, type Plan } from './plan.ts';
import { GroupCounter } from './group-counter.ts';
import { parseAddress, prefixText } from './prefix.ts';

/** Lines that are put together before they are written. */
const CHUNK_LINES = 4096;
/** Nodes that the table shows without being asked for more. */
const SHOWN = [0, 1, 2] as const;

/** One node of the plan. */
export interface PlannedNode {
  readonly index: number;
  readonly podCIDR: string;
  readonly gateway: string;
}

export function plannedNode(plan: Plan, index: number): PlannedNode {
  const prefix = podPrefix(plan, index);
  return { index, podCIDR: prefixText(prefix), gateway: gatewayOf(prefix) };
}

/** The flags by which each program takes the plan. */
export function flagsOf(plan: Plan): Readonly<Record<string, readonly string[]>> {
  const cidr = prefixText(plan.base);
  const services = prefixText(plan.services);
  return {
    apiserver: ['--service-cluster-ip-range', services],
    controllers: [
      ...['--allocate-node-cidrs=true', '--node-cidr-allocator', 'plan', '--cluster-cidr', cidr],
      ...['--node-cidr-mask-size-ipv6', `${plan.nodeLength}`],
      ...['--service-cluster-ip-range', services],
    ],
    nodes: ['--cidr', `plan:${cidr}/${plan.nodeLength}`],
    'kube-proxy': ['--proxy-mode=nftables', '--detect-local-mode=BridgeInterface'],
  };
}

export function planJson(plan: Plan): string {
  const { provider } = plan;
  return `${JSON.stringify(
    {
      base: prefixText(plan.base),
      nodes: plan.nodes,
      nodePrefixLength: plan.nodeLength,
      indexBits: plan.indexBits,
      nodesMax: plan.nodesMax,
      podsPerNode: podsPerNode(plan).toString(),
      services: prefixText(plan.services),
      first: plannedNode(plan, 0),
      last: plannedNode(plan, plan.nodes - 1),
      flags: flagsOf(plan),
      provider: {
        ...{ name: provider.name, given: provider.given, mode: provider.mode },
        ...{ facts: provider.facts, steps: provider.steps },
      },
      warnings: plan.warnings,
    },
    null,
    2,
  )}\n`;
}

export function planText(plan: Plan): string {
  const { base, nodes, nodeLength, provider } = plan;
  const rows: (readonly [string, string])[] = [
    ['base', prefixText(base)],
    ['nodes', `${count(nodes)}, at most ${count(plan.nodesMax)}`],
    ['a node', `/${nodeLength}: ${podsPerNode(plan).toLocaleString('en-US')} addresses for pods`],
    ['services', prefixText(plan.services)],
    ['provider', `${provider.name} (--mode ${provider.mode})`],
  ];
  const lines = rows.map(([name, value]) => `${name.padEnd(10)}${value}`);
  lines.push('', `${'node'.padEnd(10)}${'pods'.padEnd(44)}bridge`);
  const shown = [...new Set([...SHOWN.filter((at) => at < nodes), nodes - 1])];
  for (const index of shown) {
    const { podCIDR, gateway } = plannedNode(plan, index);
    lines.push(`${String(index).padEnd(10)}${podCIDR.padEnd(44)}${gateway}`);
  }
  lines.push('', 'What the provider does:', ...provider.facts.map((fact) => `  ${fact}`));
  lines.push('', 'What to do there:');
  lines.push(...provider.steps.map((step, at) => `  ${at + 1}. ${step}`));
  lines.push('', 'Flags:');
  for (const [program, flags] of Object.entries(flagsOf(plan))) {
    lines.push(`  ${program.padEnd(12)}${flags.join(' ')}`);
  }
  const { podCIDR } = plannedNode(plan, 0);
  lines.push('', 'On node 0:');
  lines.push(
    `  megaplane network node --uplink eth0 --pod-cidr ${podCIDR} --mode ${provider.mode}`,
  );
  if (plan.warnings.length > 0) lines.push('', ...plan.warnings.map((text) => `Note: ${text}`));
  return `${lines.join('\n')}\n`;
}

/** All nodes, a line each, in pieces: the whole is never held. */
export function* planLines({ base, nodeLength, nodes }: Plan): Generator<string> {
  const groups = new GroupCounter(base.base, nodeLength);
  let chunk = '';
  for (let index = 0; index < nodes; index++) {
    chunk += `${index} ${groups.text(0)}/${nodeLength} ${groups.text(1)}\n`;
    groups.next();
    if (index % CHUNK_LINES !== CHUNK_LINES - 1) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}

/** Which node has an address, as a line; a text that says that none has it is a failure. */
export function lookUp(
  plan: Plan,
  text: string,
): { readonly line?: string; readonly why?: string } {
  const address = parseAddress(text);
  if (address === undefined) return { why: `--address: ${text} is no address` };
  const index = address.bits === 128 ? nodeOf(plan, address.value) : -1;
  if (index < 0) return { why: `${text} is no pod's of this plan` };
  const { podCIDR } = plannedNode(plan, index);
  return { line: `${index} ${podCIDR}\n` };
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

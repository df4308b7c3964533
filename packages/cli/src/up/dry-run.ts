/** What `up --dry-run` says: everything that would be started, and nothing is. */
import { clusterBytes } from './capacity.ts';
import { childPlan, pagePlan, paths } from './plan.ts';
import type { UpOptions } from './plan.ts';
import { quoted } from './summary.ts';

/** What is asked of the machine. */
export interface DryRunFacts {
  readonly memoryBytes: number;
  /** Is there a cluster in the data directory? */
  readonly hasData: boolean;
}

const TEMPORARY = '(a temporary directory, removed at the end)';

interface PlannedProcess {
  readonly name: string;
  readonly command: readonly string[];
  readonly runtimeFlags: readonly string[];
}

/** For people: where, how large, and each command as an operator would type it. */
export function dryRunText(asked: UpOptions, facts: DryRunFacts): string {
  const options = shown(asked);
  const { dataDir } = options;
  const state = asked.ephemeral ? '' : facts.hasData ? ' (has a cluster)' : ' (made anew)';
  const server =
    options.securePort === 0
      ? 'https://127.0.0.1 at a free port'
      : `https://127.0.0.1:${options.securePort}`;
  const lines = [
    'would start, and starts nothing:',
    '',
    `cluster       ${server}`,
    `data          ${dataDir}${state}`,
    `kubeconfig    ${kubeconfigOf(options)}`,
    `nodes         ${options.nodes.toLocaleString('en-US')}`,
    `pods          ${options.pods.toLocaleString('en-US')}`,
    `memory        about ${gib(neededBytes(options))} of ${gib(facts.memoryBytes)}`,
    '',
    ...processes(options).map(({ command }) => `  ${command.map(quoted).join(' ')}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** For programs: the same as one JSON object. */
export function dryRunJson(asked: UpOptions, facts: DryRunFacts): string {
  const options = shown(asked);
  return `${JSON.stringify({
    dryRun: true,
    dataDir: asked.ephemeral ? null : options.dataDir,
    hasData: facts.hasData,
    securePort: options.securePort,
    kubeconfig: asked.ephemeral && asked.kubeconfig === undefined ? null : kubeconfigOf(options),
    nodes: options.nodes,
    pods: options.pods,
    memoryBytes: neededBytes(options),
    machineBytes: facts.memoryBytes,
    processes: processes(options),
  })}\n`;
}

function shown(asked: UpOptions): UpOptions {
  return asked.ephemeral ? { ...asked, dataDir: TEMPORARY } : asked;
}

function kubeconfigOf({ kubeconfig, dataDir }: UpOptions): string {
  return kubeconfig ?? paths(dataDir).administrator;
}

function neededBytes({ components, nodes, pods }: UpOptions): number {
  return clusterBytes(components.includes('nodes') ? nodes : 0, pods);
}

function processes(options: UpOptions): PlannedProcess[] {
  const plans = options.components.map((component) => childPlan(component, options));
  const page = pagePlan(options);
  return [...plans, ...(page === undefined ? [] : [page])].map(({ name, args, runtimeFlags }) => ({
    name,
    command: ['megaplane', ...args],
    runtimeFlags,
  }));
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

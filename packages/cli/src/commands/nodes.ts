/** `megaplane nodes`: simulated kubelets for any Kubernetes API server. */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { parse } from 'yaml';
import { addLogOptions, logger } from '../logging.ts';
import type { LogFlags } from '../logging.ts';
import { serve } from '../service.ts';
import { wholeNumber, words } from '../usage.ts';

interface Flags extends LogFlags {
  readonly kubeconfig: string;
  readonly manageAllNodes?: true;
  readonly manageNodesWithLabelSelector: string;
  readonly cidr: string;
  readonly config?: readonly string[];
  readonly nodeLeaseDurationSeconds: number;
  readonly create: number;
  readonly nodeTemplate?: string;
  readonly zones: readonly string[];
  readonly connections: number;
  readonly metricsAddress: string;
}

export function nodesCommand(done: (exitCode: number) => void): Command {
  const command = new Command('nodes')
    .summary('simulated kubelets for any Kubernetes API server')
    .description(
      'Registers simulated nodes, renews their leases and runs the pods bound to them.\n\n' +
        'Example: megaplane nodes --kubeconfig ./megaplane-data/kubeconfig --create 100',
    )
    .optionsGroup('Cluster:')
    .requiredOption('--kubeconfig <file>', 'how to reach the API server')
    .option('--connections <count>', 'connections to the server', wholeNumber(1, 1000), 2)
    .optionsGroup('Nodes:')
    .option('--create <count>', 'register node-0 and on', wholeNumber(0, 100_000_000), 0)
    .option('--node-template <file>', 'a Node in YAML or JSON that the created ones look like')
    .option('--zones <names>', 'zones dealt to the created nodes in turn', words, [
      'zone-a',
      'zone-b',
      'zone-c',
    ])
    .option('--manage-all-nodes', 'simulate every node of the cluster (the default)')
    .option('--manage-nodes-with-label-selector <selector>', 'simulate only these', '')
    .option('--node-lease-duration-seconds <seconds>', '0 = no leases', wholeNumber(0, 86_400), 40)
    .optionsGroup('Pods:')
    .option('--cidr <network>', 'addresses of the pods, /8 to /30', '10.0.0.0/9')
    .option(
      '--config <files...>',
      "kwok's Stage files, or sets that come along: fast, general, chaos, volume",
    )
    .optionsGroup('Run:')
    .option(
      '--metrics-address <host:port>',
      'of /metrics and /healthz; port 0 = a free one',
      '127.0.0.1:10247',
    );
  return addLogOptions(command).action(async (flags: Flags) => {
    done(
      await serve(async () => {
        const { runNodes } = await import('@megaplane/nodes/simulator');
        return runNodes({
          kubeconfig: flags.kubeconfig,
          create: flags.create,
          ...(flags.nodeTemplate === undefined
            ? {}
            : { template: readTemplate(flags.nodeTemplate) }),
          zones: flags.zones,
          labelSelector: flags.manageNodesWithLabelSelector,
          cidr: flags.cidr,
          stages: flags.config ?? [],
          leaseDurationSeconds: flags.nodeLeaseDurationSeconds,
          connections: flags.connections,
          metricsAddress: flags.metricsAddress,
          log: logger(flags),
        });
      }),
    );
  });
}

function readTemplate(file: string): Record<string, never> {
  const found: unknown = parse(readFileSync(file, 'utf8'));
  const isNode = typeof found === 'object' && found !== null && 'kind' in found;
  if (!isNode || found.kind !== 'Node') throw new Error(`--node-template: ${file} holds no Node`);
  return found as Record<string, never>;
}

/** `megaplane nodes`: simulated kubelets for any Kubernetes API server. */
import { putMember } from '@megaplane/base/members';
import { Command } from 'commander';
import { parse } from 'yaml';
import { addKwokFlags, kwokWarning, managedConflict } from '../flags/kwok-flags.ts';
import { addLogOptions, logger } from '../service/logging.ts';
import type { LogFlags } from '../service/logging.ts';
import { readNamed } from '../flags/named-file.ts';
import { serve } from '../service/service.ts';
import { flagValue, oneOf, wholeNumber, words } from '../parsers/flag-parsers.ts';
import type { KwokFile } from '@megaplane/nodes/stages/stage-sets';
import { chaosCommand } from './nodes-chaos.ts';
import type { NodesOptions } from '@megaplane/nodes/nodes-options';

type Fidelity = 'lean' | 'kwok' | 'kubelet';
const FIDELITY = oneOf(['lean', 'kwok', 'kubelet']);

interface Flags extends LogFlags {
  readonly kubeconfig: string;
  readonly connections: number;
  readonly manageAllNodes?: boolean;
  readonly manageSingleNode: string;
  readonly manageNodesWithLabelSelector: string;
  readonly manageNodesWithAnnotationSelector: string;
  readonly disregardStatusWithLabelSelector: string;
  readonly disregardStatusWithAnnotationSelector: string;
  readonly cidr: string;
  readonly config?: readonly string[];
  readonly nodeLeaseDurationSeconds: number;
  readonly create: number;
  readonly nodeTemplate?: string;
  readonly zones: readonly string[];
  readonly shard: string;
  readonly fidelity: Fidelity;
  readonly kubeletCalls: string;
  readonly enableCrds: readonly string[];
  readonly serverAddress: string;
  readonly metricsAddress?: string;
  readonly metricsApi?: true;
  readonly nodeIp: string;
  readonly nodeName: string;
  readonly nodePort: number;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly clientCaFile?: string;
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
    .option('--connections <count>', 'connections to the server', wholeNumber(1, 1000), 2);
  addNodeOptions(command);
  addPortOptions(command);
  addKwokFlags(command);
  command.addCommand(chaosCommand(done));
  return addLogOptions(command).action(async (given: Flags) => {
    done(
      await serve(async () => {
        const { readKwokFiles } = await import('@megaplane/nodes/stages/kwok-files');
        const files = readKwokFiles('--config', given.config ?? []);
        const flags = await withConfiguration(command, given, files);
        const conflict = managedConflict(flags);
        if (conflict !== '') command.error(`error: ${conflict}`);
        const log = logger(flags);
        const warning = kwokWarning(command);
        if (warning !== '') log('warn', warning);
        const { runNodes } = await import('@megaplane/nodes/simulator');
        const options: NodesOptions = {
          kubeconfig: flags.kubeconfig,
          create: flags.create,
          ...(flags.nodeTemplate === undefined
            ? {}
            : { template: readTemplate(flags.nodeTemplate) }),
          zones: flags.zones,
          ...selectorsOf(flags),
          cidr: flags.cidr,
          files,
          shard: flags.shard,
          fidelity: flags.fidelity,
          kubeletCalls: flags.kubeletCalls,
          enableCrds: flags.enableCrds,
          leaseDurationSeconds: flags.nodeLeaseDurationSeconds,
          connections: flags.connections,
          serverAddress: flags.metricsAddress ?? flags.serverAddress,
          tls: await tlsOf(flags),
          metricsApi: flags.metricsApi ?? false,
          endpoint: { port: flags.nodePort, hostname: flags.nodeName, nodeIp: flags.nodeIp },
          log,
        };
        await judge(command, options);
        return runNodes(options);
      }),
    );
  });
}

/** What is wrong with a flag is wrong usage, as where its parser tells it. */
async function judge(command: Command, options: NodesOptions): Promise<void> {
  const { validateOptions } = await import('@megaplane/nodes/validate-options');
  try {
    validateOptions(options);
  } catch (error) {
    command.error(`error: ${(error as Error).message}`);
  }
}

function addNodeOptions(command: Command): void {
  command
    .optionsGroup('Nodes:')
    .option('--create <count>', 'register node-0 and on', wholeNumber(0, 100_000_000), 0)
    .option('--node-template <file>', 'a Node in YAML or JSON that the created ones look like')
    .option('--zones <names>', 'zones dealt to the created nodes in turn', words, [
      'zone-a',
      'zone-b',
      'zone-c',
    ])
    .option('--manage-all-nodes [bool]', 'simulate every node (the default)', flagValue)
    .option('--manage-single-node <name>', 'simulate only this one', '')
    .option('--manage-nodes-with-label-selector <selector>', 'simulate only these', '')
    .option('--manage-nodes-with-annotation-selector <selector>', 'simulate only these', '')
    .option('--fidelity <as>', 'lean, kwok (one holder of leases) or kubelet', FIDELITY, 'lean')
    .option('--kubelet-calls <list>', 'only these, or -name: all but these (see the docs)', '')
    .option('--shard <i/n>', 'our part of several simulators: 0/4, or auto', '')
    .option('--node-lease-duration-seconds <seconds>', '0 = no leases', wholeNumber(0, 86_400), 40)
    .optionsGroup('Pods:')
    .option(
      '--cidr <networks>',
      'addresses of pods: IPv4 of /8 to /30, IPv6, or both; plan:BASE/LENGTH: a network a node',
      '10.0.0.0/9',
    )
    .option(
      '-c, --config <files...>',
      "kwok's files and directories, or sets: fast, general, jobs, chaos, volume, metrics",
    )
    .option(
      '--enable-crds <kinds>',
      "kwok's kinds read from the server (default: those that reach nothing on this machine)",
      words,
      [],
    )
    .option('--disregard-status-with-label-selector <selector>', 'leave these alone', '')
    .option('--disregard-status-with-annotation-selector <selector>', 'leave these alone', '');
}

function addPortOptions(command: Command): void {
  command
    .optionsGroup("The kubelets' port (logs, exec, attach, port-forward, metrics):")
    .option(
      '--server-address <host:port>',
      'of TLS for API servers, and of /metrics and /healthz without; port 0 = a free one',
      '127.0.0.1:10247',
    )
    .option('--metrics-address <host:port>', 'another name of --server-address')
    .option('--metrics-api', 'serve metrics.k8s.io to the API server, for kubectl top')
    .option('--node-ip <address>', 'of nodes without one (default: by their names)', '')
    .option('--node-name <host>', "under which every node's kubelet is reached", '')
    .option('--node-port <port>', 'under which it is (0 = as listened)', wholeNumber(0, 65_535), 0)
    .option('--tls-cert-file <file>', 'serving certificate (default: made at each start)')
    .option('--tls-private-key-file <file>', 'its key')
    .option('--client-ca-file <file>', 'of client certificates (default: as the cluster says)');
}

type SelectorFlags = Pick<
  Flags,
  | 'manageSingleNode'
  | 'manageNodesWithLabelSelector'
  | 'manageNodesWithAnnotationSelector'
  | 'disregardStatusWithLabelSelector'
  | 'disregardStatusWithAnnotationSelector'
>;

function selectorsOf(flags: SelectorFlags): {
  readonly labelSelector: string;
  readonly annotationSelector: string;
  readonly singleNode: string;
  readonly disregardLabels: string;
  readonly disregardAnnotations: string;
} {
  return {
    labelSelector: flags.manageNodesWithLabelSelector,
    annotationSelector: flags.manageNodesWithAnnotationSelector,
    singleNode: flags.manageSingleNode,
    disregardLabels: flags.disregardStatusWithLabelSelector,
    disregardAnnotations: flags.disregardStatusWithAnnotationSelector,
  };
}

/** Options of a KwokConfiguration count where the command line says nothing. */
async function withConfiguration(
  command: Command,
  flags: Flags,
  files: readonly KwokFile[],
): Promise<Flags> {
  const { readKwokDefaults } = await import('@megaplane/nodes/stages/kwok-configuration');
  const merged: Record<string, unknown> = { ...flags };
  const log = logger(flags);
  let hasPort = false;
  let isAddressKnown = command.getOptionValueSource('serverAddress') === 'cli';
  for (const { name, text, isSet } of files) {
    if (isSet) continue;
    const found = readKwokDefaults(name, text, (message) => log('warn', message));
    for (const [option, value] of Object.entries(found)) {
      if (command.getOptionValueSource(option) !== 'cli') putMember(merged, option, value);
    }
    if (found.serverAddress !== undefined) isAddressKnown = true;
    if ((found.nodePort ?? 0) !== 0) hasPort = true;
  }
  // as kwok: files that tell a port and no address are served to the whole network
  if (hasPort && !isAddressKnown) merged['serverAddress'] = `0.0.0.0:${String(merged['nodePort'])}`;
  return merged as unknown as Flags;
}

async function tlsOf({ tlsCertFile, tlsPrivateKeyFile, clientCaFile, nodeName }: Flags): Promise<{
  readonly certificate: string;
  readonly key: string;
  readonly clientCa: string | undefined;
}> {
  const clientCa =
    clientCaFile === undefined ? undefined : textOf('--client-ca-file', clientCaFile);
  if ((tlsCertFile === undefined) !== (tlsPrivateKeyFile === undefined)) {
    throw new Error('--tls-cert-file and --tls-private-key-file belong together');
  }
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined) {
    return {
      certificate: textOf('--tls-cert-file', tlsCertFile),
      key: textOf('--tls-private-key-file', tlsPrivateKeyFile),
      clientCa,
    };
  }
  const { makeServingCertificate } = await import('../service/serving-certificate.ts');
  return { ...makeServingCertificate(nodeName === '' ? [] : [nodeName]), clientCa };
}

function textOf(flag: string, file: string): string {
  return readNamed(flag, file).toString();
}

function readTemplate(file: string): Record<string, never> {
  const found: unknown = parse(textOf('--node-template', file));
  const isNode = typeof found === 'object' && found !== null && 'kind' in found;
  if (!isNode || found.kind !== 'Node') throw new Error(`--node-template: ${file} holds no Node`);
  return found as Record<string, never>;
}

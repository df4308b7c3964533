// shell: standard output
/** `megaplane network`: the addresses of a cluster, from the plan to a node. */
import { Command, Option } from 'commander';
import { list, oneOf, wholeNumber } from '../parsers/flag-parsers.ts';
import type { NetworkNodeFlags } from './network-node.ts';
import { configCommand, nat64Command, policyCommand, tunnelCommand } from './gateway-commands.ts';

export type { NetworkNodeFlags } from './network-node.ts';

const EXIT_USAGE = 2;
const NODES_MAX = 16_777_216;
const STATE_DIR = '/var/lib/megaplane';
const PROVIDER_NAMES = ['shared', 'routed', 'vultr', 'gcp', 'aws'] as const;
const NEIGHBOURS = 65_536;

interface PlanFlags {
  readonly base: string;
  readonly nodes: number;
  readonly nodePrefix: number;
  readonly services?: string;
  readonly provider: (typeof PROVIDER_NAMES)[number];
  readonly node?: number;
  readonly address?: string;
  readonly all?: true;
  readonly svg?: string;
  readonly output: 'text' | 'json';
}

export function networkCommand(done: (exitCode: number) => void): Command {
  const command = new Command('network')
    .summary('addresses of pods: plan, node, gateway, policy')
    .description(
      'A prefix of IPv6 for each node, no overlay and no NAT: plans it, and sets nodes up.\n\n' +
        'Example: megaplane network plan --base fd00:10::/76 --nodes 1000000',
    );
  command.addCommand(planCommand(done));
  const node = new Command('node')
    .summary('make this machine a node of the network')
    .description(
      'Sets the kernel up, makes a bridge without the uplink, writes the list of CNI plugins and ' +
        'the plugin that answers for pods on a shared segment. Run it again after changes.\n\n' +
        'Example: megaplane network node --uplink eth0 --pod-cidr 2001:db8::a:0:0/96',
    )
    .option('--down', 'take all of it back')
    .option('--force', 'with --down: also while pods run')
    .option('--dry-run', 'only print what would be done');
  command.addCommand(
    addNetworkFlags(node, STATE_DIR).action(async (flags: NetworkNodeFlags) => {
      const { networkNode } = await import('./network-node.ts');
      done(await networkNode(flags));
    }),
  );
  command.addCommand(nat64Command(done));
  command.addCommand(tunnelCommand(done));
  command.addCommand(policyCommand(done));
  command.addCommand(configCommand(done));
  return command;
}

/** Flags of the network of a node, here and where a node joins. */
export function addNetworkFlags(command: Command, stateDir: string): Command {
  return command
    .option('--uplink <interface>', 'by which the node reaches the others')
    .option('--pod-cidr <prefixes>', "of the node's pods: IPv6, and perhaps one of IPv4", list, [])
    .addOption(
      new Option('--mode <how>', 'proxy: neighbours ask for pods; route: a router sends them')
        .argParser(oneOf(['proxy', 'route']))
        .default('proxy'),
    )
    .option('--bridge <name>', 'of the pods', 'mp0')
    .option('--mtu <bytes>', 'of the bridge; 0: as the kernel has it', wholeNumber(0, 65_535), 0)
    .option('--neighbours <count>', 'that the kernel keeps', wholeNumber(1024, 2 ** 30), NEIGHBOURS)
    .option('--route <prefix=address>', 'another node, where no router knows it', list, [])
    .option('--cni-config-dir <dir>', 'of lists of plugins (/etc/cni/net.d)')
    .option('--cni-bin-dir <dir>', 'of plugins (where bridge is)')
    .option('--state-dir <dir>', 'where what was done is written', stateDir)
    .option('--trust-prefix', 'ask nobody whether another node has the prefix');
}

function planCommand(done: (exitCode: number) => void): Command {
  return new Command('plan')
    .summary('a prefix for each of so many nodes')
    .description(
      'Says which prefix each node has, what the provider needs, and the flags of all programs. ' +
        'Nothing is stored: the prefix of node i is the base plus i.\n\n' +
        'Example: megaplane network plan --base 2600:1f00::/76 --nodes 1000000 --provider gcp',
    )
    .requiredOption('--base <prefix>', 'that holds those of all nodes')
    .requiredOption('--nodes <count>', 'at most', wholeNumber(1, NODES_MAX))
    .option('--node-prefix <length>', 'of a node', wholeNumber(1, 124), 96)
    .option('--services <prefix>', 'of addresses of Services (fd00:64:ff::/108)')
    .option(
      '--provider <name>',
      `who gives addresses: ${PROVIDER_NAMES.join(', ')}`,
      oneOf(PROVIDER_NAMES),
      'shared',
    )
    .option('--node <number>', 'only the prefix of this node', wholeNumber(0, NODES_MAX))
    .option('--address <address>', 'only the node that has it')
    .option('--all', 'all nodes, a line each: number, prefix, bridge')
    .option('--svg <file>', 'draws it, too')
    .option('-o, --output <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .action(async (flags: PlanFlags) => done(await plan(flags)));
}

async function plan(flags: PlanFlags): Promise<number> {
  const { makePlan } = await import('@megaplane/network/plan');
  const { PROVIDERS, SHARED } = await import('@megaplane/network/plan/providers');
  const texts = await import('@megaplane/network/plan/plan-text');
  const provider = PROVIDERS.get(flags.provider) ?? SHARED;
  const { base, nodes, nodePrefix: nodeLength, services } = flags;
  const found = makePlan({
    ...{ base, nodes, nodeLength, provider },
    ...(services === undefined ? {} : { services }),
  });
  if (!('base' in found)) return refuse(found);
  if (flags.svg !== undefined) {
    const { planPicture } = await import('@megaplane/network/plan/plan-picture');
    const { writeFileSync } = await import('node:fs');
    writeFileSync(flags.svg, planPicture(found));
  }
  if (flags.address !== undefined) {
    const { line, why = '' } = texts.lookUp(found, flags.address);
    if (line === undefined) return refuse([why]);
    process.stdout.write(line);
  } else if (flags.node !== undefined) {
    if (flags.node >= nodes) return refuse([`--node: there are nodes 0 to ${nodes - 1}`]);
    const { podCIDR, gateway } = texts.plannedNode(found, flags.node);
    process.stdout.write(`${podCIDR} ${gateway}\n`);
  } else if (flags.all === true) {
    for (const chunk of texts.planLines(found)) {
      if (!process.stdout.write(chunk)) await drained();
    }
  } else
    process.stdout.write(flags.output === 'json' ? texts.planJson(found) : texts.planText(found));
  return 0;
}

async function drained(): Promise<void> {
  const { once } = await import('node:events');
  await once(process.stdout, 'drain');
}

function refuse(faults: readonly string[]): number {
  for (const fault of faults) process.stderr.write(`megaplane: ${fault}\n`);
  return EXIT_USAGE;
}

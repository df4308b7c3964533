// shell: standard output
/** `megaplane network nat64`, `tunnel`, `policy` and `config`. */
import { Command, Option } from 'commander';
import { list, oneOf, wholeNumber } from '../parsers/flag-parsers.ts';

const STATE_DIR = '/var/lib/megaplane';
const NODES_MAX = 16_777_216;
const ALL = 'all';

export function nat64Command(done: (exitCode: number) => void): Command {
  return new Command('nat64')
    .summary('a gateway to services that have IPv4 only')
    .description(
      'Starts a translator (tayga) and a resolver (unbound) on this machine, which has IPv4: ' +
        'names without an address of IPv6 get one behind the prefix.\n\n' +
        'Example: megaplane network nat64 --uplink eth0 --client 2600:1f00::/76 --listen ::1',
    )
    .option('--uplink <interface>', 'with IPv4')
    .option('--client <prefixes>', 'who may come through', list, [])
    .option('--prefix <prefix>', 'that IPv4 stands behind: a /96', 'fd00:64:64::/96')
    .option('--pool <prefix>', 'of IPv4, for those who come through', '10.255.0.0/16')
    .option('--listen <addresses>', 'of the resolver; none: only the translator', list, [])
    .option('--forward <addresses>', 'resolvers to ask (the root servers)', list, [])
    .addOption(
      new Option('--translator <name>', 'tayga, or jool where the kernel has it')
        .argParser(oneOf(['tayga', 'jool']))
        .default('tayga'),
    )
    .option('--state-dir <dir>', 'where files are written', `${STATE_DIR}/nat64`)
    .option('--down', 'take all of it back')
    .option('--dry-run', 'only print what would be done')
    .action(async (flags) => {
      const { nat64 } = await import('./gateway.ts');
      done(nat64(flags));
    });
}

export function tunnelCommand(done: (exitCode: number) => void): Command {
  const command = new Command('tunnel')
    .summary('files of a tunnel to a gateway with IPv4 (WireGuard)')
    .description(
      'Prints the file of wg-quick for the gateway or for a node; addresses follow from numbers.' +
        '\n\nExample: megaplane network tunnel node --number 7 --private-key FILE ' +
        '--endpoint 192.0.2.1:51820 --gateway-key KEY',
    );
  const pool = ['--pool <prefix>', 'of IPv4: the gateway, and each node', '10.0.0.0/8'] as const;
  command.addCommand(
    new Command('gateway')
      .summary('the file of the gateway')
      .description('Example: megaplane network tunnel gateway --private-key FILE --peers FILE')
      .option(...pool)
      .requiredOption('--private-key <file>', 'made by wg genkey')
      .requiredOption('--peers <file>', 'a line for each node: its number and its public key')
      .option('--uplink <interface>', 'with IPv4', 'eth0')
      .action(async (flags) => {
        const { tunnelGateway } = await import('./gateway.ts');
        done(tunnelGateway(flags));
      }),
  );
  command.addCommand(
    new Command('node')
      .summary('the file of a node')
      .description('Example: megaplane network tunnel node --number 7 --private-key FILE ...')
      .option(...pool)
      .requiredOption('--number <number>', 'of the node', wholeNumber(0, NODES_MAX))
      .requiredOption('--private-key <file>', 'made by wg genkey')
      .requiredOption('--endpoint <host:port>', 'of the gateway')
      .requiredOption('--gateway-key <key>', 'its public key')
      .action(async (flags) => {
        const { tunnelNode } = await import('./gateway.ts');
        done(tunnelNode(flags));
      }),
  );
  return command;
}

export function policyCommand(done: (exitCode: number) => void): Command {
  const numbers = (text: string, before: readonly number[] = []): readonly number[] => [
    ...before,
    ...list(text, undefined).map(wholeNumber(1, 65_535)),
  ];
  return new Command('policy')
    .summary('a firewall whose size does not grow with the cluster')
    .description(
      'Prints rules for nftables: pods of the cluster reach each other, others reach what is ' +
        'named, and nobody claims addresses that are not his. Load them by nft -f.\n\n' +
        'Example: megaplane network policy --base 2600:1f00::/76 --pod-cidr 2600:1f00::/96 ' +
        '--uplink eth0 --control-plane 2600:1f00:ffff::/64',
    )
    .requiredOption('--base <prefix>', 'of the plan')
    .requiredOption('--pod-cidr <prefix>', 'of this node')
    .requiredOption('--uplink <interface>', 'of this node')
    .option('--bridge <name>', 'of its pods', 'mp0')
    .option('--services <prefix>', 'of addresses of Services', 'fd00:64:ff::/108')
    .option('--node <prefixes>', 'of the machines themselves', list, [])
    .option('--control-plane <prefixes>', 'who may speak to the kubelet', list, [])
    .option('--admin <prefixes>', 'who may log in (port 22)', list, [])
    .option('--public-port <ports>', 'of pods, for anybody', numbers, [])
    .option('--node-port <ports>', 'of the machine, for pods and machines', numbers, [])
    .option('--own-public-port <ports>', 'of the machine, for anybody: 6443', numbers, [])
    .option('--check', 'let nft look at the rules, and load nothing')
    .option('--apply', 'load them')
    .action(async (flags) => {
      const { policy } = await import('./gateway.ts');
      done(policy(flags));
    });
}

export function configCommand(done: (exitCode: number) => void): Command {
  return new Command('config')
    .summary('configurations of kube-proxy, kubelet and CoreDNS that fit the network')
    .description(
      'Prints the configuration of one program, or all of them.\n\n' +
        'Example: megaplane network config kube-proxy --node-name worker-1',
    )
    .argument('[program]', 'kube-proxy, kubelet, coredns or all', ALL)
    .option('--bridge <name>', 'of the pods', 'mp0')
    .option('--node-name <name>', 'of the node', '')
    .option('--cluster-dns <addresses>', 'of CoreDNS', list, [])
    .option('--cluster-domain <domain>', 'of names of Services', 'cluster.local')
    .option('--forward <where>', 'who is asked for other names', '/etc/resolv.conf')
    .action(async (program: string, flags) => {
      const { configurations } = await import('./gateway.ts');
      done(configurations(program, flags));
    });
}

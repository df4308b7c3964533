// shell: standard output
/** `megaplane doctor`: what this machine can hold, and what to change. */
import { Command } from 'commander';
import type { DoctorNetworkFlags } from '../doctor/doctor-network.ts';
import { oneOf, path, wholeNumber } from '../parsers/flag-parsers.ts';
import { NODES_MAX, PODS_MAX } from './up.ts';

interface Flags {
  readonly nodes: number;
  readonly pods: number;
  readonly connections: number;
  readonly dataDir: string;
  readonly output: 'text' | 'json';
}

const CONNECTIONS_MAX = 100_000_000;
const SERVERS_MAX = 100_000;

export function doctorCommand(done: (exitCode: number) => void): Command {
  const command = new Command('doctor');
  command.enablePositionalOptions();
  command.addCommand(doctorNetworkCommand(done));
  return command
    .summary('what this machine can hold, and what to change')
    .description(
      'Looks at the machine (cores, memory, descriptors, huge pages, ports, limits of the ' +
        'kernel) and says what to change. Exit code: 0 all can be had, 1 something cannot.\n\n' +
        'Example: megaplane doctor --nodes 1000000 --connections 1000000',
    )
    .option('--nodes <count>', 'to be held', wholeNumber(0, NODES_MAX), 10_000)
    .option('--pods <count>', 'to be held', wholeNumber(0, PODS_MAX), 0)
    .option(
      '--connections <count>',
      'of clients to one process',
      wholeNumber(0, CONNECTIONS_MAX),
      10_000,
    )
    .option('--data-dir <dir>', 'where the cluster is to live', path, './megaplane-data')
    .option('-o, --output <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .action(async (flags: Flags) => {
      const { readMachine } = await import('../doctor/machine.ts');
      const { examine, findingsText } = await import('../doctor/findings.ts');
      const machine = await readMachine(flags.dataDir);
      const findings = examine(machine, flags);
      const isSound = findings.every(({ verdict }) => verdict !== 'fault');
      if (flags.output === 'json') {
        const { nodes, pods, connections } = flags;
        const wanted = { nodes, pods, connections };
        process.stdout.write(`${JSON.stringify({ sound: isSound, wanted, findings, machine })}\n`);
      } else {
        process.stdout.write(findingsText(findings));
      }
      done(isSound ? 0 : 1);
    });
}

function doctorNetworkCommand(done: (exitCode: number) => void): Command {
  return new Command('network')
    .summary('what a crowd of nodes is to API servers')
    .description(
      'Computes connections, descriptors, memory and the time until all are back after a server ' +
        'is lost, for each API server, and looks whether this machine can be one.\n\n' +
        'Example: megaplane doctor network --nodes 1000000 --servers 8 --watches 9',
    )
    .option('--nodes <count>', 'of the cluster', wholeNumber(1, NODES_MAX), 10_000)
    .option('--servers <count>', 'API servers', wholeNumber(1, SERVERS_MAX), 1)
    .option('--connections <count>', 'of a node: kubelet, kube-proxy', wholeNumber(1, 1000), 2)
    .option('--watches <count>', 'of a node, over its connections', wholeNumber(0, 1000), 9)
    .option('--cores <count>', 'of a server that answer (ours: one)', wholeNumber(1, 4096), 1)
    .option('-o, --output <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .action(async (flags: DoctorNetworkFlags) => {
      const { doctorNetwork } = await import('../doctor/doctor-network.ts');
      done(await doctorNetwork(flags));
    });
}

// shell: standard output
/** `megaplane node`: this machine as a node of a cluster. */
import { Command } from 'commander';
import { words } from '../parsers/flag-parsers.ts';
import { addNetworkFlags, type NetworkNodeFlags } from './network-command.ts';
import type { JoinFlags } from './join.ts';

interface ResetFlags {
  readonly force?: true;
  readonly stateDir: string;
  readonly dryRun?: true;
}

const STATE_DIR = '/var/lib/megaplane';

export function nodeCommand(done: (exitCode: number) => void): Command {
  const command = new Command('node').summary('this machine as a node of a cluster');
  command.description(
    'Joins this machine to a cluster, and takes it out again.\n\n' +
      'Example: megaplane node join 10.0.0.1:6443 --token abcdef.0123456789abcdef',
  );
  command.addCommand(joinCommand(done));
  command.addCommand(
    new Command('reset')
      .summary('undo what join has done')
      .description(
        'Stops the kubelet, removes its pods and files, and takes the network down. What was on ' +
          'the machine before is brought back.\n\nExample: megaplane node reset --force',
      )
      .option('--force', 'also while pods run here')
      .option('--dry-run', 'only say what would be undone')
      .option('--state-dir <dir>', 'where join has written what it did', STATE_DIR)
      .action(async (flags: ResetFlags) => {
        const { resetNode } = await import('./reset.ts');
        done(resetNode(flags));
      }),
  );
  return command;
}

function joinCommand(done: (exitCode: number) => void): Command {
  const command = new Command('join')
    .summary('join a cluster')
    .description(
      'Writes the configurations of kubelet and containerd, sets up the network of pods where a ' +
        'prefix is named, and starts the kubelet. `megaplane join-command` prints the flags.\n\n' +
        'Example: megaplane node join 10.0.0.1:6443 --token abcdef.0123456789abcdef',
    )
    .argument('<address>', 'host:port of the API server')
    .requiredOption('--token <token>', 'of join-command')
    .option('--discovery-token-ca-cert-hash <hashes>', 'of the authority: sha256:...', words, [])
    .option('--discovery-token-unsafe-skip-ca-verification', 'believe the token alone')
    .optionsGroup('Node:')
    .option('--node-name <name>', 'default: the name of this machine')
    .option('--node-ip <address>', 'that the kubelet tells (by which it reaches the server)', '')
    .option('--kubelet <file>', 'the program (default: the one on PATH)')
    .option('--cri-socket <url>', 'of the runtime', 'unix:///run/containerd/containerd.sock')
    .option('--keep-containerd', 'leave the configuration of containerd as it is')
    .option('--foreground', 'run the kubelet here, without systemd')
    .option('--dry-run', 'only print the files')
    .optionsGroup('Network of pods (see megaplane network node):');
  return addNetworkFlags(command, STATE_DIR).action(
    async (address: string, flags: JoinFlags & NetworkNodeFlags) => {
      const { joinNode } = await import('./join.ts');
      done(await joinNode(address, flags));
    },
  );
}

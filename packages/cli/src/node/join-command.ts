// shell: standard output, randomness
/** `megaplane join-command`: prints what to run on a machine that is to join a cluster. */
import { Command } from 'commander';
import { durationOption } from '../parsers/flag-parsers.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly server?: string;
  readonly ttl: number;
  readonly description: string;
  readonly clusterDomain: string;
}

const DAY_MS = 86_400_000;

export function joinCommandCommand(done: (exitCode: number) => void): Command {
  return new Command('join-command')
    .summary('what to run on a machine that is to join')
    .description(
      'Makes a token, and all that machines need to trust the cluster, and prints the command ' +
        'to run on a machine, and that of kubeadm.\n\n' +
        'Example: megaplane join-command --kubeconfig ./megaplane-data/kubeconfig',
    )
    .option('--kubeconfig <file>', "an administrator's", './megaplane-data/kubeconfig')
    .option('--server <url>', 'as machines reach it (default: as the Service kubernetes says)')
    .addOption(durationOption('--ttl <duration>', 'the token ends then; 0s = never', DAY_MS))
    .option('--description <text>', 'of the token', 'made by megaplane join-command')
    .option('--cluster-domain <domain>', 'of names of Services', 'cluster.local')
    .action(async (flags: Flags) => {
      const { prepareJoin } = await import('./prepare-join.ts');
      process.stdout.write(await prepareJoin(flags));
      done(0);
    });
}

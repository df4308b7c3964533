// shell: standard output
/** `megaplane envtest`: programs for envtest, as a directory. */
import { join } from 'node:path';
import { Command } from 'commander';
import { path } from '../parsers/flag-parsers.ts';
import { warmUp } from '../pack/warm-up.ts';
import { cacheDirectory, openLaunchers } from '../service/launchers.ts';
import { apiserverCommand } from './apiserver.ts';
import { storeCommand } from './store.ts';

interface Flags {
  readonly cacheDir?: string;
}

/** `version` is this program's. */
export function envtestCommand(done: (exitCode: number) => void, version: string): Command {
  return new Command('envtest')
    .summary('programs for envtest: KUBEBUILDER_ASSETS')
    .description(
      'Prints the path of a directory that holds etcd, kube-apiserver and, where one is found, ' +
        'kubectl.\n\nExample: KUBEBUILDER_ASSETS=$(megaplane envtest) go test ./...',
    )
    .option('--cache-dir <dir>', "where it is made, once a version (default: the user's)", path)
    .action(async ({ cacheDir }: Flags) => {
      const { place, isNew } = openLaunchers({
        version,
        root: join(import.meta.dirname, '../../..'),
        cacheDir: cacheDir ?? cacheDirectory(process.env, process.platform),
        searchPath: process.env['PATH'] ?? '',
        programs: [
          {
            name: 'etcd',
            command: 'store',
            help: helpOf(
              storeCommand(() => {}),
              'etcd',
            ),
          },
          {
            name: 'kube-apiserver',
            command: 'apiserver',
            help: helpOf(
              apiserverCommand(() => {}),
              'kube-apiserver',
            ),
          },
        ],
      });
      if (isNew) await warmUp(place);
      process.stdout.write(`${place}\n`);
      done(0);
    });
}

function helpOf(command: Command, name: string): string {
  return command.name(name).helpInformation();
}

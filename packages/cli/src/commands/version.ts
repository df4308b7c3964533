// shell: standard output
/** `megaplane version`: of this program, and of what its parts stand for. */
import { Command } from 'commander';
import { oneOf } from '../parsers/flag-parsers.ts';

interface Flags {
  readonly output: 'text' | 'json';
}

/** `version` is this program's. */
export function versionCommand(done: (exitCode: number) => void, version: string): Command {
  return new Command('version')
    .summary('versions of this program and of what its parts stand for')
    .description(
      'Prints the version of this program, and of Kubernetes and etcd as it speaks them.\n\n' +
        'Example: megaplane version -o json',
    )
    .option('-o, --output <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .action(async ({ output }: Flags) => {
      const { GIT_VERSION } = await import('@megaplane/apiserver/release');
      const { ETCD_VERSION } = await import('@megaplane/etcd/maintenance');
      const found = {
        megaplane: version,
        kubernetes: GIT_VERSION,
        etcd: ETCD_VERSION,
        node: process.version,
        platform: `${process.platform}/${process.arch}`,
      };
      const text = Object.entries(found).map(([name, of]) => `${name.padEnd(12)}${of}\n`);
      process.stdout.write(output === 'json' ? `${JSON.stringify(found)}\n` : text.join(''));
      done(0);
    });
}

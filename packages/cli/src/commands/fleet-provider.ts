// shell: `megaplane fleet provider`, where machines come from
import { Command } from 'commander';
import type { RunProviderOptions } from '@megaplane/fleet/provider/run';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { addLogOptions } from '../service/logging.ts';
import type { LogFlags } from '../service/logging.ts';
import { readNamed } from '../flags/named-file.ts';
import { serve } from '../service/service.ts';
import { hostPort, oneOf, wholeNumber } from '../parsers/flag-parsers.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';

type Done = (exitCode: number) => void;

const LISTEN: HostPort = { host: '127.0.0.1', port: 7800 };

interface ServeFlags extends LogFlags {
  readonly listen: HostPort;
  readonly transitionTimeout: number;
}

export function providerCommand(done: Done): Command {
  const provider = new Command('provider')
    .summary('where machines come from')
    .description(
      'Serves machines to shards (CapacityProvider), or judges who does.\n\n' +
        'Example: megaplane fleet provider simulate --catalogue catalogue.yaml --seed 7',
    );
  provider.addCommand(simulateCommand(done));
  provider.addCommand(staticCommand(done));
  return provider.addCommand(certifyCommand(done));
}

function simulateCommand(done: Done): Command {
  const command = new Command('simulate')
    .summary('a cloud that is played from a catalogue')
    .description(
      'Plays a cloud: prices, latencies, failures, stock and interruptions by a catalogue.\n\n' +
        'Example: megaplane fleet provider simulate --catalogue catalogue.yaml --seed 7',
    )
    .requiredOption('--catalogue <file>', 'offers and latencies, in YAML')
    .option('--seed <number>', 'of all that is by chance', wholeNumber(0, 2 ** 48), 1);
  return addServeOptions(command).action(
    async (flags: ServeFlags & { readonly catalogue: string; readonly seed: number }) => {
      const { seed } = flags;
      const file = (): JsonValue => readYaml('--catalogue', flags.catalogue);
      done(await run(flags, () => ({ kind: 'simulated', file: file(), seed })));
    },
  );
}

function staticCommand(done: Done): Command {
  const command = new Command('static')
    .summary('hosts of a list')
    .description(
      'Serves hosts that stand in a room: idle until they are bound, and never given back.\n\n' +
        'Example: megaplane fleet provider static --inventory hosts.yaml',
    )
    .requiredOption('--inventory <file>', 'the hosts, in YAML');
  return addServeOptions(command).action(
    async (flags: ServeFlags & { readonly inventory: string }) => {
      const file = (): JsonValue => readYaml('--inventory', flags.inventory);
      done(await run(flags, () => ({ kind: 'static', file: file() })));
    },
  );
}

function addServeOptions(command: Command): Command {
  command
    .option('--listen <host:port>', 'where shards reach it', hostPort, LISTEN)
    .option('--transition-timeout <seconds>', 'longer ones fail', wholeNumber(1, 86_400), 3600);
  return addLogOptions(command);
}

function run(flags: ServeFlags, source: () => RunProviderOptions['source']): Promise<number> {
  return serve(async () => {
    const { runProvider } = await import('@megaplane/fleet/provider/run');
    const timeoutMs = flags.transitionTimeout * 1000;
    return runProvider({ ...flags.listen, source: source(), timeoutMs });
  });
}

function readYaml(flag: string, file: string): JsonValue {
  return parse(String(readNamed(flag, file))) as JsonValue;
}

interface CertifyFlags {
  readonly addr: HostPort;
  readonly profile: 'core' | 'cloud' | 'bare-metal';
  readonly output: 'text' | 'json';
}

function certifyCommand(done: Done): Command {
  return new Command('certify')
    .summary('judges a provider by what all must do')
    .description(
      'Runs a list of checks against a provider that is there. It makes, binds, releases and\n' +
        'deletes machines: give it one that nobody uses. The exit code is 0 if all pass.\n\n' +
        'Example: megaplane fleet provider certify --addr 127.0.0.1:7800 --profile cloud',
    )
    .requiredOption('--addr <host:port>', 'where the provider is', hostPort)
    .option(
      '--profile <name>',
      'core, cloud (machines can be given back) or bare-metal (they cannot)',
      oneOf(['core', 'cloud', 'bare-metal']),
      'cloud',
    )
    .option('--output <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .action(async ({ addr, profile, output }: CertifyFlags) => {
      const { certifyProvider } = await import('@megaplane/fleet/provider/run');
      const verdicts = await certifyProvider(addr.host, addr.port, profile);
      const failed = verdicts.filter(({ outcome }) => outcome === 'failed').length;
      const incomplete = verdicts.filter(({ outcome }) => outcome === 'incomplete').length;
      const word = failed > 0 ? 'FAILED' : incomplete > 0 ? 'INCOMPLETE' : 'CERTIFIED';
      const lines = verdicts.map(({ area, name, outcome, why }) => {
        return `${outcome.padEnd(10)} ${area}: ${name}${why === '' ? '' : `\n           ${why}`}`;
      });
      const text =
        output === 'json'
          ? JSON.stringify({ verdict: word, profile, checks: verdicts })
          : [...lines, `${word} (${profile}): ${verdicts.length} checks, ${failed} failed`].join(
              '\n',
            );
      await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
      done(word === 'CERTIFIED' ? 0 : 1);
    });
}

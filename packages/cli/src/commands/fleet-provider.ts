// shell: `megaplane fleet provider`, where machines come from
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { visibleText } from '@megaplane/base/visible-text';
import { Command } from 'commander';
import type { RunProviderOptions } from '@megaplane/fleet/provider/run';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { addLogOptions, logger } from '../service/logging.ts';
import type { LogFlags } from '../service/logging.ts';
import { addTlsFlags, tlsBytesOf, tlsFilesOf } from '../flags/fleet-tls.ts';
import type { TlsFlags } from '../flags/fleet-tls.ts';
import { readNamed } from '../flags/named-file.ts';
import { serve } from '../service/service.ts';
import { hostPort, oneOf, path, wholeNumber } from '../parsers/flag-parsers.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';

type Done = (exitCode: number) => void;

const LISTEN: HostPort = { host: '127.0.0.1', port: 7800 };

interface ServeFlags extends LogFlags, TlsFlags {
  readonly listen: HostPort;
  readonly transitionTimeout: number;
  readonly dataDir?: string;
  readonly metricsAddress?: string;
}

interface CatalogueFlags extends ServeFlags {
  readonly catalogue: string;
  readonly seed: number;
}

export function providerCommand(done: Done): Command {
  const provider = new Command('provider')
    .summary('where machines come from')
    .description(
      'Serves machines to shards (CapacityProvider), or judges who does.\n\n' +
        'Example: megaplane fleet provider simulate --catalogue catalogue.yaml --seed 7',
    );
  provider.addCommand(simulateCommand(done));
  provider.addCommand(nodesCommand(done));
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
  return addServeOptions(command).action(async (flags: CatalogueFlags) => {
    done(await run(command, flags, catalogueOf('simulated', flags)));
  });
}

function nodesCommand(done: Done): Command {
  const command = new Command('nodes')
    .summary('machines that join clusters as simulated Nodes')
    .description(
      'As simulate, and a machine that is bound joins the cluster of its bootstrap blob (a\n' +
        'kubeconfig with everything in it) as a Node, which `megaplane nodes` there plays.\n\n' +
        'Example: megaplane fleet provider nodes --catalogue catalogue.yaml',
    )
    .requiredOption('--catalogue <file>', 'offers and latencies, in YAML')
    .option('--seed <number>', 'of all that is by chance', wholeNumber(0, 2 ** 48), 1);
  return addServeOptions(command).action(async (flags: CatalogueFlags) => {
    done(await run(command, flags, catalogueOf('nodes', flags)));
  });
}

function catalogueOf(
  kind: 'simulated' | 'nodes',
  { catalogue, seed }: CatalogueFlags,
): () => RunProviderOptions['source'] {
  return () => ({ kind, file: readYaml('--catalogue', catalogue), seed });
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
      done(await run(command, flags, () => ({ kind: 'static', file: file() })));
    },
  );
}

function addServeOptions(command: Command): Command {
  command
    .option('--listen <host:port>', 'where shards reach it', hostPort, LISTEN)
    .option('--transition-timeout <seconds>', 'longer ones fail', wholeNumber(1, 86_400), 3600)
    .option(
      '--data-dir <dir>',
      'where machines are kept over a restart (default: they are not)',
      path,
    )
    .option('--metrics-address <host:port>', 'metrics and health (default: none)');
  addTlsFlags(command, 'the provider', 'shards');
  return addLogOptions(command);
}

function run(
  command: Command,
  flags: ServeFlags,
  source: () => RunProviderOptions['source'],
): Promise<number> {
  const tls = tlsFilesOf(command, flags);
  const { dataDir, metricsAddress } = flags;
  return serve(async () => {
    const { runProvider } = await import('@megaplane/fleet/provider/run');
    const timeoutMs = flags.transitionTimeout * 1000;
    return runProvider({
      ...{ ...flags.listen, source: source(), timeoutMs, log: logger(flags) },
      ...(tls === undefined ? {} : { tls }),
      ...(dataDir === undefined ? {} : { dataDir }),
      ...(metricsAddress === undefined ? {} : { metricsAddress }),
    });
  });
}

function readYaml(flag: string, file: string): JsonValue {
  return parse(String(readNamed(flag, file))) as JsonValue;
}

const PROFILES = ['core', 'cloud', 'bare-metal', 'fault', 'durable', 'scale'] as const;

interface CertifyFlags extends TlsFlags {
  readonly addr: HostPort;
  readonly profile: (typeof PROFILES)[number];
  readonly seed?: number;
  readonly restartCommand?: string;
  readonly output: 'text' | 'json';
}

function certifyCommand(done: Done): Command {
  const command = new Command('certify')
    .summary('judges a provider by what all must do')
    .description(
      'Runs a list of checks against a provider that is there. It makes, binds, releases and\n' +
        'deletes machines: give it one that nobody uses. The exit code is 0 if all pass.\n\n' +
        'Example: megaplane fleet provider certify --addr 127.0.0.1:7800 --profile cloud',
    )
    .requiredOption('--addr <host:port>', 'where the provider is', hostPort)
    .option(
      '--profile <name>',
      'core, cloud (machines can be given back), bare-metal (they cannot), or a lane of its own: ' +
        'fault, durable, scale',
      oneOf(PROFILES),
      'cloud',
    )
    .option('--seed <number>', 'of what is by chance', wholeNumber(1, 2 ** 47))
    .option('--restart-command <text>', 'ends the provider, starts it anew, ends when it listens')
    .option('--output <format>', 'text or json', oneOf(['text', 'json']), 'text');
  addTlsFlags(command, 'the caller', 'the provider');
  return command.action(async (flags: CertifyFlags) => {
    const { addr, profile, output, seed, restartCommand } = flags;
    const tls = tlsBytesOf(command, flags);
    const { certifyProvider } = await import('@megaplane/fleet/provider/run');
    const restart = async (): Promise<void> => {
      await promisify(execFile)('sh', ['-c', restartCommand ?? '']);
    };
    const verdicts = await certifyProvider(
      { ...addr, ...(tls === undefined ? {} : { tls }) },
      {
        profile,
        ...(seed === undefined ? {} : { seed }),
        ...(restartCommand === undefined ? {} : { restart }),
      },
    );
    const failed = verdicts.filter(({ outcome }) => outcome === 'failed').length;
    const incomplete = verdicts.filter(({ outcome }) => outcome === 'incomplete').length;
    const word = failed > 0 ? 'FAILED' : incomplete > 0 ? 'INCOMPLETE' : 'CERTIFIED';
    const lines = verdicts.map(({ id, area, name, outcome, why }) => {
      const because = why === '' ? '' : `\n           ${visibleText(why)}`;
      return `${outcome.padEnd(10)} ${area}: ${name} (${id})${because}`;
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

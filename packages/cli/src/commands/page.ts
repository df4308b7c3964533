/** `megaplane page`: the live page of any cluster. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { hostPort, list, path } from '../parsers/flag-parsers.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';
import { serve } from '../service/service.ts';
import type { Source } from '../observe/sources.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly listenAddress: HostPort;
  readonly allowedHost?: readonly string[];
  readonly tokenFile?: string;
  readonly processes?: string;
  readonly metrics: readonly Source[];
  readonly readOnly?: true;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
}

const NAMES = ['apiserver', 'controllers', 'scheduler', 'nodes', 'store'] as const;

/** `scheduler=http://127.0.0.1:10251/metrics`; may be repeated. */
function source(text: string, before: readonly Source[]): readonly Source[] {
  const [, name = '', metrics = ''] = /^([a-z]+)=(.+)$/.exec(text) ?? [];
  const url = URL.parse(metrics);
  if (!NAMES.some((known) => known === name) || !/^https?:$/.test(url?.protocol ?? '')) {
    throw new InvalidArgumentError(`NAME=URL is needed, where NAME is one of ${NAMES.join(', ')}.`);
  }
  return [...before, { name, pid: 0, metrics }];
}

export function pageCommand(done: (exitCode: number) => void): Command {
  return new Command('page')
    .summary('the live page of a cluster')
    .description(
      'Serves a page about a cluster: its nodes, curves, requests, and all its objects.\n' +
        'The ready line has the link that opens it.\n\n' +
        'Example: megaplane page --kubeconfig ./megaplane-data/kubeconfig',
    )
    .requiredOption('--kubeconfig <file>', 'how to reach the API server, and as whom', path)
    .addOption(
      new Option('--listen-address <host:port>', 'of the page; port 0 = a free one')
        .argParser(hostPort)
        .default({ host: '127.0.0.1', port: 8080 }, '127.0.0.1:8080'),
    )
    .option('--allowed-host <names>', 'other names that the page is asked for by', list)
    .option('--token-file <file>', 'holds the token; made where it is not there', path)
    .option(
      '--tls-cert-file <file>',
      'its certificate (beyond the loopback: one signed by itself)',
      path,
    )
    .option('--tls-private-key-file <file>', 'the key of its certificate', path)
    .option('--metrics <name=url>', 'metrics of a program; may be repeated', source, [])
    .option('--processes <file>', 'names the programs of this machine; "up" writes it', path)
    .option('--read-only', 'nothing can be changed from the page')
    .action(async (flags: Flags) => {
      const { startPage } = await import('../page/start-page.ts');
      done(await serve(() => startPage(flags)));
    });
}

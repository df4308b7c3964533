// shell: `megaplane fleet ctl`, what a shard knows
import { Command } from 'commander';
import { readNamed } from '../flags/named-file.ts';
import { hostPort, oneOf, wholeNumber } from '../flags/usage.ts';
import type { HostPort } from '../flags/usage.ts';

type Done = (exitCode: number) => void;

const SHARD: HostPort = { host: '127.0.0.1', port: 7780 };

interface NeedsFlags {
  readonly shardAddr: HostPort;
  readonly clusterId: string;
  readonly limit: number;
  readonly unmet: boolean;
  readonly output: 'table' | 'json';
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
}

export function ctlCommand(done: Done): Command {
  const ctl = new Command('ctl')
    .summary('what a shard knows')
    .description('Asks a shard, and changes nothing.\n\nExample: megaplane fleet ctl needs');
  return ctl.addCommand(needsCommand(done));
}

function needsCommand(done: Done): Command {
  const command = new Command('needs')
    .summary('rows of demand, what they lack and why')
    .description(
      'Shows the rows of the last cycle: what each wants, what it lacks, why, and for how many\n' +
        'cycles it has. Over TLS the certificate must be of bigfleet://readonly or admin.\n\n' +
        'Example: megaplane fleet ctl needs --shard-addr 127.0.0.1:7780 --unmet',
    )
    .option('--shard-addr <host:port>', 'where the shard is', hostPort, SHARD)
    .option('--cluster-id <id>', 'of one cluster', '')
    .option('--limit <n>', 'rows at most; 0: all', wholeNumber(0, 2 ** 31 - 1), 0)
    .option('--unmet', 'in tables, only rows that lack something', false)
    .option('--output <format>', 'table or json', oneOf(['table', 'json']), 'table')
    .optionsGroup('TLS (all three or none):')
    .option('--tls-cert <file>', 'certificate of the reader')
    .option('--tls-key <file>', 'its key')
    .option('--tls-ca <file>', 'authorities of the shard');
  return command.action(async (flags: NeedsFlags) => {
    const { tlsCert, tlsKey, tlsCa, clusterId, limit, output, unmet } = flags;
    const files = [tlsCert, tlsKey, tlsCa].filter((file) => file !== undefined);
    if (files.length % 3 !== 0) {
      command.error('error: --tls-cert, --tls-key and --tls-ca go together');
    }
    const tls =
      tlsCert === undefined || tlsKey === undefined || tlsCa === undefined
        ? {}
        : {
            tls: {
              cert: readNamed('--tls-cert', tlsCert),
              key: readNamed('--tls-key', tlsKey),
              ca: readNamed('--tls-ca', tlsCa),
            },
          };
    const { inspectNeeds, needsJson, needsTable } = await import('@megaplane/fleet/shard/ctl');
    const frames = await inspectNeeds({ ...flags.shardAddr, ...tls, clusterId, limit });
    const text = output === 'json' ? JSON.stringify(needsJson(frames)) : needsTable(frames, unmet);
    await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
    done(0);
  });
}

// shell: `megaplane fleet ctl`, what shards and coordinators know
import { Command } from 'commander';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { addTlsFlags, tlsBytesOf } from '../flags/fleet-tls.ts';
import type { TlsFlags } from '../flags/fleet-tls.ts';
import { readNamed } from '../flags/named-file.ts';
import { hostPort, oneOf, wholeNumber, words } from '../parsers/flag-parsers.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';
import { assignmentsCommand, changeCommands } from './fleet-ctl-assignments.ts';

type Done = (exitCode: number) => void;

const SHARD: HostPort = { host: '127.0.0.1', port: 7780 };
const ROWS_MAX = 2 ** 31 - 1;

interface ShardFlags extends TlsFlags {
  readonly shardAddr: HostPort;
  readonly output: 'table' | 'json';
}

interface NeedsFlags extends ShardFlags {
  readonly clusterId: string;
  readonly limit: number;
  readonly unmet: boolean;
}

interface MachinesFlags extends ShardFlags {
  readonly clusterId: string;
  readonly limit: number;
  readonly state: readonly string[];
}

interface WhatIfFlags extends ShardFlags {
  readonly rollUp: string;
}

export function ctlCommand(done: Done): Command {
  const ctl = new Command('ctl')
    .summary('what shards and coordinators know')
    .description(
      'Asks a shard or a coordinator; the commands after `assignments` change what the latter\n' +
        'keeps.\n\nExample: megaplane fleet ctl needs',
    );
  ctl.addCommand(needsCommand(done));
  ctl.addCommand(shortfallsCommand(done));
  ctl.addCommand(machinesCommand(done));
  ctl.addCommand(whatIfCommand(done));
  ctl.addCommand(assignmentsCommand(done));
  for (const command of changeCommands(done)) ctl.addCommand(command);
  return ctl;
}

/** A command that asks a shard, and prints a table or JSON. */
function shardCommand(name: string, summary: string, description: string): Command {
  return new Command(name)
    .summary(summary)
    .description(description)
    .option('--shard-addr <host:port>', 'where the shard is', hostPort, SHARD)
    .option('--output <format>', 'table or json', oneOf(['table', 'json']), 'table');
}

function addressOf(command: Command, flags: ShardFlags) {
  const tls = tlsBytesOf(command, flags);
  return { ...flags.shardAddr, ...(tls === undefined ? {} : { tls }) };
}

async function print(text: string, done: Done): Promise<void> {
  await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
  done(0);
}

function needsCommand(done: Done): Command {
  const command = shardCommand(
    'needs',
    'rows of demand, what they lack and why',
    'Shows the rows of the last cycle: what each wants, what it lacks, why, and for how many\n' +
      'cycles it has. Over TLS the certificate must be of bigfleet://readonly or admin.\n\n' +
      'Example: megaplane fleet ctl needs --shard-addr 127.0.0.1:7780 --unmet',
  )
    .option('--cluster-id <id>', 'of one cluster', '')
    .option('--limit <n>', 'rows at most; 0: all', wholeNumber(0, ROWS_MAX), 0)
    .option('--unmet', 'in tables, only rows that lack something', false);
  addTlsFlags(command, 'the reader', 'the shard');
  return command.action(async (flags: NeedsFlags) => {
    const address = addressOf(command, flags);
    const { clusterId, limit, output, unmet } = flags;
    const { inspectNeeds, needsJson, needsTable } =
      await import('@megaplane/fleet/ctl/shard-questions');
    const frames = await inspectNeeds({ ...address, clusterId, limit });
    const text = output === 'json' ? JSON.stringify(needsJson(frames)) : needsTable(frames, unmet);
    await print(text, done);
  });
}

function shortfallsCommand(done: Done): Command {
  const command = shardCommand(
    'shortfalls',
    'what is wanted and cannot be had',
    'Shows what rows of one profile lack together, the most important first, and for how many\n' +
      'cycles. Why single rows lack it is told by `needs --unmet`.\n\n' +
      'Example: megaplane fleet ctl shortfalls',
  );
  addTlsFlags(command, 'the reader', 'the shard');
  return command.action(async (flags: ShardFlags) => {
    const ctl = await import('@megaplane/fleet/ctl/shard-questions');
    const answer = await ctl.listShortfalls(addressOf(command, flags));
    const isJson = flags.output === 'json';
    const json = (): string => JSON.stringify(ctl.shortfallsJson(answer));
    await print(isJson ? json() : ctl.shortfallsTable(answer), done);
  });
}

function machinesCommand(done: Done): Command {
  const command = shardCommand(
    'machines',
    'machines, their states and whose they are',
    'Shows machines by id. A star: an action is under way.\n\n' +
      'Example: megaplane fleet ctl machines --cluster-id c1 --state Configured,Draining',
  )
    .option('--cluster-id <id>', 'of one cluster', '')
    .option('--state <states>', 'in one of these, by commas', words, [])
    .option('--limit <n>', 'at most; 0: all', wholeNumber(0, ROWS_MAX), 0);
  addTlsFlags(command, 'the reader', 'the shard');
  return command.action(async (flags: MachinesFlags) => {
    const ctl = await import('@megaplane/fleet/ctl/shard-questions');
    const wrong = flags.state.find((word) => !ctl.MACHINE_STATES.some((one) => one === word));
    if (wrong !== undefined) {
      command.error(`error: --state ${wrong}: one of ${ctl.MACHINE_STATES.join(', ')} is needed`);
    }
    const { clusterId, limit, state: states } = flags;
    const address = addressOf(command, flags);
    const machines = await ctl.listMachines(address, { clusterId, limit, states });
    const isJson = flags.output === 'json';
    const json = (): string => JSON.stringify(ctl.machinesJson(machines));
    await print(isJson ? json() : ctl.machinesTable(machines), done);
  });
}

function whatIfCommand(done: Done): Command {
  const command = shardCommand(
    'what-if',
    'what another roll-up of a cluster would change',
    'Lets the shard decide once, on a copy, with this roll-up in the place of what the cluster\n' +
      'wants now: rows, and actions without rails. Nothing is carried out.\n\n' +
      'Example: megaplane fleet ctl what-if --roll-up rollup.yaml',
  ).requiredOption('--roll-up <file>', 'ClusterCapacityNeeds as JSON or YAML');
  addTlsFlags(command, 'the reader', 'the shard');
  return command.action(async (flags: WhatIfFlags) => {
    const ctl = await import('@megaplane/fleet/ctl/shard-questions');
    const address = addressOf(command, flags);
    const rollup = parse(String(readNamed('--roll-up', flags.rollUp))) as JsonValue;
    const frames = await ctl.whatIf(address, rollup as Parameters<typeof ctl.whatIf>[1]);
    const isJson = flags.output === 'json';
    await print(isJson ? JSON.stringify(ctl.whatIfJson(frames)) : ctl.whatIfTable(frames), done);
  });
}

// shell: `megaplane fleet ctl assignments` and what changes them
import { Command, InvalidArgumentError } from 'commander';
import type { Assignment } from '@megaplane/fleet/ctl/coordinator-questions';
import { addTlsFlags, tlsBytesOf } from '../flags/fleet-tls.ts';
import type { TlsFlags } from '../flags/fleet-tls.ts';
import { dialAddresses, oneOf, wholeNumber } from '../parsers/flag-parsers.ts';
import type { DialAddress } from '../parsers/flag-parsers.ts';

type Done = (exitCode: number) => void;

const ADDRESSES_MAX = 16;
const COORDINATOR: readonly DialAddress[] = [{ host: '127.0.0.1', port: 7790, isSecure: false }];
const SLICES_MAX = 10_000;

interface CoordinatorFlags extends TlsFlags {
  readonly coordinatorAddr?: readonly DialAddress[];
}

function coordinatorCommand(name: string, summary: string, description: string): Command {
  const command = new Command(name)
    .summary(summary)
    .description(description)
    .option(
      '--coordinator-addr <host:port>',
      'a coordinator, several times if there are several; default: 127.0.0.1:7790',
      dialAddresses(ADDRESSES_MAX),
    );
  return addTlsFlags(command, 'the caller', 'the coordinator');
}

function coordinatorsOf(command: Command, flags: CoordinatorFlags) {
  const tls = tlsBytesOf(command, flags);
  const addresses = flags.coordinatorAddr ?? COORDINATOR;
  return { addresses, ...(tls === undefined ? {} : { tls }) };
}

export function assignmentsCommand(done: Done): Command {
  const command = coordinatorCommand(
    'assignments',
    'shards, and which clusters, domains and quotas each has',
    'Shows what the coordinators keep, and what shards reported last.\n\n' +
      'Example: megaplane fleet ctl assignments --coordinator-addr 127.0.0.1:7790',
  ).option('--output <format>', 'table or json', oneOf(['table', 'json']), 'table');
  return command.action(async (flags: CoordinatorFlags & { readonly output: 'table' | 'json' }) => {
    const { assignments } = await import('@megaplane/fleet/ctl/coordinator-questions');
    const { table, json } = await assignments(coordinatorsOf(command, flags));
    const text = flags.output === 'json' ? JSON.stringify(json) : table;
    await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
    done(0);
  });
}

/** One command for each change. */
export function changeCommands(done: Done): Command[] {
  const change = (
    words: string,
    summary: string,
    made: (texts: readonly string[], flags: { readonly limit?: number }) => Assignment,
  ): Command => {
    const [name = '', ...operands] = words.split(' ');
    const example = `Example: megaplane fleet ctl ${words.replaceAll(/[<>[\]]/g, '')}`;
    const command = coordinatorCommand(name, summary, `${example}`);
    for (const operand of operands) command.argument(operand);
    command.action(async (...given: unknown[]) => {
      const texts = given.slice(0, operands.length).flat() as string[];
      const flags = command.opts<CoordinatorFlags & { readonly limit?: number }>();
      const { assign } = await import('@megaplane/fleet/ctl/coordinator-questions');
      await assign(coordinatorsOf(command, flags), made(texts, flags));
      done(0);
    });
    return command;
  };
  const quota = change(
    'set-quota <provider> <region> [shard=slots...]',
    'cuts a quota into slices, or forgets it',
    ([provider = '', region = '', ...slices], { limit = 0 }) => {
      const parts = new Map(slices.filter((text) => text !== undefined).map(sliceOf));
      return { kind: 'set-quota', provider, region, limit, slices: parts };
    },
  );
  quota.option('--limit <slots>', 'of all slices together', wholeNumber(1, 2 ** 31 - 1));
  return [
    change(
      'assign-domain <key> <value> <shard>',
      'gives machines with a label to a shard',
      ([key = '', value = '', shard = '']) => ({ kind: 'assign-domain', key, value, shard }),
    ),
    change(
      'unassign-domain <key> <value>',
      'takes them away from it',
      ([key = '', value = '']) => ({ kind: 'unassign-domain', key, value, shard: '' }),
    ),
    change(
      'bind-cluster <cluster> <shard>',
      'notes which shard serves a cluster',
      ([cluster = '', shard = '']) => ({ kind: 'bind-cluster', cluster, shard }),
    ),
    change('unbind-cluster <cluster>', 'forgets it', ([cluster = '']) => {
      return { kind: 'unbind-cluster', cluster, shard: '' };
    }),
    change('remove-shard <shard>', 'a shard is no more: what it had is free', ([shard = '']) => {
      return { kind: 'remove-shard', shard };
    }),
    quota,
    change(
      'put-provider <name> <address> [region]',
      'notes where a provider is',
      ([name = '', address = '', region = '']) => ({ kind: 'put-provider', name, address, region }),
    ),
    change('remove-provider <name>', 'forgets it', ([name = '']) => {
      return { kind: 'remove-provider', name, address: '', region: '' };
    }),
  ];
}

function sliceOf(text: string): [string, number] {
  const match = /^([^=]+)=(\d{1,9})$/.exec(text);
  if (match === null) throw new InvalidArgumentError(`${text} is no shard=slots`);
  if (text.length > SLICES_MAX) throw new InvalidArgumentError('a slice is too long');
  return [match[1] ?? '', Number(match[2])];
}

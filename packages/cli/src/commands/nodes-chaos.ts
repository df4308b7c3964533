// shell: standard output
/** `megaplane nodes chaos`: what may happen to nodes, one line each. */
import { guarded } from '@megaplane/base/deferred';
import type { KubeClient } from '@megaplane/client/kube-client';
import type { Fault } from '@megaplane/nodes/chaos/fault';
import { formatDuration } from '@megaplane/base/limits';
import { Command, InvalidArgumentError, Option } from 'commander';
import { durationFrom, durationOption, percent, wholeNumber } from '../parsers/flag-parsers.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly zone?: string;
  readonly selector: string;
  readonly percent: number;
  readonly for?: number;
  readonly period: number;
  readonly timeout: number;
  readonly to: string;
  readonly wave: number;
  readonly down: number;
  readonly pause: number;
  readonly drain: boolean;
  readonly all?: boolean;
}

const ZONE_LABEL = 'topology.kubernetes.io/zone';
/** As shells say it of SIGINT. */
const EXIT_INTERRUPTED = 130;
/** A ConfigMap holds no more names. */
const WAVE_MAX = 10_000;
/** Shorter ones would be told to all simulators after their end. */
const FAULT_MS_MIN = 1000;

export function chaosCommand(done: (exitCode: number) => void): Command {
  const chaos = new Command('chaos')
    .summary('kill, freeze, flap, drain and upgrade simulated nodes')
    .description(
      'Says what happens to simulated nodes now; every simulator of the cluster hears of it.\n\n' +
        'Example: megaplane nodes chaos kill --kubeconfig ./kubeconfig --zone zone-a --for 5m',
    );
  const act: Act =
    (work) =>
    async (...args: unknown[]): Promise<void> => {
      const command = args.at(-1) as Command;
      const flags = command.optsWithGlobals<Flags>();
      const { createKubeClient } = await import('@megaplane/client/kube-client');
      const client = await createKubeClient({ kubeconfig: flags.kubeconfig });
      try {
        const end = await work(client, flags, command.args);
        const { text, exitCode } = typeof end === 'string' ? { text: end, exitCode: 0 } : end;
        process.stdout.write(`${text}\n`);
        done(exitCode);
      } finally {
        client.close();
      }
    };
  addFaults(chaos, act);
  addDrains(chaos, act);
  return chaos;
}

/** What a command says at its end; a text alone: all is well. */
type End = string | { readonly text: string; readonly exitCode: number };
type Act = (
  work: (client: KubeClient, flags: Flags, names: string[]) => Promise<End>,
) => (...args: unknown[]) => Promise<void>;

function kubeletVersion(text: string): string {
  if (/^v\d+\.\d+\.\d+([-+][\w.+-]+)?$/.test(text)) return text;
  throw new InvalidArgumentError('a version such as v1.37.0 is needed.');
}

function withNodes(command: Command, part: number): Command {
  return command
    .option('--zone <name>', 'nodes of this zone')
    .option('--selector <labels>', 'nodes with these labels', '')
    .option('--percent <number>', 'of these nodes', percent, part)
    .addOption(
      new Option('--for <duration>', 'then they are healed (default: by heal)').argParser(
        durationFrom(FAULT_MS_MIN),
      ),
    );
}

function addFaults(chaos: Command, act: Act): void {
  const down = act(async (client, flags) => add(client, flags, 'down'));
  withNodes(chaos.command('kill').summary('nodes, such as all of a zone, say no more'), 100)
    .description('Example: megaplane nodes chaos kill --kubeconfig F --zone zone-a')
    .option('--all', 'all nodes')
    .action((...args: unknown[]) => {
      const command = args.at(-1) as Command;
      const { zone, selector, all } = command.opts<Flags>();
      const isPart = command.getOptionValueSource('percent') !== 'default';
      if (zone === undefined && selector === '' && all !== true && !isPart) {
        command.error('error: give --zone, --selector, --percent or --all');
      }
      return down(...args);
    });
  withNodes(chaos.command('freeze').summary('a part of the nodes says nothing for a while'), 1)
    .description('Example: megaplane nodes chaos freeze --kubeconfig F --percent 1 --for 60s')
    .action(down);
  withNodes(chaos.command('flap').summary('nodes are ready and not ready in turns'), 1)
    .description('Example: megaplane nodes chaos flap --kubeconfig F --percent 1 --period 1m')
    .addOption(
      durationOption(
        '--period <duration>',
        'to go and come back',
        60_000,
        durationFrom(FAULT_MS_MIN),
      ),
    )
    .action(act(async (client, flags) => add(client, flags, 'flap')));
  chaos
    .command('heal [faults...]')
    .summary('ends these faults, or all')
    .description(
      'Without names also uncordons the nodes of an upgrade that was killed.\n\n' +
        'Example: megaplane nodes chaos heal --kubeconfig F f1',
    )
    .action(
      act(async (client, _flags, names) => {
        const { removeFaults } = await import('@megaplane/nodes/chaos/fault-list');
        const removed = await removeFaults(client, names, warn);
        const ids = removed.map(({ id }) => id);
        const unknown = names.filter((name) => !ids.includes(name));
        if (unknown.length > 0) throw new Error(`there is no fault ${unknown.join(', ')}`);
        const { uncordonLeft } = await import('@megaplane/nodes/chaos/drain');
        const left = names.length === 0 ? await uncordonLeft(client, warn) : 0;
        const healed = ids.length === 0 ? 'there was no fault' : `healed: ${ids.join(', ')}`;
        return left === 0 ? healed : `${healed}; ${left} nodes of an upgrade are uncordoned`;
      }),
    );
  chaos
    .command('list')
    .summary('faults of now')
    .description('Example: megaplane nodes chaos list --kubeconfig F')
    .action(
      act(async (client) => {
        const { listFaults } = await import('@megaplane/nodes/chaos/fault-list');
        const faults = await listFaults(client);
        return faults.map((fault) => sentence(fault, client)).join('\n') || 'no fault';
      }),
    );
}

function addDrains(chaos: Command, act: Act): void {
  const timeout = (): Option =>
    durationOption('--timeout <duration>', 'for each node', 600_000, durationFrom(0));
  const empty = act(async (client, flags, names) => {
    const { drain } = await import('@megaplane/nodes/chaos/drain');
    const own = await chosen(client, flags, names);
    await drain(own, { client, timeoutMs: flags.timeout, log: warn });
    return `${own.length} nodes are drained`;
  });
  chaos
    .command('drain [nodes...]')
    .summary('cordons nodes and evicts their pods')
    .description('Example: megaplane nodes chaos drain --kubeconfig F node-0 node-1')
    .option('--selector <labels>', 'nodes with these labels', '')
    .option('--all', 'all nodes')
    .addOption(timeout())
    .action((...args: unknown[]) => {
      const command = args.at(-1) as Command;
      const { selector, all } = command.opts<Flags>();
      if (command.args.length === 0 && selector === '' && all !== true) {
        command.error('error: name nodes, or give --selector or --all');
      }
      return empty(...args);
    });
  chaos
    .command('upgrade [nodes...]')
    .summary('brings kubelets to another version, wave by wave')
    .description('Example: megaplane nodes chaos upgrade --kubeconfig F --to v1.37.0 --wave 100')
    .requiredOption('--to <version>', 'of the kubelets afterwards, such as v1.37.0', kubeletVersion)
    .option('--selector <labels>', 'nodes with these labels', '')
    .option('--wave <nodes>', 'away at once', wholeNumber(1, WAVE_MAX), 100)
    .addOption(
      durationOption('--down <duration>', 'how long a node is away', 10_000, durationFrom(0)),
    )
    .addOption(durationOption('--pause <duration>', 'between two waves', 0, durationFrom(0)))
    .option('--no-drain', 'take them down with their pods')
    .addOption(timeout())
    .action(
      act(async (client, flags, names) => {
        const { upgrade } = await import('@megaplane/nodes/chaos/drain');
        const own = await chosen(client, flags, names);
        const { to: version, wave, down: downMs, pause: pauseMs, drain: isDrained } = flags;
        const timing = { downMs, pauseMs, timeoutMs: flags.timeout };
        const stop = untilInterrupted();
        const options = { client, version, wave, ...timing, isDrained, log: warn, stop };
        const count = await upgrade(own, options);
        const upgraded = `${count} nodes are upgraded to ${version}`;
        if (count === own.length) return upgraded;
        const text = `stopped: ${upgraded}, ${own.length - count} are as they were`;
        return { text, exitCode: EXIT_INTERRUPTED };
      }),
    );
}

/** Aborted by the first signal; the second one ends the process as ever. */
function untilInterrupted(): AbortSignal {
  const controller = new AbortController();
  const stop = guarded((): void => {
    process.off('SIGINT', stop).off('SIGTERM', stop);
    warn('stopping: the nodes of this wave are brought back');
    controller.abort();
  });
  process.on('SIGINT', stop).on('SIGTERM', stop);
  return controller.signal;
}

async function chosen(
  client: KubeClient,
  { selector }: Flags,
  names: readonly string[],
): Promise<readonly string[]> {
  const { nodesNamed, nodesOf } = await import('@megaplane/nodes/chaos/drain');
  if (names.length > 0) return nodesNamed(client, names, warn);
  const found = await nodesOf(client, selector);
  if (found.length === 0) throw new Error(noNode(selector));
  return found;
}

async function add(client: KubeClient, flags: Flags, kind: Fault['kind']): Promise<string> {
  const { addFault } = await import('@megaplane/nodes/chaos/fault-list');
  const { parseLabelSelector } = await import('@megaplane/machinery/selectors');
  const zone = flags.zone === undefined ? [] : [`${ZONE_LABEL}=${flags.zone}`];
  const selector = [...zone, ...(flags.selector === '' ? [] : [flags.selector])].join(',');
  const parsed = parseLabelSelector(selector);
  if ('error' in parsed) throw new Error(`--selector: ${parsed.error}`);
  const { hasNode } = await import('@megaplane/nodes/chaos/drain');
  if (!(await hasNode(client, selector, warn))) throw new Error(noNode(selector));
  const untilMs = flags.for === undefined ? 0 : client.timers.wallMs() + flags.for;
  const periodMs = kind === 'flap' ? flags.period : 0;
  return sentence(
    await addFault(
      client,
      {
        kind,
        selector,
        names: [],
        percent: flags.percent,
        untilMs,
        periodMs,
      },
      warn,
    ),
    client,
  );
}

function noNode(selector: string): string {
  return selector === '' ? 'there is no node' : `no node has the labels ${selector}`;
}

function sentence(fault: Fault, client: KubeClient): string {
  const { id, kind, selector, names, percent, untilMs, periodMs } = fault;
  const where = selector === '' ? 'all nodes' : `nodes with ${selector}`;
  const who = names.length > 0 ? `${names.length} nodes` : `${percent} % of ${where}`;
  const what = kind === 'down' ? 'down' : `flapping every ${formatDuration(periodMs)}`;
  const restMs = Math.max(0, Math.round((untilMs - client.timers.wallMs()) / 1000) * 1000);
  const end = untilMs === 0 ? 'until healed' : `for ${formatDuration(restMs)}`;
  return `${id}: ${who} ${what}, ${end}`;
}

let lastWarning = '';

/** Many nodes that wait for the same say so once. */
function warn(message: string): void {
  if (message !== lastWarning) process.stderr.write(`${message}\n`);
  lastWarning = message;
}

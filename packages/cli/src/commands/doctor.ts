// shell: standard output
/** `megaplane doctor`: what this machine can hold, and what to change. */
import { Command } from 'commander';
import { oneOf, path, wholeNumber } from '../parsers/flag-parsers.ts';
import { NODES_MAX, PODS_MAX } from './up.ts';

interface Flags {
  readonly nodes: number;
  readonly pods: number;
  readonly connections: number;
  readonly dataDir: string;
  readonly output: 'text' | 'json';
}

const CONNECTIONS_MAX = 100_000_000;
const MARKS = { ok: 'ok', advice: 'ADVICE', fault: 'FAULT' } as const;
const MARK_WIDTH = 8;
const CHECK_WIDTH = 20;

export function doctorCommand(done: (exitCode: number) => void): Command {
  return new Command('doctor')
    .summary('what this machine can hold, and what to change')
    .description(
      'Looks at the machine (cores, memory, descriptors, huge pages, ports, limits of the ' +
        'kernel) and says what to change. Exit code: 0 all can be had, 1 something cannot.\n\n' +
        'Example: megaplane doctor --nodes 1000000 --connections 1000000',
    )
    .option('--nodes <count>', 'to be held', wholeNumber(0, NODES_MAX), 10_000)
    .option('--pods <count>', 'to be held', wholeNumber(0, PODS_MAX), 0)
    .option(
      '--connections <count>',
      'of clients to one process',
      wholeNumber(0, CONNECTIONS_MAX),
      10_000,
    )
    .option('--data-dir <dir>', 'where the cluster is to live', path, './megaplane-data')
    .option('-o, --output <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .action(async (flags: Flags) => {
      const { readMachine } = await import('../doctor/machine.ts');
      const { examine } = await import('../doctor/findings.ts');
      const machine = await readMachine(flags.dataDir);
      const findings = examine(machine, flags);
      const isSound = findings.every(({ verdict }) => verdict !== 'fault');
      if (flags.output === 'json') {
        const { nodes, pods, connections } = flags;
        const wanted = { nodes, pods, connections };
        process.stdout.write(`${JSON.stringify({ sound: isSound, wanted, findings, machine })}\n`);
      } else {
        for (const { check, verdict, found, change } of findings) {
          const mark = MARKS[verdict].padEnd(MARK_WIDTH);
          process.stdout.write(`${mark}${check.padEnd(CHECK_WIDTH)}${found}\n`);
          if (change !== '') process.stdout.write(`${''.padEnd(MARK_WIDTH)}  -> ${change}\n`);
        }
      }
      done(isSound ? 0 : 1);
    });
}

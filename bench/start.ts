/**
 * From the command to the first answer of the API server: packed, and from the sources, in turns.
 *
 *     node bench/start.ts --runs 5
 *
 * Packs an npm package and an executable first. Each of the three is started once before it counts,
 * so that what was compiled is kept for all of them. Goal: packed in at most 0.7 of the sources.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packExecutable, type Architecture } from '../tools/pack/executable.ts';
import { packNpm } from '../tools/pack/npm-package.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import { machine, median, printTable, ROOT, writeResults } from './harness.ts';

const values = flagsOf({
  runs: { type: 'string', default: '5' },
  output: { type: 'string' },
});
const { runs } = wholeNumbers(values, { runs: 1 });

const UP = ['up', '--nodes', '0', '--components', 'apiserver', '--ephemeral', '--page-port', '0'];
const FLAGS = [...UP, '--secure-port', '0', '--output', 'json'];

interface Start {
  readonly answerMs: number;
  readonly cpuSeconds: number;
}

async function start(command: readonly string[]): Promise<Start> {
  const [program = '', ...args] = command;
  const child = spawn(program, [...args, ...FLAGS], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { firstAnswerMs, processes } = JSON.parse(line.toString()) as {
    readonly firstAnswerMs: number;
    readonly processes: readonly { readonly cpuSeconds: number }[];
  };
  child.kill('SIGINT');
  await once(child, 'exit');
  const cpuSeconds = processes.reduce((sum, one) => sum + one.cpuSeconds, 0);
  return { answerMs: firstAnswerMs, cpuSeconds };
}

const out = mkdtempSync(join(tmpdir(), 'megaplane-start-'));
try {
  await packNpm(out);
  const executable = await packExecutable(out, process.arch as Architecture);
  const commands = [
    ['sources', [process.execPath, join(ROOT, 'packages/cli/src/main.ts')]],
    ['npm package', [process.execPath, join(out, 'npm/lib/main.cjs')]],
    ['executable', [executable]],
  ] as const;
  const starts = new Map<string, Start[]>(commands.map(([name]) => [name, []]));
  for (const [, command] of commands) await start(command);
  for (let run = 0; run < runs; run++) {
    for (const [name, command] of commands) starts.get(name)?.push(await start(command));
  }
  process.stdout.write(`${machine()}\n`);
  const middle = (name: string, of: keyof Start): number =>
    median((starts.get(name) ?? []).map((one) => one[of]));
  const rows = commands.map(([name]) => [
    name,
    `${Math.round(middle(name, 'answerMs'))}`,
    `${(middle(name, 'answerMs') / middle('sources', 'answerMs')).toFixed(2)}`,
    `${middle(name, 'cpuSeconds').toFixed(2)}`,
    (starts.get(name) ?? []).map((one) => Math.round(one.answerMs)).join(' '),
  ]);
  printTable(['', 'first answer ms', 'of sources', 'cpu s', 'runs'], rows);
  writeResults(values.output, { machine: machine(), starts: Object.fromEntries(starts) });
} finally {
  rmSync(out, { recursive: true, force: true });
}

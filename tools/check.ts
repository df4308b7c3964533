/**
 * The whole check, in the order of cost: types, lint, format, unused code, tests.
 *
 * `npm test` runs all of it and ends with the count of the tests; `npm run check` leaves the tests
 * out. Arguments that are paths run only those test files.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const TEST_FILES = [
  'packages/*/src/**/*.test.ts',
  'packages/*/test/**/*.test.ts',
  'tools/*.test.ts',
];

/**
 * What wants a process of its own: programs that are started, hooks for all tests of a file (they
 * would run around those of other files), memory that is measured.
 */
const ALONE = /^(?:before|after)(?:Each)?\(|node:child_process|process\.memoryUsage/m;
const FILES_PER_PROCESS_MAX = 24;

interface Step {
  readonly name: string;
  readonly command: readonly string[];
}

const CHECKS: readonly Step[] = [
  { name: 'types', command: ['tsc', '-p', '.'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings', '--quiet'] },
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'unused code', command: ['knip', '--no-progress'] },
];

function run(step: Step): boolean {
  const startMs = performance.now();
  const [program = '', ...args] = step.command;
  const path = program === 'node' ? process.execPath : join(ROOT, 'node_modules/.bin', program);
  const env = {
    ...process.env,
    PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`,
    // each test file is a process: they share what was compiled, which is a quarter of their time
    // and most of what a kubectl of a tenth of a second computes is collecting garbage
    GOGC: '400',
    NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compile'),
  };
  const isTest = step.name === 'tests';
  const result = spawnSync(path, args, { cwd: ROOT, env, stdio: isTest ? 'inherit' : 'pipe' });
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  if (!isTest) {
    process.stdout.write(
      `${step.name}: ${result.status === 0 ? 'ok' : 'FAILED'} in ${seconds} s\n`,
    );
    if (result.status !== 0)
      process.stdout.write(`${String(result.stdout)}${String(result.stderr)}`);
  }
  return result.status === 0;
}

function testStep(named: readonly string[]): Step {
  const files = named.length > 0 ? named : inProcesses(globSync(TEST_FILES, { cwd: ROOT }).sort());
  const reporter = `--test-reporter=${join(ROOT, 'tools/reporter.ts')}`;
  // most of what tests make is garbage soon: a fifth of their time was moving what is young
  const heap = '--max-semi-space-size=64';
  const flags = [heap, '--test', '--test-concurrency=3', '--test-timeout=120000', reporter];
  return { name: 'tests', command: ['node', ...flags, ...files] };
}

/**
 * The files as processes: most import the same rooms, and to load these again for each file took
 * more than the tests. So those of a package share a process, by a module that imports them.
 */
function inProcesses(files: readonly string[]): string[] {
  const folder = join(ROOT, 'node_modules/.cache/tests');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const alone: string[] = [];
  const shared = new Map<string, string[]>();
  for (const file of files) {
    if (ALONE.test(readFileSync(join(ROOT, file), 'utf8'))) alone.push(file);
    else {
      const [room = ''] = file.replace('packages/', '').split('/');
      shared.set(room, [...(shared.get(room) ?? []), file]);
    }
  }
  const modules = [...shared].flatMap(([room, members]) => {
    const count = Math.ceil(members.length / FILES_PER_PROCESS_MAX);
    return Array.from({ length: count }, (_, i) => {
      const path = join(folder, `${room}-${i + 1}.test.mjs`);
      const imports = members.filter((_file, at) => at % count === i);
      writeFileSync(path, imports.map((file) => `import '../../../${file}';\n`).join(''));
      return path;
    });
  });
  return [...alone, ...modules];
}

const args = process.argv.slice(2);
const named = args.filter((arg) => !arg.startsWith('-'));
let isGood = true;
if (named.length === 0) for (const step of CHECKS) isGood = run(step) && isGood;
if (!args.includes('--no-tests')) isGood = run(testStep(named)) && isGood;
process.exitCode = isGood ? 0 : 1;

/**
 * The whole check, in the order of cost: types, lint, format, unused code, tests.
 *
 * `npm test` runs all of it and ends with the count of the tests; `npm run check` leaves the tests
 * out. Arguments that are paths run only those test files.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const TEST_FILES = [
  'packages/*/src/**/*.test.ts',
  'packages/*/test/**/*.test.ts',
  'tools/*.test.ts',
];

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
  const files = named.length > 0 ? named : globSync(TEST_FILES, { cwd: ROOT }).sort();
  const reporter = `--test-reporter=${join(ROOT, 'tools/reporter.ts')}`;
  const flags = ['--test', '--test-concurrency=3', '--test-timeout=120000', reporter];
  return { name: 'tests', command: ['node', ...flags, ...files] };
}

const args = process.argv.slice(2);
const named = args.filter((arg) => !arg.startsWith('-'));
let isGood = true;
if (named.length === 0) for (const step of CHECKS) isGood = run(step) && isGood;
if (!args.includes('--no-tests')) isGood = run(testStep(named)) && isGood;
process.exitCode = isGood ? 0 : 1;

/**
 * The whole check: types, lint, format and unused code beside each other, then tests.
 *
 * `npm test` runs all of it and ends with the count of the tests; `npm run check` leaves the tests
 * out. Arguments that are paths run only those test files.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ENV, isPeerTest, TEST_FILES, testFlags } from './test-run.ts';

const ROOT = join(import.meta.dirname, '..');
/**
 * What wants a process of its own: programs that are started, hooks for all tests of a file (they
 * would run around those of other files), memory that is measured, objects that are counted.
 */
const ALONE =
  /^(?:before|after)(?:Each)?\(|node:child_process|process\.memoryUsage|queryObjects\(/m;
const FILES_PER_PROCESS_MAX = 24;

interface Step {
  readonly name: string;
  readonly command: readonly string[];
}

const CHECKS: readonly Step[] = [
  { name: 'types', command: ['tsc', '-p', '.'] },
  { name: 'types of the page', command: ['tsc', '-p', 'packages/dashboard'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings', '--quiet'] },
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'unused code', command: ['knip', '--no-progress'] },
];

/** Says how it went, and all that it wrote if it failed. */
async function check({ name, command: [program = '', ...args] }: Step): Promise<boolean> {
  const startMs = performance.now();
  // they are over before it pays that some of them collect garbage
  const env = { ...ENV, GOGC: 'off' };
  const child = spawn(join(ROOT, 'node_modules/.bin', program), args, { cwd: ROOT, env });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const isGood = code === 0;
  process.stdout.write(`${name}: ${isGood ? 'ok' : 'FAILED'} in ${seconds} s\n`);
  if (!isGood) process.stdout.write(`${out}${err}`);
  return isGood;
}

function test(named: readonly string[]): boolean {
  const found = globSync(TEST_FILES, { cwd: ROOT }).filter((file) => !isPeerTest(file));
  const files = named.length > 0 ? named : inProcesses(found.sort());
  const options = { cwd: ROOT, env: ENV, stdio: 'inherit' } as const;
  return spawnSync(process.execPath, [...testFlags(), ...files], options).status === 0;
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
const checks = named.length > 0 ? [] : await Promise.all(CHECKS.map(check));
const isTested = args.includes('--no-tests') || test(named);
const failed = CHECKS.filter((_check, i) => checks[i] === false).map(({ name }) => name);
// what failed before the tests scrolled away under them
if (failed.length > 0) process.stdout.write(`FAILED: ${failed.join(', ')}\n`);
process.exitCode = isTested && failed.length === 0 ? 0 : 1;

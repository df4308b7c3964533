/** How test files are found and run, for the whole check and for the tests beside peers. */
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

export const TEST_FILES: readonly string[] = [
  'packages/*/src/**/*.test.ts',
  'packages/*/test/**/*.test.ts',
  'bench/**/*.test.ts',
  'tools/*.test.ts',
];

/** Builds a program in another language first, which takes minutes: `npm run test:peers`. */
export function isPeerTest(file: string): boolean {
  return file.endsWith('.peer.test.ts');
}

export const ENV: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`,
  // each test file is a process: they share what was compiled, which is a quarter of their time
  // and most of what a kubectl of a tenth of a second computes is collecting garbage
  GOGC: '400',
  NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compile'),
};

/** Flags of Node in front of the test files; `timeoutMs`: what one test may take. */
export function testFlags(timeoutMs = 300_000): string[] {
  return [
    // most of what tests make is garbage soon: a fifth of their time was moving what is young
    '--max-semi-space-size=64',
    `--import=${join(ROOT, 'tools/seed.ts')}`,
    ...['--test', '--test-concurrency=3', `--test-timeout=${timeoutMs}`],
    `--test-reporter=${join(ROOT, 'tools/reporter.ts')}`,
  ];
}

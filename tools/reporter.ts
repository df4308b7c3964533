/**
 * The test reporter: each failure and each skip with its reason, and at the end the slowest files,
 * the seconds of each package's processes, and one line that counts.
 */
import { resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

/** Of what a process wrote as errors, the end that is shown if it fails. */
const TOLD_CHARS_MAX = 4000;

interface FileCount {
  passed: number;
  failed: number;
  ms: number;
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files = new Map<string, FileCount>();
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  /** By process: what it wrote that may say why it ended, and whether a test said so already. */
  const told = new Map<string, string>();
  const explained = new Set<string>();
  const packageMs = new Map<string, number>();
  for await (const event of source) {
    if (event.type === 'test:stderr' || event.type === 'test:diagnostic') {
      const { data } = event;
      const of = 'entryFile' in data ? (data.entryFile ?? '') : resolve(data.file ?? '');
      told.set(of, `${told.get(of) ?? ''}${data.message}`.slice(-TOLD_CHARS_MAX));
    }
    // one of each process, from its start to its end
    if (event.type === 'test:summary' && event.data.file !== undefined) {
      const name = packageOf(event.data.file);
      packageMs.set(name, (packageMs.get(name) ?? 0) + event.data.duration_ms);
    }
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const data = event.data;
    const entryFile = data.entryFile ?? data.file ?? '';
    if (isProcess(data)) {
      if (event.type === 'test:pass' || explained.has(entryFile)) continue;
      failed++;
      yield `FAILED ${data.name}: its process ended badly\n${indent(told.get(entryFile) ?? '')}\n`;
      continue;
    }
    if (event.type === 'test:fail') explained.add(entryFile);
    if (data.details.type === 'suite') continue;
    const path = data.file?.replace(`${process.cwd()}/`, '') ?? '?';
    const count = files.get(path) ?? { passed: 0, failed: 0, ms: 0 };
    files.set(path, count);
    if (data.nesting === 0) count.ms += data.details.duration_ms;
    if (data.skip !== undefined && data.skip !== false) {
      skipped++;
      yield `  skipped: ${data.name} (${String(data.skip)})\n`;
    } else if (data.todo !== undefined && data.todo !== false) {
      skipped++;
      yield `  not yet: ${data.name} (${String(data.todo)})\n`;
    } else if (event.type === 'test:pass') {
      passed++;
      count.passed++;
    } else {
      failed++;
      count.failed++;
      yield `FAILED ${path}: ${data.name}\n${indent(reason(event.data.details))}\n`;
    }
  }
  const slowest = [...files].sort((a, b) => b[1].ms - a[1].ms).slice(0, 8);
  for (const [path, count] of slowest) {
    yield `  ${path}: ${count.passed} passed in ${Math.round(count.ms)} ms\n`;
  }
  const seconds = [...packageMs]
    .sort((a, b) => b[1] - a[1])
    .map(([name, ms]) => `${name} ${(ms / 1000).toFixed(1)}`);
  yield `  seconds of processes: ${seconds.join(', ')}\n`;
  yield `${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}

/** The package of a test file, or of a process that holds several (`cli-1.test.mjs`). */
function packageOf(path: string): string {
  const [, shared] = /\/\.cache\/tests\/([a-z]+)-/.exec(path) ?? [];
  const [folder = ''] = path.replace(`${process.cwd()}/`, '').replace('packages/', '').split('/');
  return shared ?? folder;
}

/** A test process is reported as a test of its own by the name of its file. */
function isProcess(data: { readonly name: string }): boolean {
  return /\/.*\.m?[tj]s$/.test(data.name);
}

function reason(details: object): string {
  const error = (details as { readonly error?: { readonly cause?: unknown } }).error;
  const cause = error?.cause ?? error;
  return cause instanceof Error ? (cause.stack ?? cause.message) : JSON.stringify(cause);
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

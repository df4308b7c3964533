/**
 * The test reporter: a line per file with its count and time, each failure and each skip with its
 * reason, and at the end one line that counts.
 */
import type { TestEvent } from 'node:test/reporters';

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
  for await (const event of source) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const data = event.data;
    if (data.details.type === 'suite' || isFile(data)) continue;
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
  yield `${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}

/** A test process that ends well is reported as a test of its own by the name of its file. */
function isFile(data: { readonly name: string; readonly details: object }): boolean {
  return data.name.endsWith('.ts') && data.name.includes('/');
}

function reason(details: object): string {
  const error = (details as { readonly error?: { readonly cause?: unknown } }).error;
  const cause = error?.cause ?? error;
  return cause instanceof Error ? (cause.stack ?? cause.message) : JSON.stringify(cause);
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

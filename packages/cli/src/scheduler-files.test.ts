import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { configurationOf } from './scheduler-files.ts';

const HEAD = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n';
const INVALID = 'strict decoding error: yaml: unmarshal errors:';

/** What is wrong with a file, as kube-scheduler v1.36.1 says it. */
function faultOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'megaplane-'));
  const file = join(folder, 'config.yaml');
  try {
    writeFileSync(file, text);
    configurationOf(file);
    return '';
  } catch (error) {
    return (error as Error).message.replace(`--config ${file}:\n  `, '');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a member that is there twice is told with its line', () => {
  const twice = `${HEAD}parallelism: 3\n"parallelism": 4\nleaderElection: {a: 1, a: 2}\n`;
  const lines = ['line 4: key "parallelism"', 'line 5: key "a"'];
  const told = lines.map((line) => `    ${line} already set in map`);
  assert.equal(faultOf(twice), [INVALID, ...told].join('\n'));
});

test('what follows the first document is not read', () => {
  assert.equal(faultOf(`${HEAD}---\nfoo: 1\n`), '');
});

test('durations are refused in the words of Go', () => {
  const faultFor = (text: string): string =>
    faultOf(`${HEAD}leaderElection: {leaseDuration: ${text}}\n`);
  assert.equal(faultFor('5x'), 'time: unknown unit "x" in duration "5x"');
  assert.equal(faultFor("'5'"), 'time: missing unit in duration "5"');
  assert.equal(faultFor('soon'), 'time: invalid duration "soon"');
});

test('an empty file is an object without a kind', () => {
  assert.equal(faultOf(''), "Object 'Kind' is missing");
});

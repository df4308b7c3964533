import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { configurationOf, explainPod, readPlugins } from './scheduler-files.ts';

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

test('a pod is explained by a configuration that names plugins of users', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'megaplane-'));
  const [config, plugin] = [join(folder, 'config.yaml'), join(folder, 'own.ts')];
  try {
    const sets = '{multiPoint: {enabled: [{name: Own}]}}';
    writeFileSync(config, `${HEAD}profiles: [{plugins: ${sets}}]\n`);
    const own = `{ name: 'Own', points: ['score'], create: () => ({ name: 'Own' }) }`;
    writeFileSync(plugin, `export default ${own};\n`);
    const flags = { namespace: 'default', kubeconfig: join(folder, 'none'), config, nodes: 1 };
    const rest = { requestTimeout: 1000, output: 'table', emulatedVersion: '1.36' } as const;
    const explain = (files: readonly string[]): Promise<number> =>
      explainPod('p', { ...flags, ...rest, plugin: files });
    await assert.rejects(explain([]), /"Own" does not exist/);
    await assert.rejects(explain([plugin]), /cannot read kubeconfig/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a module of plugins that cannot be loaded is told with its flag', async () => {
  await assert.rejects(readPlugins(['./none.ts']), /^Error: --plugin: cannot load \.\/none\.ts: /);
});

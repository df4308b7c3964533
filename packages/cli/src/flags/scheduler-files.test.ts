import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseConfiguration } from '@megaplane/scheduler/configuration/configuration';
import { configurationOf, explainPod, readPlugins } from './scheduler-files.ts';
import { readStrictText } from './strict-text.ts';

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
  const unknown = ', unknown field "leaderElection.a"';
  assert.equal(faultOf(twice), `${[INVALID, ...told].join('\n')}${unknown}`);
});

test('what a text says first of all is what kube-scheduler says first', () => {
  const invalid = "couldn't get version/kind; json parse error:";
  assert.equal(faultOf('{"kind": "x"'), `${invalid} unexpected end of JSON input`);
  assert.equal(
    faultOf('{"kind": x'),
    `${invalid} invalid character 'x' looking for beginning of value`,
  );
  assert.equal(faultOf(`${HEAD}parallelism: .nan\n`), 'json: unsupported value: NaN');
  const where = 'Go struct field KubeSchedulerConfiguration';
  // Members of YAML are sorted on the way, those of JSON are not.
  const version = '"apiVersion":"kubescheduler.config.k8s.io/v1"';
  const wrong = `{"kind":"KubeSchedulerConfiguration",${version}`;
  assert.equal(
    faultOf(`${wrong},"parallelism":[],"extenders":{}}`),
    `json: cannot unmarshal array into ${where}.parallelism of type int32`,
  );
  assert.equal(
    faultOf(`${HEAD}parallelism: []\nextenders: {}\n`),
    `json: cannot unmarshal object into ${where}.extenders of type []v1.Extender`,
  );
  assert.equal(
    faultOf(`${wrong},"profiles":[{"schedulerName":"a","schedulerName":"b"}]}`),
    'strict decoding error: duplicate field "profiles[0].schedulerName"',
  );
});

test('dates and times are texts, as for kube-scheduler', () => {
  const plugins = '{permit: {enabled: [{name: 1:30}]}, filter: {enabled: [{name: 2001-01-01}]}}';
  assert.match(
    faultOf(`${HEAD}profiles: [{plugins: ${plugins}}]\n`),
    /: FilterPlugin "2001-01-01" does not exist$/,
  );
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
  assert.equal(faultOf(''), "Object 'Kind' is missing in ''");
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

interface NumberVector {
  readonly text: string;
  readonly error?: string;
  /** What the number in question is read as. */
  readonly number?: string;
}

/*
 * Made by k8s.io/kube-scheduler v0.36.1 (config/v1) with Go 1.26: the strict UniversalDeserializer
 * of a scheme with these types, for the file and then for the arguments of the plugin in it.
 */
const NUMBERS = JSON.parse(
  readFileSync(join(import.meta.dirname, 'scheduler-numbers.vectors'), 'utf8'),
) as readonly NumberVector[];

test('numbers are read as kube-scheduler reads them from YAML and JSON, with all digits', () => {
  assert(NUMBERS.length > 200);
  const wrong: string[] = [];
  for (const { text, error, number } of NUMBERS) {
    const { value, fault, repeated, numbers } = readStrictText(text);
    if (fault !== '') {
      if (fault !== error) wrong.push(`${error}: ${text}: ${fault}`);
      continue;
    }
    const parsed = parseConfiguration(value, [], { text, repeated, numbers });
    const told = parsed.ok ? JSON.stringify(parsed.configuration.complete) : parsed.errors.join();
    if (error !== undefined) {
      const bare = told.replace(/^decoding \.profiles.*? for plugin \w+: /, '');
      if (bare !== error) wrong.push(`${error}: ${text}: ${told}`);
      continue;
    }
    // the fault of the other member of the two shows that one
    const isShown = new RegExp(`[: ]${number}\\b`).test(told) || told.startsWith('podMax');
    if (!isShown) wrong.push(`${number}: ${text}: ${told}`);
  }
  assert.deepEqual(wrong, []);
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, kubectlOf, kubectls, megaplane, NO_KUBECTL, startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';

const [kubectl] = kubectls();
const skip = kubectl === undefined ? NO_KUBECTL : false;
/** A stage of a kind that kwok's own sets do not name, beside the general ones. */
const LABELLED = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: config-map-seen }
spec:
  resourceRef: { apiGroup: v1, kind: ConfigMap }
  selector: { matchLabels: { watched: "yes" } }
  next:
    patches: [{ root: data, template: 'seen: "by {{ .metadata.name }}"' }]
`;
let folder: string;
let cluster: Cluster;

before(async () => {
  if (skip !== false) return;
  folder = mkdtempSync(join(tmpdir(), 'megaplane-stages-'));
  const own = join(folder, 'own.yaml');
  writeFileSync(own, LABELLED);
  cluster = await startCluster(['--nodes', '2', '--stages', 'general', 'chaos', own]);
});
after(async () => {
  await cluster?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

test('pods live by the stages of files, and other kinds too', { skip }, async () => {
  const run = kubectlOf(kubectl ?? '', cluster);
  const quick = ['pod-create', 'pod-ready', 'pod-delete'].flatMap((stage) => [
    `${stage}.stage.kwok.x-k8s.io/delay=100ms`,
    `${stage}.stage.kwok.x-k8s.io/jitter-delay=100ms`,
  ]);
  run('create', 'configmap', 'c', '--from-literal=a=b');
  run('label', 'configmap', 'c', 'watched=yes');
  run('run', 'p', '--image=i', ...quick.map((pair) => `--annotations=${pair}`));
  await eventually('a running pod', () => {
    const phase = run('get', 'pod', 'p', '-o', 'jsonpath={.status.phase}');
    return phase === 'Running' ? phase : undefined;
  });
  assert.match(run('get', 'pod', 'p', '-o', 'jsonpath={.status.podIP}'), /^10\./);
  // Each kind has a watch of its own, and events are told beside what they are about.
  const created = /Created +\S+ +kwok_controller +Created container/;
  await eventually('the event', () => created.test(run('describe', 'pod', 'p')) || undefined);
  await eventually('the other kind', () => {
    return run('get', 'configmap', 'c', '-o', 'jsonpath={.data.seen}') === 'by c' || undefined;
  });
  run('label', 'pod', 'p', 'pod-container-running-failed.stage.kwok.x-k8s.io=true');
  await eventually('a failed pod', () => {
    const state = run('get', 'pod', 'p', '-o', 'jsonpath={.status.phase}');
    return state === 'Failed' ? state : undefined;
  });
  run('delete', 'pod', 'p', '--timeout=90s');
});

/** As much of kwok's definition as a server needs. */
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'stages.kwok.x-k8s.io' },
  spec: {
    group: 'kwok.x-k8s.io',
    names: { kind: 'Stage', listKind: 'StageList', plural: 'stages', singular: 'stage' },
    scope: 'Cluster',
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};

test('stages that the server holds play beside those of files', { skip }, async () => {
  const run = kubectlOf(kubectl ?? '', cluster);
  const definition = join(folder, 'definition.json');
  writeFileSync(definition, JSON.stringify(DEFINITION));
  run('apply', '-f', definition);
  run('wait', '--for=condition=Established', 'crd/stages.kwok.x-k8s.io', '--timeout=90s');
  const { dataDir } = cluster;
  const nodes = spawn(process.execPath, [
    ...[join(import.meta.dirname, '../src/main.ts'), 'nodes', '--server-address', '127.0.0.1:0'],
    ...['--kubeconfig', cluster.kubeconfig, '--manage-nodes-with-label-selector', 'none=here'],
  ]);
  let told = '';
  nodes.stderr.on('data', (part: Buffer) => (told += part.toString()));
  try {
    await new Promise((resolve) => nodes.stdout.once('data', resolve));
    const own = join(dataDir, 'object.yaml');
    const text = LABELLED.replace('config-map-seen', 'of-server').replace('"yes"', 'server');
    writeFileSync(own, text.replace('"by {{', '"server {{'));
    run('apply', '-f', own);
    writeFileSync(own, text.replace('of-server', 'bad').replace('.metadata.name', '.x | nosuch'));
    run('apply', '-f', own);
    run('create', 'configmap', 's', '--from-literal=a=b');
    run('label', 'configmap', 's', 'watched=server');
    await eventually('the change of the stage', () => {
      const seen = run('get', 'configmap', 's', '-o', 'jsonpath={.data.seen}');
      return seen === 'server s' ? seen : undefined;
    });
    const refused = /Stage bad is refused: .*function "nosuch" not defined/;
    await eventually('a refusal', () => (refused.test(told) ? told : undefined));
    run('delete', 'stage', 'of-server', 'bad');
    await eventually('the event of the refusal', () => {
      const events = run('get', 'events', '-o', 'jsonpath={.items[*].message}');
      return /function "nosuch" not defined/.test(events) || undefined;
    });
  } finally {
    nodes.kill();
    await new Promise((resolve) => nodes.once('exit', resolve));
  }
});

test('a stage that cannot be understood is refused at the start', { skip }, () => {
  const file = join(folder, 'broken.yaml');
  writeFileSync(file, LABELLED.replace('.metadata.name', '.metadata.name | nosuch'));
  const port = ['--server-address', '127.0.0.1:0'];
  const nodes = megaplane('nodes', ...port, '--kubeconfig', cluster.kubeconfig, '--config', file);
  assert.equal(nodes.status, 1);
  assert.match(nodes.stderr, /broken\.yaml:\d+:\d+: .*template.*function "nosuch" not defined/);
});

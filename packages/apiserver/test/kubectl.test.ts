/** kubectl, as it is on this machine, against a server of this package over TLS. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runApiserver, type ApiserverService } from '../src/server/run.ts';

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const options = {
  skip: hasKubectl ? false : 'needs kubectl: apt-get install kubernetes-client',
};
const dir = mkdtempSync(join(tmpdir(), 'megaplane-kubectl-'));
let service: ApiserverService | null = null;

before(async () => {
  if (!hasKubectl) return;
  service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    log: (level, message) => console.error(level, message),
  });
});

after(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true });
});

/** Runs kubectl; the home directory keeps its caches out of the user's. */
function kubectl(...args: readonly string[]): Promise<{ code: number; text: string }> {
  const env = { ...process.env, HOME: dir, KUBECONFIG: join(dir, 'kubeconfig') };
  return new Promise((done) => {
    execFile('kubectl', args, { env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : 1, text: stdout + stderr });
    });
  });
}

async function succeeds(pattern: RegExp, ...args: readonly string[]): Promise<void> {
  const { code, text } = await kubectl(...args);
  assert.equal(code, 0, `kubectl ${args.join(' ')}: ${text}`);
  assert.match(text, pattern, args.join(' '));
}

function manifest(image: string): string {
  const file = join(dir, 'deployment.yaml');
  writeFileSync(
    file,
    `apiVersion: apps/v1
kind: Deployment
metadata: { name: web, labels: { app: web } }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: c, image: "${image}" }] }
`,
  );
  return file;
}

test('a deployment is applied, changed, scaled, labelled and deleted', options, async () => {
  await succeeds(/deployment.apps\/web created/, 'apply', '-f', manifest('a:1'));
  await succeeds(/deployment.apps\/web unchanged/, 'apply', '-f', manifest('a:1'));
  await succeeds(/deployment.apps\/web configured/, 'apply', '-f', manifest('a:2'));
  await succeeds(/scaled/, 'scale', 'deployment', 'web', '--replicas=5');
  await succeeds(/labeled/, 'label', 'deployment', 'web', 'tier=front');
  await succeeds(/web +0\/5 +0 +0 .* c +a:2 +app=web/, 'get', 'deployments', '-o', 'wide');
  await succeeds(/^5 a:2 front$/m, 'get', 'deployment', 'web', '-o', JSON_PATH);
  await succeeds(/deployment.apps "web" deleted/, 'delete', 'deployment', 'web');
  const gone = await kubectl('get', 'deployment', 'web');
  assert.match(gone.text, /deployments.apps "web" not found/);
});

const JSON_PATH =
  'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} {.metadata.labels.tier}';

test('discovery, explain and access questions are answered', options, async () => {
  await succeeds(/^pods +po +v1 +true +Pod$/m, 'api-resources');
  await succeeds(/FIELD: containers <\[\]Container>/, 'explain', 'pod.spec.containers');
  await succeeds(/^yes$/m, 'auth', 'can-i', 'delete', 'nodes');
  await succeeds(/Username +kubernetes-admin/, 'auth', 'whoami');
  await succeeds(/configmap\/c created/, 'create', 'configmap', 'c', '--from-literal=a=b');
  const wrong = await kubectl('create', 'configmap', 'c', '--from-literal=a=b');
  assert.match(wrong.text, /configmaps "c" already exists/);
});

const WIDGETS = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [toys] }
  versions:
    - name: v1
      served: true
      storage: true
      additionalPrinterColumns: [{ name: Size, type: integer, jsonPath: .spec.size }]
      subresources:
        scale: { specReplicasPath: .spec.size, statusReplicasPath: .status.size }
      schema:
        openAPIV3Schema:
          type: object
          description: A widget is a thing.
          properties:
            spec:
              type: object
              properties: { size: { type: integer, description: How large it is. } }
`;

test('custom resources feel as built-in ones', options, async () => {
  const file = join(dir, 'widgets.yaml');
  writeFileSync(file, WIDGETS);
  await succeeds(/widgets.example.com created/, 'apply', '-f', file);
  await succeeds(/condition met/, 'wait', '--for=condition=Established', 'crd/widgets.example.com');
  await succeeds(/^widgets +wd +example.com\/v1 +true +Widget$/m, 'api-resources');
  await succeeds(/How large it is\./, 'explain', 'widget.spec.size');
  const object = join(dir, 'widget.yaml');
  writeFileSync(
    object,
    'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n',
  );
  await succeeds(/widget.example.com\/w created/, 'apply', '-f', object);
  await succeeds(/widget.example.com\/w unchanged/, 'apply', '-f', object);
  await succeeds(/serverside-applied/, 'apply', '--server-side', '-f', object);
  await succeeds(/^w +3$/m, 'get', 'toys');
  await succeeds(/widget.example.com\/w scaled/, 'scale', 'wd', 'w', '--replicas=5');
  await succeeds(/Size: +5/, 'describe', 'widget', 'w');
  await succeeds(/deleted/, 'delete', 'crd', 'widgets.example.com');
});

test('a misspelt field is refused with its path', options, async () => {
  const file = join(dir, 'pod.yaml');
  writeFileSync(
    file,
    'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n' +
      'spec: {containers: [{name: c, image: i, imagee: x}]}\n',
  );
  const { code, text } = await kubectl('apply', '-f', file);
  assert.equal(code, 1);
  assert.match(text, /unknown field "spec.containers\[0\].imagee"/);
});

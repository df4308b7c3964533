/** kubectl, as it is on this machine, against a server of this package over TLS. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runApiserver, type ApiserverService } from './run.ts';

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

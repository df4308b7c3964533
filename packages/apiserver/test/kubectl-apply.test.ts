/** kubectl of several minors, applying on the server's side. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { runApiserver, type ApiserverService } from '../src/server/run.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
const MINORS = IS_LONG ? ['1.27', '1.28', '1.29', '1.30', '1.31', '1.33'] : ['1.27', '1.33'];

/** Programs by minor: those that lie beside kubectl, or whatever kubectl is. */
function programs(): string[] {
  const which = spawnSync('which', ['kubectl']).stdout.toString().trim();
  if (which === '') return [];
  const beside = MINORS.map((minor) => join(dirname(realpathSync(which)), `kubectl.${minor}`));
  const found = beside.filter((file) => existsSync(file));
  return found.length > 0 ? found : [which];
}

const PROGRAMS = programs();
const options = {
  skip: PROGRAMS.length > 0 ? false : 'needs kubectl: apt-get install kubernetes-client',
};
const dir = mkdtempSync(join(tmpdir(), 'megaplane-apply-'));
let service: ApiserverService | null = null;

before(async () => {
  if (PROGRAMS.length === 0) return;
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

function manifest(namespace: string, image: string): string {
  const file = join(dir, `${namespace}-${image.replace(':', '-')}.yaml`);
  writeFileSync(
    file,
    `apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: ${namespace} }
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

function run(program: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, HOME: dir, KUBECONFIG: join(dir, 'kubeconfig') };
  return new Promise((done) => {
    execFile(program, args, { env }, (_, stdout, stderr) => done(stdout + stderr));
  });
}

async function tellStory(program: string, namespace: string): Promise<void> {
  const kubectl = (...args: readonly string[]): Promise<string> => run(program, ...args);
  const on = ['-n', namespace];
  const [one, two] = [manifest(namespace, 'i:1'), manifest(namespace, 'i:2')];
  const server = ['apply', '--server-side', '-f'];
  await kubectl('create', 'namespace', namespace);
  assert.match(await kubectl(...server, one), /web serverside-applied/);
  assert.match(await kubectl('diff', '--server-side', '-f', two), /^\+ +- image: i:2$/m);
  const refused = await kubectl(...server, two, '--field-manager=other');
  assert.match(refused, /conflict with "kubectl": \.spec\.template\.spec\.containers\[name="c"\]/);
  const taken = await kubectl(...server, two, '--field-manager=other', '--force-conflicts');
  assert.match(taken, /web serverside-applied/);
  assert.match(await kubectl(...on, 'scale', 'deployment/web', '--replicas=3'), /scaled/);
  const shown = await kubectl(
    ...on,
    'get',
    'deployment/web',
    '-o',
    'yaml',
    '--show-managed-fields',
  );
  assert.match(shown, /manager: other\n {4}operation: Apply/);
  assert.match(shown, /subresource: scale/);
  assert.doesNotMatch(await kubectl(...on, 'get', 'deployment/web', '-o', 'yaml'), /managedFields/);
  await kubectl(...on, 'delete', 'deployment/web', '--wait=false');
  // from the client's side to the server's
  assert.match(await kubectl('apply', '-f', one), /web created/);
  assert.match(await kubectl(...server, two), /web serverside-applied/);
  const moved = await kubectl(
    ...on,
    'get',
    'deployment/web',
    '-o',
    'yaml',
    '--show-managed-fields',
  );
  assert.doesNotMatch(moved, /kubectl-client-side-apply/);
  assert.match(moved, /image: i:2/);
}

test('manifests are applied, compared, refused and taken over', options, async () => {
  await Promise.all(PROGRAMS.map((program, at) => tellStory(program, `story-${at}`)));
});

/**
 * Clients of many languages read one large list, which comes compressed: curl, Node's fetch, the
 * JavaScript, Python, Go, Rust and Java clients, and Python's httpx (which lightkube and kr8s use).
 * Each says how many objects it found and how many characters they hold.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { CoreV1Api, KubeConfig, RbacAuthorizationV1Api } from '@kubernetes/client-node';
import { runApiserver, type ApiserverService } from '@megaplane/apiserver/run';
import { GO_BUILD_MS, GoPeer } from '@megaplane/base/go-peer.sim';

const SOURCE = join(import.meta.dirname, 'large-lists');
const NAMESPACE = 'default';
const OBJECTS = 300;
/** Text that compresses to half: the compressed list is far above one piece of 128 KiB. */
const TEXT_LENGTH = 6000;
const RUN_MS = 120_000;
/** Builds from nothing fetch hundreds of packages. */
const BUILD_MS = 1_800_000;
const PYTHON = process.env['MEGAPLANE_PYTHON'] ?? 'python3';
const run = promisify(execFile);

interface Stage {
  readonly service: ApiserverService;
  readonly dir: string;
  readonly kubeconfig: string;
  /** Files with PEM text: who signs servers, who the client is. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  readonly token: string;
}

let stage: Stage | undefined;

function current(): Stage {
  assert(stage !== undefined);
  return stage;
}

before(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-large-lists-'));
  const service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    log: (level, message) => console.error(level, message),
  });
  const kubeconfig = join(dir, 'kubeconfig');
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const file = (name: string, base64 = ''): string => {
    const path = join(dir, `${name}.pem`);
    writeFileSync(path, Buffer.from(base64, 'base64'), { mode: 0o600 });
    return path;
  };
  const user = config.getCurrentUser();
  stage = {
    service,
    dir,
    kubeconfig,
    ca: file('ca', config.getCurrentCluster()?.caData),
    certificate: file('certificate', user?.certData),
    key: file('key', user?.keyData),
    token: await readerToken(config),
  };
  const core = config.makeApiClient(CoreV1Api);
  for (let one = 0; one < OBJECTS; one++) {
    const body = { metadata: { name: `large-${one}` }, data: { text: textOf(one) } };
    await core.createNamespacedConfigMap({ namespace: NAMESPACE, body });
  }
});

after(async () => {
  await stage?.service.stop();
  if (stage !== undefined) rmSync(stage.dir, { recursive: true });
});

/** Hexadecimal digits that repeat nowhere. */
function textOf(seed: number): string {
  let text = '';
  for (let part = 0; text.length < TEXT_LENGTH; part++) {
    text += createHash('sha256').update(`${seed}/${part}`).digest('hex');
  }
  return text.slice(0, TEXT_LENGTH);
}

/** A token of an account, for clients that have no certificates. */
async function readerToken(config: KubeConfig): Promise<string> {
  const core = config.makeApiClient(CoreV1Api);
  const rbac = config.makeApiClient(RbacAuthorizationV1Api);
  const metadata = { name: 'reader' };
  const namespace = NAMESPACE;
  await core.createNamespacedServiceAccount({ namespace, body: { metadata } });
  const roleRef = {
    apiGroup: 'rbac.authorization.k8s.io',
    kind: 'ClusterRole',
    name: 'cluster-admin',
  };
  const subjects = [{ kind: 'ServiceAccount', name: 'reader', namespace }];
  await rbac.createClusterRoleBinding({ body: { metadata, roleRef, subjects } });
  const made = await core.createNamespacedServiceAccountToken({
    name: 'reader',
    namespace,
    body: { spec: { audiences: [] } },
  });
  return made.status?.token ?? '';
}

const EXPECTED = `${OBJECTS} ${OBJECTS * TEXT_LENGTH}`;

/** Runs a client, whose only line says what it found. */
async function ask(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { timeout: RUN_MS, env: { ...process.env, ...env }, maxBuffer: 1 << 28 };
  return (await run(command, args, options)).stdout.trim();
}

/** Why a program cannot be used here; false where it can. */
function lacks(command: string, args: readonly string[], how: string): string | false {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return false;
  } catch {
    return how;
  }
}

const url = (): string => `${current().service.url}/api/v1/namespaces/${NAMESPACE}/configmaps`;

test(
  'curl --compressed',
  { skip: lacks('curl', ['--version'], 'needs curl (the package curl)') },
  async () => {
    const { ca, certificate, key, dir } = current();
    const headers = join(dir, 'headers');
    const own = ['--cacert', ca, '--cert', certificate, '--key', key];
    for (const version of ['--http1.1', '--http2']) {
      const flags = ['-sS', '--fail', '--compressed', version, '-D', headers, ...own];
      const text = await ask('curl', [...flags, url()]);
      assert.match(readFileSync(headers, 'utf8'), /content-encoding: gzip/i);
      const { items } = JSON.parse(text) as { items: { data?: Record<string, string> }[] };
      const values = items.flatMap(({ data }) => Object.values(data ?? {}));
      const characters = values.reduce((sum, value) => sum + value.length, 0);
      assert.equal(`${items.length} ${characters}`, EXPECTED, version);
    }
  },
);

for (const way of ['fetch', 'client']) {
  test(way === 'fetch' ? "Node's fetch" : 'the JavaScript client', async () => {
    const { ca, kubeconfig, service, token } = current();
    const args = [join(SOURCE, 'fetch.mjs'), way, kubeconfig, service.url, token];
    assert.equal(await ask(process.execPath, args, { NODE_EXTRA_CA_CERTS: ca }), EXPECTED);
  });
}

for (const module of ['httpx', 'kubernetes']) {
  const how =
    `needs the module ${module} of Python (python3 -m venv v; v/bin/pip install ${module}; ` +
    'MEGAPLANE_PYTHON=v/bin/python)';
  const skip = lacks(PYTHON, ['-c', `import ${module}`], how);
  test(`Python with ${module}`, { skip }, async () => {
    const { ca, certificate, key, service } = current();
    const args = [join(SOURCE, 'lists.py'), module, service.url, ca, certificate, key];
    assert.equal(await ask(PYTHON, args), EXPECTED);
  });
}

const clientGo = new GoPeer(join(import.meta.dirname, 'client-go'));

test('client-go', { skip: clientGo.skip, timeout: GO_BUILD_MS + 2 * RUN_MS }, async (t) => {
  const problem = await clientGo.build();
  if (problem !== '') {
    t.skip(`the program with client-go cannot be built: ${problem}`);
    return;
  }
  for (const mediaType of ['application/json', 'application/vnd.kubernetes.protobuf']) {
    const args = [current().kubeconfig, 'largeList', mediaType];
    assert.equal(await ask(clientGo.binary, args), EXPECTED, mediaType);
  }
});

/** A directory beside other temporary files where a state of a client's sources is built. */
function buildDir(name: string, source: string): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' }).sort()) {
    if (/\.(rs|java|xml|toml|lock)$/.test(file)) hash.update(readFileSync(join(source, file)));
  }
  return join(tmpdir(), `megaplane-${name}-${hash.digest('hex').slice(0, 16)}`);
}

/** Builds a client; false, with the test skipped, where its packages are out of reach. */
async function build(t: TestContext, command: string, args: readonly string[], cwd: string) {
  try {
    await run(command, args, { cwd, timeout: BUILD_MS, maxBuffer: 1 << 28 });
    return true;
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string };
    t.skip(`the client cannot be built: ${`${stdout}${stderr}`.trim().slice(-500)}`);
    return false;
  }
}

test(
  'kube-rs',
  {
    skip: lacks('cargo', ['--version'], 'needs Rust (https://rustup.rs) to build a program'),
    timeout: BUILD_MS + RUN_MS,
  },
  async (t) => {
    const target = buildDir('kube-rs', SOURCE);
    const args = ['build', '--quiet', '--locked', '--target-dir', target];
    if (!(await build(t, 'cargo', args, SOURCE))) return;
    const binary = join(target, 'debug', 'large-list');
    assert.equal(await ask(binary, [current().kubeconfig]), EXPECTED);
  },
);

test(
  'the Java client, on okhttp',
  {
    skip: lacks('mvn', ['--version'], 'needs Maven and a JDK of 17 (packages maven, openjdk-17)'),
    timeout: BUILD_MS + RUN_MS,
  },
  async (t) => {
    const dir = buildDir('client-java', join(SOURCE, 'java'));
    cpSync(join(SOURCE, 'java'), dir, { recursive: true });
    const paths = join(dir, 'classpath');
    const goals = ['compile', 'dependency:build-classpath', `-Dmdep.outputFile=${paths}`];
    if (!(await build(t, 'mvn', ['-q', '-B', ...goals], dir))) return;
    const classes = `${join(dir, 'target', 'classes')}:${readFileSync(paths, 'utf8').trim()}`;
    const args = ['-cp', classes, 'LargeList', current().kubeconfig];
    assert.equal(await ask('java', args), EXPECTED);
  },
);

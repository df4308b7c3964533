/**
 * controller-runtime's own test suites, on what `megaplane envtest` gives them. They are built from
 * the Go modules; `controller-runtime/passes.txt` names the specs that pass with etcd and
 * kube-apiserver, one a line behind its package, and so must pass here.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { megaplane } from './cluster.ts';

const run = promisify(execFile);
const SOURCE = join(import.meta.dirname, 'controller-runtime');
const MODULE = 'sigs.k8s.io/controller-runtime';
/** From nothing, on a slow machine. */
const BUILD_MS = 1_500_000;
const RUN_MS = 600_000;
/** A suite is run again where the machine was too busy for its own limits, once. */
const TRIES = 2;

const passes = new Map<string, Set<string>>();
for (const line of readFileSync(join(SOURCE, 'passes.txt'), 'utf8').trim().split('\n')) {
  const [name = '', spec = ''] = line.split('\t');
  passes.set(name, (passes.get(name) ?? new Set()).add(spec));
}

function skipReason(): string | false {
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'needs Go (https://go.dev/dl, or the package golang-go) to build the suites';
  }
}

interface Report {
  readonly SpecReports: readonly {
    readonly State: string;
    readonly LeafNodeType: string;
    readonly LeafNodeText: string;
    readonly ContainerHierarchyTexts: readonly string[] | null;
    readonly Failure?: { readonly Message: string };
  }[];
}

/** Each spec that was run, with why it failed; '' where it passed. */
function specsOf(file: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const { SpecReports } of JSON.parse(readFileSync(file, 'utf8')) as Report[]) {
    for (const spec of SpecReports) {
      if (spec.LeafNodeType !== 'It') continue;
      const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' / ');
      const why = spec.State === 'passed' ? '' : (spec.Failure?.Message ?? spec.State);
      // of several of one name the one that failed counts
      found.set(name, found.get(name) || why);
    }
  }
  return found;
}

const skip = skipReason();
const dir = mkdtempSync(join(tmpdir(), 'megaplane-suites-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const assets = skip === false ? megaplane('envtest').stdout.trim() : '';
const env = { ...process.env, KUBEBUILDER_ASSETS: assets };

for (const [name, specs] of passes) {
  test(`${MODULE}/pkg/${name}`, { skip, timeout: BUILD_MS + TRIES * RUN_MS }, async (t) => {
    const program = join(dir, `${name}.test`);
    const build = ['test', '-c', '-o', program, `${MODULE}/pkg/${name}`];
    const list = ['list', '-m', '-f', '{{.Dir}}', MODULE];
    try {
      await run('go', build, { cwd: SOURCE, timeout: BUILD_MS });
    } catch (error) {
      const { stderr = '' } = error as { readonly stderr?: string };
      t.skip(`the suite cannot be built: ${stderr.trim().split('\n').at(-1)}`);
      return;
    }
    const module = execFileSync('go', list, { cwd: SOURCE, encoding: 'utf8' }).trim();
    const report = join(dir, `${name}.json`);
    let missing: string[] = [];
    for (let left = TRIES; left > 0; left--) {
      const flags = ['--ginkgo.no-color', `--ginkgo.json-report=${report}`];
      const options = { cwd: join(module, 'pkg', name), env, timeout: RUN_MS, maxBuffer: 2 ** 28 };
      await run(program, flags, options).catch(() => undefined);
      const found = specsOf(report);
      missing = [...specs].flatMap((spec) => {
        const why = found.get(spec) ?? 'it was not run';
        return why === '' ? [] : [`${spec}: ${why}`];
      });
      if (missing.length === 0) break;
    }
    assert.deepEqual(missing, []);
  });
}

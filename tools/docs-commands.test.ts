// Commands of the README, the tutorial and the how-to pages, run as they stand.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'megaplane-docs-'));
const running: ChildProcess[] = [];
after(() => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const isLong = process.env['MEGAPLANE_LONG'] === '1';
const LINE_MS_MAX = 240_000;
const START_MS_MAX = 60_000;
/** Commands that go on until they are stopped, and what they say once others may use them. */
const LASTING: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:npx megaplane|npm start)\b(?!.*(?:--exit-when|--dry-run)).*(?:\bup\b|npm start)/, /Ctrl-C/],
  [/^npm start\b/, /Ctrl-C/],
  [
    /^npx megaplane (?:store|apiserver|scheduler|nodes|controllers) --(?!.*--write-config-to)/,
    /ready in/,
  ],
  [/^npx megaplane fleet (?:shard|provider simulate|operator|pods) --/, /ready in/],
];
/** What the check itself did before it came here. */
const DONE_BEFORE = /^git clone|^npm ci$/;

/** Lines of a page's blocks of commands, in their order. */
function commandsOf(text: string): string[] {
  const prose = text.replace(/^```[^]*?^```$/gm, '');
  const lines = [...prose.matchAll(/^ {4}(\S.*)$/gm)].map(([, line = '']) => line);
  const commands = lines.map((line) => line.replace(/ {2,}# .*$/, '').trim());
  return commands.filter((line) => /^[a-zA-Z]/.test(line) && !DONE_BEFORE.test(line));
}

/** A directory with the program installed, as `npx megaplane` finds it. */
function cleanDirectory(name: string): string {
  const dir = join(folder, name);
  mkdirSync(join(dir, 'node_modules/.bin'), { recursive: true });
  const program = join(ROOT, 'packages/cli/bin/megaplane.cjs');
  symlinkSync(program, join(dir, 'node_modules/.bin/megaplane'));
  const scripts = { start: 'megaplane up --nodes 100' };
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ private: true, scripts }));
  return dir;
}

function lacks(commands: readonly string[]): string | false {
  const packages = { kubectl: 'kubernetes-client', etcdctl: 'etcd-client', curl: 'curl' };
  for (const [program, name] of Object.entries(packages)) {
    if (!commands.some((line) => line.includes(program))) continue;
    const isThere = spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
    if (!isThere) return `needs ${program}: apt-get install ${name}`;
  }
  return false;
}

/** Runs a page's commands; those that last run beside the rest and are stopped at the end. */
async function runsPage(path: string, commands: readonly string[]): Promise<void> {
  const dir = cleanDirectory(path.replaceAll(/\W/g, '-'));
  const own: ChildProcess[] = [];
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const env = { ...process.env, PATH, HOME: dir, KUBECONFIG: '' };
  const variables: string[] = [];
  try {
    for (const line of commands) {
      const sign = LASTING.find(([pattern]) => pattern.test(line))?.[1];
      if (sign !== undefined) {
        own.push(await starts(dir, env, line, sign));
        continue;
      }
      // A page's lines share one shell: what they set is there for those that name it.
      const wanted = variables.filter((set) => line.includes(`$${nameOf(set)}`) || isExport(set));
      if (nameOf(line) !== '') variables.push(line);
      const script = [...wanted, line].join('\n');
      const options = { cwd: dir, env, encoding: 'utf8', timeout: LINE_MS_MAX } as const;
      const result = spawnSync('bash', ['-o', 'errexit', '-c', script], options);
      assert.equal(result.status, 0, `${path}: ${line}\n${result.stdout}${result.stderr}`);
    }
  } finally {
    for (const child of own.toReversed()) {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
      await once(child, 'exit');
    }
  }
}

/** The variable that a line sets; empty where it sets none. */
function nameOf(line: string): string {
  return /^(?:export )?([A-Z_]+)=/.exec(line)?.[1] ?? '';
}

function isExport(line: string): boolean {
  return line.startsWith('export ');
}

async function starts(
  cwd: string,
  env: NodeJS.ProcessEnv,
  line: string,
  sign: RegExp,
): Promise<ChildProcess> {
  const child = spawn('bash', ['-c', `exec ${line}`], { cwd, env, detached: true });
  running.push(child);
  let text = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const overdue = setTimeout(() => reject(new Error(`${line}: ${text}`)), START_MS_MAX);
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (sign.test(text)) resolve();
    });
  }
  child.once('exit', (code) => reject(new Error(`${line}: ended with ${code}: ${text}`)));
  await promise.finally(() => clearTimeout(overdue));
  return child;
}

function pageTest(path: string, part: (text: string) => string = (text) => text): void {
  const commands = commandsOf(part(readFileSync(join(ROOT, path), 'utf8')));
  const skip = lacks(commands) || (!isLong && path !== 'README.md' && 'MEGAPLANE_LONG=1 npm test');
  test(`the commands of ${path} do what they say`, { skip }, async () => {
    assert(commands.length >= 3, commands.join('\n'));
    await runsPage(path, commands);
  });
}

/** From a heading to the next one of its level. */
function section(heading: string): (text: string) => string {
  return (text) => {
    const found = text.split(/^(?=## )/m).find((one) => one.startsWith(`## ${heading}\n`));
    assert(found !== undefined, heading);
    return found.split('Other sizes, other places:')[0] ?? '';
  };
}

pageTest('README.md', section('Start'));
pageTest('docs/tutorial.md');
for (const path of globSync('docs/howto/*.md', { cwd: ROOT }).sort()) pageTest(path);

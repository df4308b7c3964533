import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

/** Runs a program with a server that nobody may ask: no such file. */
async function run(program: string, flags: readonly string[]): Promise<string> {
  const file = fileURLToPath(new URL(`../${program}.ts`, import.meta.url));
  const args = [file, '--kubeconfig', '/nowhere/kubeconfig', ...flags];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return `${String(code)} ${said.trim()}`;
}

test('what the server would refuse each time is refused before it is asked', async () => {
  const label =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'";
  const found = await Promise.all([
    run('pods', ['--namespace', 'Bad_NS']),
    run('nodes', ['--prefix', 'Bad_', '--skip', '5', '--count', '5']),
    run('delete', ['--patience', 'x']),
    run('gaps', ['--resource', 'pods', '--namespace', 'a.b']),
  ]);
  const [namespace, prefix, patience, dots] = found;
  assert.ok(namespace?.startsWith(`2 --namespace: Bad_NS: ${label}`), namespace);
  assert.ok(prefix?.startsWith('2 --prefix: Bad_10: a lowercase RFC 1123 subdomain'), prefix);
  assert.equal(patience, '2 --patience: a whole number from 0 is needed, not x');
  assert.equal(dots, '2 --namespace: a.b: must not contain dots');
});

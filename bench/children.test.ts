import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';

test('what a benchmark has started ends with it', async () => {
  const module = JSON.stringify(join(import.meta.dirname, 'children.ts'));
  const program = [
    `import { adopt } from ${module};`,
    `import { spawn } from 'node:child_process';`,
    `const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);`,
    `console.log(adopt(child).pid);`,
    `setInterval(() => {}, 1000);`,
  ].join('\n');
  const bench = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(bench.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  process.kill(pid, 0);
  bench.kill('SIGTERM');
  assert.deepEqual(await once(bench, 'exit'), [143, null]);
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { quoted } from './summary.ts';

test('a path is printed so that a shell reads it as one word', () => {
  assert.equal(quoted('/srv/cluster-1/kubeconfig'), '/srv/cluster-1/kubeconfig');
  for (const path of ['/a b/c', "/it's/$HOME/`x`", '/"a"/;b', '/ünï', '']) {
    const read = execFileSync('sh', ['-c', `printf %s ${quoted(path)}`], { encoding: 'utf8' });
    assert.equal(read, path);
  }
});

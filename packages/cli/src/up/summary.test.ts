import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { barColumns, drawsBars } from '../service/progress.ts';
import type { UpOptions } from './plan.ts';
import { quoted, textSummary } from './summary.ts';

test('a path is printed so that a shell reads it as one word', () => {
  assert.equal(quoted('/srv/cluster-1/kubeconfig'), '/srv/cluster-1/kubeconfig');
  for (const path of ['/a b/c', "/it's/$HOME/`x`", '/"a"/;b', '/ünï', '']) {
    const read = execFileSync('sh', ['-c', `printf %s ${quoted(path)}`], { encoding: 'utf8' });
    assert.equal(read, path);
  }
});

test('a cluster whose data goes with it is not said to come back', () => {
  const text = (ephemeral: boolean): string => {
    const options = { ephemeral, nodes: 1, pods: 0 } as UpOptions;
    return textSummary({ options, timings: { memory: [] }, kubeconfig: '/k', server: 's' });
  };
  assert.match(text(false), /brings it back as it was/);
  assert.match(text(true), /Ctrl-C stops it and removes its data/);
});

test('the numbers of a bar find room on narrow terminals', () => {
  assert.equal(barColumns(10_000, 80), 40);
  const columns = barColumns(10_000, 40);
  assert(columns > 0 && 14 + 1 + columns + 1 + '10,000/10,000'.length <= 40);
  assert.equal(barColumns(10_000, 20), 0);
});

test('a bar is drawn where the cursor can be moved', () => {
  assert.equal(drawsBars(true, 'xterm'), true);
  assert.equal(drawsBars(true, undefined), true);
  assert.equal(drawsBars(true, 'dumb'), false);
  assert.equal(drawsBars(false, 'xterm'), false);
});

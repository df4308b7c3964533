import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../testing/admitting.sim.ts';
import { Health } from './health.ts';

function asked(): (path: string) => { readonly status: number; readonly text: string } {
  const { ask } = admittingModel();
  return (path) => ask('GET', path);
}

function namesIn(text: string): string[] {
  return [...text.matchAll(/^\[\+\](\S+) ok$/gm)].map(([, name = '']) => name);
}

test('each endpoint tells its own checks, in upstream’s order', () => {
  const get = asked();
  const life = namesIn(get('/livez?verbose').text);
  const ready = namesIn(get('/readyz?verbose').text);
  assert.deepEqual(namesIn(get('/healthz?verbose').text), life);
  assert.deepEqual(life.slice(0, 4), ['ping', 'log', 'loopback-serving-certificate', 'etcd']);
  assert.deepEqual(ready.slice(0, 5), ['ping', 'log', 'etcd', 'etcd-readiness', 'informer-sync']);
  assert.equal(ready.at(-1), 'shutdown');
  assert.match(get('/readyz?verbose').text, /\nreadyz check passed\n$/);
  const isHook = (name: string): boolean => name.startsWith('poststarthook/');
  assert.deepEqual(ready.filter(isHook), life.filter(isHook));
});

test('each check is asked by its name, slashes and all, where it counts', () => {
  const get = asked();
  assert.equal(get('/livez/poststarthook/rbac/bootstrap-roles').text, 'ok');
  assert.equal(get('/livez/poststarthook/rbac').status, 404);
  assert.equal(get('/readyz/loopback-serving-certificate').status, 404);
  assert.equal(get('/livez/shutdown').status, 404);
  const { paths } = JSON.parse(get('/').text) as { paths: string[] };
  assert.ok(paths.includes('/readyz/shutdown') && !paths.includes('/livez/shutdown'));
  for (const path of paths.filter((one) => /^\/(healthz|livez|readyz)/.test(one))) {
    assert.equal(get(path).status, 200, path);
  }
});

test('a check that upstream does not have is named while it fails, by readiness alone', () => {
  const health = new Health();
  let fault: string | null = null;
  health.addQuiet('threads', () => fault);
  assert.deepEqual(health.paths(), ['/healthz', '/livez', '/readyz']);
  fault = 'one of two listens';
  assert.deepEqual(health.paths(), ['/healthz', '/livez', '/readyz', '/readyz/threads']);
});

/** The JavaScript client of the Kubernetes project on this API server. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CoreV1Api,
  KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  Watch,
  type V1ConfigMap,
} from '@kubernetes/client-node';
import { runApiserver } from '@megaplane/apiserver/run';

const NAMESPACE = 'default';
const PATH = `/api/v1/namespaces/${NAMESPACE}/configmaps`;

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    if (holds()) return;
    await sleep(20);
  }
  assert.fail(`waited a minute for ${what}`);
}

async function withServer(run: (config: KubeConfig) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-client-node-'));
  const service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    log: (level, message) => console.error(level, message),
  });
  try {
    const config = new KubeConfig();
    config.loadFromFile(join(dir, 'kubeconfig'));
    await run(config);
  } finally {
    await service.stop();
    rmSync(dir, { recursive: true });
  }
}

test('the JavaScript client creates, patches, watches and informs itself', async () => {
  await withServer(async (config) => {
    const api = config.makeApiClient(CoreV1Api);
    const told: string[] = [];
    const list = () => api.listNamespacedConfigMap({ namespace: NAMESPACE });
    const informer = makeInformer<V1ConfigMap>(config, PATH, list);
    for (const event of ['add', 'update', 'delete'] as const) {
      informer.on(event, (object) => void told.push(`${event} ${object.metadata?.name}`));
    }
    await informer.start();
    const seen: string[] = [];
    const watch = await new Watch(config).watch(
      PATH,
      { allowWatchBookmarks: true },
      (phase, object: V1ConfigMap) => void seen.push(`${phase} ${object.metadata?.name}`),
      () => undefined,
    );
    const body = { metadata: { name: 'cm' }, data: { a: '1' } };
    const made = await api.createNamespacedConfigMap({ namespace: NAMESPACE, body });
    assert.equal(made.data?.['a'], '1');
    const patched = await api.patchNamespacedConfigMap(
      { namespace: NAMESPACE, name: 'cm', body: { data: { b: '2' } } },
      setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
    );
    assert.deepEqual(patched.data, { a: '1', b: '2' });
    await until('the update', () => told.includes('update cm'));
    await api.deleteNamespacedConfigMap({ namespace: NAMESPACE, name: 'cm' });
    await until('the deletion', () => told.includes('delete cm'));
    await until('three events', () => seen.filter((text) => text.endsWith(' cm')).length === 3);
    const own = (texts: readonly string[]): string[] =>
      texts.filter((text) => text.endsWith(' cm')).map((text) => text.split(' ')[0] ?? '');
    assert.deepEqual(own(told), ['add', 'update', 'delete']);
    assert.deepEqual(own(seen), ['ADDED', 'MODIFIED', 'DELETED']);
    watch.abort();
    await informer.stop();
  });
});

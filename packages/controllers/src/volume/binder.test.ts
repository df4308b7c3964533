import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { WorkloadApi } from '../../test/workload-api.ts';
import { startManager } from '../../test/manager.ts';
import { deletionFailure } from './provisioning.ts';

const VOLUMES = '/api/v1/persistentvolumes';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const MERGE = 'application/merge-patch+json';

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  const manager = startManager(api, ['persistentvolume-binder-controller']);
  void manager;
  await api.advance(1_000);
  return api;
}

async function make(api: WorkloadApi, path: string, object: JsonObject): Promise<void> {
  const answer = await api.request({ method: 'POST', path, body: object });
  assert(answer.ok);
}

async function read(api: WorkloadApi, path: string): Promise<JsonObject> {
  const answer = await api.request({ method: 'GET', path });
  assert(answer.ok, `${path} is not there`);
  return answer.object;
}

function volume(name: string, more: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      nfs: { server: 's', path: '/' },
      ...more,
    },
  };
}

function claim(name: string, more: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...more,
    },
  };
}

const phaseOf = async (api: WorkloadApi, path: string): Promise<string> =>
  stringAt(await read(api, path), 'status', 'phase');

test('a claim that waits is bound as soon as a volume comes, and lost with it', async () => {
  const api = await started();
  await make(api, CLAIMS, claim('c'));
  await api.advance(2_000);
  assert.equal(await phaseOf(api, `${CLAIMS}/c`), 'Pending');
  await make(api, VOLUMES, volume('v'));
  await api.advance(1_000);
  assert.equal(await phaseOf(api, `${CLAIMS}/c`), 'Bound');
  assert.equal(await phaseOf(api, `${VOLUMES}/v`), 'Bound');
  await api.request({ method: 'DELETE', path: `${VOLUMES}/v` });
  await api.advance(2_000);
  assert.equal(await phaseOf(api, `${CLAIMS}/c`), 'Lost');
  assert(
    api.events.includes(
      'ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
    ),
  );
});

test('two claims for one volume: one is bound, the other waits and is told so', async () => {
  const api = await started();
  await make(api, VOLUMES, volume('v'));
  await api.advance(1_000);
  await make(api, CLAIMS, claim('a'));
  await make(api, CLAIMS, claim('b'));
  await api.advance(40_000);
  const phases = [await phaseOf(api, `${CLAIMS}/a`), await phaseOf(api, `${CLAIMS}/b`)];
  assert.deepEqual(phases.toSorted(), ['Bound', 'Pending']);
  const told = api.events.filter((text) => text.startsWith('FailedBinding: no persistent'));
  assert(told.length >= 1 && told.length <= 4, told.join('\n'));
});

test('a claim without class gets the default one and the volume that is made for it', async () => {
  const api = await started();
  await make(api, CLAIMS, claim('c'));
  await api.advance(1_000);
  await make(api, CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: {
      name: 'fast',
      annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
    },
    provisioner: 'example.com/disk',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  await api.advance(1_000);
  const waiting = await read(api, `${CLAIMS}/c`);
  assert.equal(stringAt(waiting, 'spec', 'storageClassName'), 'fast');
  assert.equal(objectAt(waiting, 'metadata', 'annotations'), undefined);
  const annotations = { 'volume.kubernetes.io/selected-node': 'n' };
  const body = { metadata: { annotations } };
  await api.request({ method: 'PATCH', path: `${CLAIMS}/c`, contentType: MERGE, body });
  await api.advance(1_000);
  const asked = await read(api, `${CLAIMS}/c`);
  const at = stringAt(asked, 'metadata', 'annotations', 'volume.kubernetes.io/storage-provisioner');
  assert.equal(at, 'example.com/disk');
  const uid = stringAt(asked, 'metadata', 'uid');
  const made = volume('pvc-1', {
    storageClassName: 'fast',
    persistentVolumeReclaimPolicy: 'Delete',
    claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid },
  });
  const provisionedBy = { 'pv.kubernetes.io/provisioned-by': 'example.com/disk' };
  await make(api, VOLUMES, {
    ...made,
    metadata: { name: 'pvc-1', annotations: provisionedBy },
  });
  await api.advance(1_000);
  assert.equal(await phaseOf(api, `${CLAIMS}/c`), 'Bound');
  await api.request({ method: 'DELETE', path: `${CLAIMS}/c` });
  await api.advance(2_000);
  assert.equal(await phaseOf(api, `${VOLUMES}/pvc-1`), 'Released');
});

test('under conflicts and refusals every pair ends bound, each volume to one claim', async () => {
  const api = await started();
  let asked = 0;
  api.faultOf = () => {
    asked++;
    return asked % 3 === 0 ? 'conflict' : asked % 7 === 0 ? 'refused' : 'none';
  };
  for (let i = 0; i < 12; i++) {
    await api.request({ method: 'POST', path: VOLUMES, body: volume(`v${i}`) });
    await api.request({ method: 'POST', path: CLAIMS, body: claim(`c${i}`) });
  }
  await api.advance(120_000);
  const claims = [...api.objects].filter(([key]) => key.includes('/persistentvolumeclaims '));
  const volumes = [...api.objects].filter(([key]) => key.includes('/persistentvolumes '));
  const names = claims
    .map(([, one]) => stringAt(one, 'spec', 'volumeName'))
    .filter((n) => n !== '');
  assert.equal(names.length, Math.min(claims.length, volumes.length));
  assert.equal(new Set(names).size, names.length);
  for (const [, one] of volumes) {
    const holder = stringAt(one, 'spec', 'claimRef', 'name');
    const own = claims.find(([key]) => key.endsWith(`/${holder}`))?.[1];
    if (holder === '') continue;
    assert.equal(stringAt(own, 'spec', 'volumeName'), stringAt(one, 'metadata', 'name'));
  }
  const before = asked;
  await api.advance(60_000);
  assert.equal(asked, before, 'nothing is written once all is bound');
});

test('a released volume that nobody can delete says which kind of plug-in is missing', () => {
  const text = (source: JsonObject): string =>
    deletionFailure({ metadata: { name: 'v' }, spec: source });
  const prefix = 'error getting deleter volume plugin for volume "v": no';
  assert.equal(text({ nfs: { server: 's' } }), `${prefix} deletable volume plugin matched`);
  assert.equal(text({ local: { path: '/mnt/x' } }), `${prefix} volume plugin matched`);
  assert.equal(text({ csi: { driver: 'd' } }), '', 'its provisioner may delete it');
});

test('a volume to be recycled is emptied by a pod and offered again', async () => {
  const api = await started();
  const policy = { persistentVolumeReclaimPolicy: 'Recycle' };
  await make(api, VOLUMES, volume('v', policy));
  const { nfs: _, ...spec } = volume('w', { ...policy, storageClassName: 'w' })[
    'spec'
  ] as JsonObject;
  await make(api, VOLUMES, { metadata: { name: 'w' }, spec });
  await make(api, CLAIMS, claim('c'));
  await make(api, CLAIMS, claim('d', { storageClassName: 'w' }));
  await api.advance(1_000);
  for (const one of ['c', 'd']) await api.request({ method: 'DELETE', path: `${CLAIMS}/${one}` });
  await api.advance(1_000);
  const told = (): string[] => api.events.filter((one) => one.includes('Recycle'));
  assert.deepEqual(told(), ['VolumeFailedRecycle: No recycler plugin found for the volume!']);
  const path = '/api/v1/namespaces/default/pods/recycler-for-v';
  const pod = await api.request({ method: 'GET', path });
  assert(pod.ok);
  const contentType = 'application/merge-patch+json';
  const end = async (status: JsonObject): Promise<void> => {
    await api.request({ method: 'PATCH', path: `${path}/status`, contentType, body: { status } });
    await api.advance(31_000);
  };
  await end({ phase: 'Failed', message: 'bad' });
  assert.equal(told()[1], 'VolumeFailedRecycle: Recycle failed: failed to recycle volume: bad');
  assert.equal(await phaseOf(api, `${VOLUMES}/v`), 'Failed');
  await end({ phase: 'Succeeded' });
  assert.equal(await phaseOf(api, `${VOLUMES}/v`), 'Available');
  assert(api.events.includes('VolumeRecycled: Volume recycled'));
});

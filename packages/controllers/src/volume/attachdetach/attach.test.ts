import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../../test/manager.ts';
import { WorkloadApi } from '../../../test/workload-api.ts';
import { chosenControllers } from '../../framework/options.ts';

const CORE = '/api/v1/namespaces/default';
const STORAGE = '/apis/storage.k8s.io/v1';
const MERGE = 'application/merge-patch+json';
const NAME = 'kubernetes.io/csi/d^h';

class World {
  readonly api = new WorkloadApi();

  async start(mode = 'ReadWriteOnce'): Promise<void> {
    startManager(this.api, ['attachdetach']);
    const claimRef = { namespace: 'default', name: 'c', uid: '' };
    const claim = await this.post(`${CORE}/persistentvolumeclaims`, 'PersistentVolumeClaim', 'c', {
      spec: { volumeName: 'v' },
      status: { phase: 'Bound' },
    });
    claimRef.uid = stringAt(claim, 'metadata', 'uid');
    const csi = { driver: 'd', volumeHandle: 'h' };
    await this.post('/api/v1/persistentvolumes', 'PersistentVolume', 'v', {
      spec: { accessModes: [mode], claimRef, csi },
    });
    await this.node('a');
    await this.node('b');
    await this.api.advance(100);
  }

  async post(path: string, kind: string, name: string, more: JsonObject): Promise<JsonObject> {
    const apiVersion = path.startsWith(STORAGE) ? 'storage.k8s.io/v1' : 'v1';
    const { metadata, ...rest } = more;
    const body = { apiVersion, kind, metadata: { name, ...(metadata as JsonObject) }, ...rest };
    const answer = await this.api.request({ method: 'POST', path, body });
    assert(answer.ok);
    return answer.object;
  }

  async node(name: string, isManaged = true): Promise<void> {
    const annotations = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' };
    await this.post('/api/v1/nodes', 'Node', name, {
      metadata: isManaged ? { annotations } : {},
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
  }

  async pod(name: string, nodeName: string): Promise<void> {
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }];
    await this.post(`${CORE}/pods`, 'Pod', name, { spec: { nodeName, volumes } });
    await this.api.advance(100);
  }

  async patch(path: string, body: JsonObject): Promise<void> {
    const answer = await this.api.request({ method: 'PATCH', path, contentType: MERGE, body });
    assert(answer.ok, path);
    await this.api.advance(100);
  }

  async remove(path: string): Promise<void> {
    await this.api.request({ method: 'DELETE', path, body: {} });
    await this.api.advance(100);
  }

  attachments(): JsonObject[] {
    const at = `${STORAGE}/volumeattachments `;
    return [...this.api.objects].filter(([key]) => key.startsWith(at)).map(([, one]) => one);
  }

  nodes(): string[] {
    return this.attachments().map((one) => stringAt(one, 'spec', 'nodeName'));
  }

  /** What the external attacher does with the attachments that there are. */
  async attacher(status: JsonObject = { attached: true }): Promise<void> {
    for (const one of this.attachments()) {
      const path = `${STORAGE}/volumeattachments/${stringAt(one, 'metadata', 'name')}`;
      await this.patch(`${path}/status`, { status });
    }
  }

  attached(node: string): string[] {
    const object = this.api.objects.get(`/api/v1/nodes /${node}`);
    return listAt(object, 'status', 'volumesAttached').map((one) => stringAt(one, 'name'));
  }
}

test('a volume is attached for its pod, told by the node, and detached after it', async () => {
  const world = new World();
  await world.start();
  await world.pod('p', 'a');
  const [made] = world.attachments();
  assert.deepEqual(made?.['spec'], {
    attacher: 'd',
    source: { persistentVolumeName: 'v' },
    nodeName: 'a',
  });
  // sha256 of "hda", as other programs compute it.
  assert.equal(
    stringAt(made, 'metadata', 'name'),
    'csi-c7e15073db8a31851603fca8ebbbef87d485d00357b279084c86b1900878603f',
  );
  assert.deepEqual(world.attached('a'), []);
  await world.attacher();
  assert.deepEqual(world.attached('a'), [NAME]);
  const text = 'SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "v" ';
  assert.deepEqual(world.api.events, [text]);
  const writes = world.api.log.length;
  await world.api.advance(600_000);
  assert.equal(world.api.log.length, writes, 'nothing more is written');
  await world.remove(`${CORE}/pods/p`);
  assert.deepEqual([world.attached('a'), world.nodes()], [[], []]);
});

test('a volume of one node waits for it, and the pod that waits is told once', async () => {
  const world = new World();
  await world.start();
  await world.pod('p', 'a');
  await world.attacher();
  await world.patch('/api/v1/nodes/a/status', { status: { volumesInUse: [NAME] } });
  await world.pod('q', 'b');
  const used = 'Multi-Attach error for volume "v" Volume is already used by pod(s) p';
  assert.equal(world.api.events.at(-1), `FailedAttachVolume: ${used}`);
  await world.remove(`${CORE}/pods/p`);
  await world.api.advance(900_000);
  assert.deepEqual(world.nodes(), ['a'], 'a healthy node unmounts first');
  await world.patch('/api/v1/nodes/a/status', { status: { volumesInUse: null } });
  assert.deepEqual([world.nodes(), world.attached('a')], [['b'], []]);
  assert.equal(world.api.events.filter((one) => one.includes('Multi-Attach')).length, 1);
});

test('volumes that many nodes may have are attached to each', async () => {
  const world = new World();
  await world.start('ReadWriteMany');
  await world.pod('p', 'a');
  await world.attacher();
  await world.pod('q', 'b');
  assert.deepEqual(world.nodes(), ['a', 'b']);
});

test('a lost node gives its volumes up after six minutes, one out of service at once', async () => {
  for (const [patch, waitMs] of [
    [{ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, 360_000],
    [{ spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } }, 0],
  ] as const) {
    const world = new World();
    await world.start();
    await world.pod('p', 'a');
    await world.attacher();
    await world.patch('/api/v1/nodes/a/status', { status: { volumesInUse: [NAME] } });
    await world.patch('/api/v1/nodes/a', patch as unknown as JsonObject);
    await world.remove(`${CORE}/pods/p`);
    await world.api.advance(Math.max(0, waitMs - 1_000));
    assert.equal(world.nodes().length, waitMs === 0 ? 0 : 1);
    await world.api.advance(2_000);
    assert.deepEqual(world.nodes(), []);
  }
});

test('what the attacher refuses is told, and tried again at growing distances', async () => {
  const world = new World();
  await world.start();
  await world.pod('p', 'a');
  await world.attacher({ attached: false, attachError: { message: 'no' } });
  const text = 'AttachVolume.Attach failed for volume "v" : no';
  await world.api.advance(10_000);
  const failures = world.api.events.filter((one) => one.endsWith(text)).length;
  assert(failures >= 4 && failures <= 6, `${failures} in ten seconds`);
  await world.attacher({ attached: true, attachError: null });
  await world.api.advance(20_000);
  assert.deepEqual(world.attached('a'), [NAME]);
});

test('a volume that its attacher lost is attached anew', async () => {
  const world = new World();
  await world.start();
  await world.pod('p', 'a');
  await world.attacher();
  assert.deepEqual(world.attached('a'), [NAME]);
  await world.attacher({ attached: false, attachError: { message: 'lost' } });
  await world.api.advance(10_000);
  assert.deepEqual(world.attached('a'), []);
  const text = 'FailedAttachVolume: AttachVolume.Attach failed for volume "v" : lost';
  assert(world.api.events.includes(text));
  await world.attacher({ attached: true, attachError: null });
  await world.api.advance(20_000);
  assert.deepEqual(world.attached('a'), [NAME]);
});

test('nodes and drivers that attach for themselves are left alone', async () => {
  const world = new World();
  await world.node('own', false);
  await world.start();
  await world.pod('p', 'own');
  await world.post(`${STORAGE}/csidrivers`, 'CSIDriver', 'd', { spec: { attachRequired: false } });
  await world.pod('q', 'a');
  assert.deepEqual(world.attachments(), []);
  const all = chosenControllers(['*']);
  assert(typeof all !== 'string' && all.has('persistentvolume-attach-detach-controller'));
});

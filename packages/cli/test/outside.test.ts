/** A cluster that other machines reach: `up` with the flags that say so. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { createKubeClient } from '@megaplane/client/kube-client';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { childPlan, type UpOptions } from '../src/up/plan.ts';
import { outsideOf, type OutsideFlags } from '../src/up/outside.ts';
import { startCluster } from './cluster.ts';

const OPTIONS = { dataDir: '/srv', nodes: 2, stages: [], securePort: 0 } as unknown as UpOptions;

test('addresses that make no sense are refused in words', () => {
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const hasFour = own.some(({ internal, family }) => !internal && family === 'IPv4');
  assert.equal(outsideOf({}), undefined);
  const refusal = (flags: OutsideFlags): string => {
    const found = outsideOf(flags);
    return typeof found === 'string' ? found : '';
  };
  assert.match(refusal({ bindAddress: 'eth0' }), /--bind-address: eth0 is no IP address/);
  assert.match(refusal({ join: true, advertiseAddress: '127.0.0.1' }), /do not reach/);
  assert.match(refusal({ join: true, bindAddress: '::1' }), /--join: .*::1/);
  const found = outsideOf({ join: true, advertiseAddress: 'fd00::5' });
  assert(typeof found === 'object');
  assert.deepEqual(
    [found.bindAddress, found.advertiseAddress, found.bootstrapTokens],
    ['::', 'fd00::5', true],
  );
  if (!hasFour) return;
  const four = outsideOf({ join: true, enableBootstrapTokenAuth: false });
  assert(typeof four === 'object');
  assert.deepEqual([four.bindAddress, four.bootstrapTokens], ['0.0.0.0', false]);
});

test('the simulator of a cluster plays the nodes that it has made', () => {
  const { args } = childPlan('nodes', OPTIONS);
  const selector = args[args.indexOf('--manage-nodes-with-label-selector') + 1];
  assert.equal(selector, 'megaplane.dev/simulated=true');
});

test('pods reach the API server at the first address of each range, by a name it has', async () => {
  const ranges = ['--service-cluster-ip-range', 'fd00:64:ff::/108,10.64.0.0/16'];
  const outside = ['--bind-address', '::1', '--enable-bootstrap-token-auth', ...ranges];
  const cluster = await startCluster([...outside, '--nodes', '0']);
  try {
    assert.throws(() => cluster.pidOf('nodes'), /no nodes among the children/);
    const { hostname, port } = new URL(cluster.server.split(',')[0] ?? '');
    const host = hostname.replace(/[[\]]/g, '');
    const ca = readFileSync(join(cluster.dataDir, 'pki', 'ca.crt'));
    for (const servername of [
      ...['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
      ...['kubernetes.default.svc.cluster.local', 'fd00:64:ff::1', '10.64.0.1'],
    ]) {
      const isName = servername.startsWith('k');
      const check = isName ? { servername } : {};
      const socket = connect({ host, port: Number(port), ca, ...check });
      await once(socket, 'secureConnect');
      const names = socket.getPeerX509Certificate();
      assert(isName ? names?.checkHost(servername) : names?.checkIP(servername), servername);
      socket.destroy();
    }
    const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
    const none = '/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io';
    const services = await client.request({ method: 'GET', path: none });
    assert.equal(services.code, 404, 'nobody has taken the metrics API');
    const expiration = new Date(Date.now() + 3_600_000).toISOString();
    const secret = {
      ...{ apiVersion: 'v1', kind: 'Secret', type: 'bootstrap.kubernetes.io/token' },
      metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
      stringData: {
        ...{ 'token-id': 'abcdef', 'token-secret': '0123456789abcdef', expiration },
        ...{ 'usage-bootstrap-authentication': 'true' },
      },
    };
    const path = '/api/v1/namespaces/kube-system/secrets';
    assert((await client.request({ method: 'POST', path, body: secret })).ok);
    const headers = {
      authorization: 'Bearer abcdef.0123456789abcdef',
      'content-type': 'application/json',
    };
    const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const asked = request({ host, port, ca, path: review, method: 'POST', headers });
    asked.end(
      JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
    );
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of answer) text += String(piece);
    assert.equal(
      stringAt(JSON.parse(text), 'status', 'userInfo', 'username'),
      'system:bootstrap:abcdef',
    );
    client.close();
  } finally {
    await cluster.remove();
  }
});

test('a node that a machine keeps is left alone, whatever it is marked as', async () => {
  const cluster = await startCluster(['--nodes', '1']);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  try {
    const make = async (path: string, body: JsonObject): Promise<void> => {
      const answer = await client.request({ method: 'POST', path, body });
      assert(answer.ok, JSON.stringify(answer));
    };
    const labels = { 'megaplane.dev/simulated': 'true' };
    const nodeInfo = { bootID: 'd5f8', machineID: 'm', kubeletVersion: 'v1.36.1' };
    const metadata = { name: 'real', labels };
    await make('/api/v1/nodes', {
      ...{ apiVersion: 'v1', kind: 'Node', metadata },
      status: { nodeInfo },
    });
    const pods = '/api/v1/namespaces/default/pods';
    const podOn = async (nodeName: string): Promise<void> => {
      const spec = { nodeName, containers: [{ name: 'c', image: 'i' }] };
      const metadata = { name: `on-${nodeName}` };
      await make(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
    };
    await podOn('real');
    await podOn('node-0');
    const phaseOn = async (node: string): Promise<string> => {
      const answer = await client.request({ method: 'GET', path: `${pods}/on-${node}` });
      return answer.ok ? stringAt(answer.object, 'status', 'phase') : '';
    };
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    for (;;) {
      const lease = await client.request({ method: 'GET', path: `${leases}/node-0` });
      if ((await phaseOn('node-0')) === 'Running' && lease.ok) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal(await phaseOn('real'), 'Pending');
    assert.equal((await client.request({ method: 'GET', path: `${leases}/real` })).code, 404);
  } finally {
    client.close();
    await cluster.remove();
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHmac } from 'node:crypto';
import { objectAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';
import { chosenControllers } from '../framework/options.ts';

const SECRETS = '/api/v1/namespaces/kube-system/secrets';
const MAPS = '/api/v1/namespaces/kube-public/configmaps';

async function addToken(
  api: WorkloadApi,
  id: string,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const texts = { 'token-id': id, 'token-secret': 's', 'usage-bootstrap-signing': 'true', ...more };
  const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, btoa(text)]));
  const type = 'bootstrap.kubernetes.io/token';
  const metadata = { name: `bootstrap-token-${id}` };
  const body = { apiVersion: 'v1', kind: 'Secret', metadata, type, data };
  await api.request({ method: 'POST', path: SECRETS, body });
  await api.advance(100);
}

test('the kubeconfig of the cluster is signed with every token that may sign', async () => {
  const api = new WorkloadApi();
  startManager(api, ['bootstrapsigner']);
  await api.advance(100);
  const data = { kubeconfig: 'text', other: 'kept', 'jws-kubeconfig-gone00': 'old' };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cluster-info' }, data };
  await api.request({ method: 'POST', path: MAPS, body });
  await addToken(api, 'aaaaaa');
  await addToken(api, 'bbbbbb', { 'usage-bootstrap-signing': 'false' });
  await addToken(api, 'cccccc', { expiration: '2020-01-01T00:00:00Z' });
  await addToken(api, 'dddddd', { 'token-id': 'eeeeee' });
  const shown = (): unknown =>
    objectAt(api.objects.get('/api/v1/configmaps kube-public/cluster-info'), 'data');
  // {"alg":"HS256","kid":"aaaaaa"} and "text".
  const [head, text] = ['eyJhbGciOiJIUzI1NiIsImtpZCI6ImFhYWFhYSJ9', 'dGV4dA'];
  const signature = createHmac('sha256', 's').update(`${head}.${text}`).digest('base64url');
  const kept = { kubeconfig: 'text', other: 'kept' };
  assert.deepEqual(shown(), { ...kept, 'jws-kubeconfig-aaaaaa': `${head}..${signature}` });
  const writes = api.log.length;
  await api.advance(600_000);
  assert.equal(api.log.length, writes, 'nothing more is written');
  await api.request({ method: 'DELETE', path: `${SECRETS}/bootstrap-token-aaaaaa`, body: {} });
  await api.advance(100);
  assert.deepEqual(shown(), kept);
});

test('the signer works only where it is named', () => {
  const all = chosenControllers(['*']);
  assert(typeof all !== 'string' && !all.has('bootstrap-signer-controller'));
});

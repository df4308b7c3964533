import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CONFIGURATIONS } from '../plugin-configuration.ts';
import { admittingModel, podOf, type AdmittingModel } from '../../testing/admitting.sim.ts';

const PODS = '/api/v1/namespaces/n/pods';
const PREFIX = 'pod-security.kubernetes.io';

function counted({ ask }: AdmittingModel): string[] {
  const lines = ask('GET', '/metrics').text.split('\n');
  return lines.filter((line) => line.startsWith('pod_security_'));
}

function label({ expect }: AdmittingModel, labels: object): void {
  expect(200, 'PATCH', '/api/v1/namespaces/n', { metadata: { labels } });
}

/** What ten pods that are alike are counted as, in a namespace with these labels. */
function ofAlike(repeatedWrites: boolean, labels: object): string[] {
  const model = admittingModel({ repeatedWrites });
  label(model, labels);
  for (let n = 0; n < 10; n++) model.expect(201, 'POST', PODS, podOf(`p${n}`));
  assert.equal((model.api.parts.repeated?.uses ?? 0) > 0, repeatedWrites && labels !== NOTED);
  return counted(model);
}

const NOTED = { [`${PREFIX}/enforce`]: 'baseline', [`${PREFIX}/audit`]: 'restricted' };
const CREATED = 'request_operation="create",resource="pod",subresource=""';

function line(decision: string, mode: string, level: string, count: number): string {
  const policy = `policy_level="${level}",policy_version="latest"`;
  const labels = `decision="${decision}",mode="${mode}",${policy},${CREATED}`;
  return `pod_security_evaluations_total{${labels}} ${count}`;
}

for (const repeatedWrites of [false, true]) {
  const way = repeatedWrites ? 'the short way' : 'the long way';
  test(`pods that are written ${way} are counted by what PodSecurity finds`, () => {
    assert.deepEqual(ofAlike(repeatedWrites, {}), [line('allow', 'enforce', 'privileged', 10)]);
    const strict = { [`${PREFIX}/enforce`]: 'baseline' };
    assert.deepEqual(ofAlike(repeatedWrites, strict), [line('allow', 'enforce', 'baseline', 10)]);
    assert.deepEqual(ofAlike(repeatedWrites, NOTED), [
      line('allow', 'enforce', 'baseline', 10),
      line('deny', 'audit', 'restricted', 10),
    ]);
  });
}

test('refusals, warnings, templates and who is exempt are counted', () => {
  const configuration = {
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    exemptions: { runtimeClasses: ['free'] },
  };
  const of = new Map([['PodSecurity', configuration]]);
  const model = admittingModel({ pluginConfigurations: { ...NO_CONFIGURATIONS, of } });
  const classes = '/apis/node.k8s.io/v1/runtimeclasses';
  model.expect(201, 'POST', classes, { metadata: { name: 'free' }, handler: 'h' });
  label(model, { [`${PREFIX}/enforce`]: 'baseline', [`${PREFIX}/warn`]: 'restricted' });
  model.expect(403, 'POST', PODS, podOf('p', {}, { hostNetwork: true }));
  model.expect(201, 'POST', PODS, podOf('q'));
  model.expect(200, 'PATCH', `${PODS}/q`, { metadata: { labels: { a: 'b' } } });
  model.expect(201, 'POST', PODS, podOf('r', {}, { runtimeClassName: 'free' }));
  const template = { ...podOf(''), metadata: { labels: { a: 'b' } } };
  const spec = { selector: { matchLabels: { a: 'b' } }, template };
  const sets = '/apis/apps/v1/namespaces/n/replicasets';
  model.expect(201, 'POST', sets, { metadata: { name: 'r' }, spec });
  assert.deepEqual(counted(model), [
    line('deny', 'enforce', 'baseline', 1),
    line('allow', 'enforce', 'baseline', 1),
    line('deny', 'warn', 'restricted', 1),
    line('deny', 'warn', 'restricted', 1).replace('"pod"', '"controller"'),
    `pod_security_exemptions_total{${CREATED}} 1`,
  ]);
});

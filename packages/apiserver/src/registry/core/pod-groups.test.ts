// Recorded from kube-apiserver v1.36.1 with the gate GenericWorkload.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveResource } from '@megaplane/machinery/kinds';
import { admittingModel } from '../../testing/admitting.sim.ts';

const VERSION = 'scheduling.k8s.io/v1alpha2';
const GROUPS = `/apis/${VERSION}/namespaces/n/podgroups`;
const WORKLOADS = `/apis/${VERSION}/namespaces/n/workloads`;
const GANG = { schedulingPolicy: { gang: { minCount: 2 } } };
const CONDITION = {
  ...{ type: 'PodGroupScheduled', status: 'True', reason: 'Scheduled', message: '' },
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

function serve(isServed: boolean): void {
  for (const one of ['podgroups', 'workloads']) serveResource(VERSION, one, isServed);
}

function withGroups(play: (model: ReturnType<typeof admittingModel>) => void): void {
  serve(true);
  try {
    play(admittingModel());
  } finally {
    serve(false);
  }
}

test('a group is made without what belongs to other gates, and keeps its spec', () => {
  withGroups(({ expect }) => {
    const extra = { disruptionMode: 'x', priority: 5, schedulingConstraints: {} };
    const spec = { ...GANG, ...extra };
    const made = expect(201, 'POST', GROUPS, { metadata: { name: 'g' }, spec, status: { x: 1 } });
    const shown = { podGroupTemplateRef: null, ...GANG, disruptionMode: 'Pod' };
    const read = JSON.parse(made.text) as Record<string, { readonly generation?: number }>;
    assert.deepEqual([read['spec'], read['status']], [shown, {}]);
    assert.equal(read['metadata']?.generation, undefined);
    const status = { conditions: [CONDITION], resourceClaimStatuses: [{ name: 'x' }] };
    const put = { metadata: { name: 'g' }, spec: {}, status };
    const told = JSON.parse(expect(200, 'PUT', `${GROUPS}/g/status`, put).text) as typeof read;
    assert.deepEqual([told['spec'], told['status']], [shown, { conditions: [CONDITION] }]);
  });
});

test('a group is of a template that is there', () => {
  withGroups(({ expect }) => {
    const group = (workloadName: string, podGroupTemplateName: string): object => {
      const podGroupTemplateRef = { workload: { workloadName, podGroupTemplateName } };
      return { metadata: { name: 'g' }, spec: { ...GANG, podGroupTemplateRef } };
    };
    const podGroupTemplates = [{ name: 't', ...GANG }];
    expect(201, 'POST', WORKLOADS, { metadata: { name: 'w' }, spec: { podGroupTemplates } });
    const why = (one: object): string => expect(403, 'POST', GROUPS, one).text;
    assert.match(why(group('v', 't')), /PodGroup rejected: Workload \\"v\\" not found/);
    const lacks = /PodGroup rejected: PodGroupTemplate \\"u\\" not found in Workload \\"w\\"/;
    assert.match(why(group('w', 'u')), lacks);
    expect(201, 'POST', GROUPS, group('w', 't'));
  });
});

test('pods keep their group where there are groups', () => {
  withGroups(({ expect }) => {
    const pod = (name: string, schedulingGroup: object): object => {
      const spec = { containers: [{ name: 'c', image: 'i' }], schedulingGroup };
      return { metadata: { name }, spec };
    };
    const pods = '/api/v1/namespaces/n/pods';
    const made = expect(201, 'POST', pods, pod('p', { podGroupName: 'g' }));
    assert.match(made.text, /"schedulingGroup":\{"podGroupName":"g"\}/);
    const refused = expect(422, 'POST', pods, pod('q', {})).text;
    assert.match(refused, /spec.schedulingGroup.podGroupName: Invalid value: null: must specify/);
  });
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { ENTRY, SERVER_ONLY, startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';

const KUBECTL = '/usr/bin/kubectl';
const options = {
  skip: existsSync(KUBECTL) ? false : 'needs kubectl: apt-get install kubernetes-client',
};

let cluster: Cluster;

function kubectl(args: readonly string[], input = ''): string {
  const flags = ['--kubeconfig', cluster.kubeconfig, ...args];
  return execFileSync(KUBECTL, flags, { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
}

function refusal(args: readonly string[], input: string): string {
  try {
    return `no refusal: ${kubectl(args, input)}`;
  } catch (error) {
    return String((error as { stderr?: unknown }).stderr);
  }
}

function request(name: string, spec: object): string {
  const metadata = { name, namespace: 'default' };
  return JSON.stringify({
    apiVersion: 'bigfleet.lucy.sh/v1alpha1',
    kind: 'CapacityRequest',
    metadata,
    spec,
  });
}

before(async () => {
  if (options.skip !== false) return;
  cluster = await startCluster(SERVER_ONLY);
  const yaml = execFileSync(process.execPath, [ENTRY, 'fleet', 'definitions'], {
    encoding: 'utf8',
  });
  assert.match(kubectl(['apply', '-f', '-'], yaml), /^(.* created\n){3}$/);
  const kinds = ['capacityrequests', 'upcomingnodes', 'availablecapacities'];
  kubectl([
    ...['wait', '--for=condition=Established', '--timeout=30s'],
    ...kinds.map((kind) => `crd/${kind}.bigfleet.lucy.sh`),
  ]);
});

after(async () => {
  await cluster?.remove();
});

test('requests are made, acknowledged, listed and selected by phase', options, () => {
  const spec = {
    priority: 7,
    resources: { cpu: 1, memory: '1Gi' },
    interruptionPenalty: '0.5',
    requirements: [{ key: 'k', operator: 'Gt', values: ['1'] }],
    coLocation: { topologyKey: 'rack', labelSelector: { matchLabels: { a: 'b' } } },
  };
  kubectl(['create', '-f', '-'], request('a', spec));
  kubectl(['create', '-f', '-'], request('b', { priority: 0, resources: {} }));
  const condition = {
    type: 'Translatable',
    status: 'False',
    reason: 'UnknownOperator',
    message: 'spec.requirements[0]',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const patch = (name: string, status: object): string =>
    kubectl([
      ...['patch', 'cr', name, '--subresource=status', '--type=merge'],
      ...['-p', JSON.stringify({ status })],
    ]);
  patch('a', { phase: 'Pending', conditions: [condition] });
  patch('b', { phase: 'Acknowledged', acknowledgedAt: '2026-01-01T00:00:00Z' });
  assert.match(kubectl(['get', 'crs']), /^NAME +PHASE +PRIORITY +AGE\na +Pending +7 +\S+\nb +Ack/);
  assert.match(
    kubectl(['get', 'cr', 'a', '-o', 'wide']),
    /REASON.*\na +Pending +7 +UnknownOperator/,
  );
  const selected = ['get', 'cr', '--field-selector=status.phase=Acknowledged', '-o', 'name'];
  assert.equal(kubectl(selected), 'capacityrequest.bigfleet.lucy.sh/b\n');
  assert.match(kubectl(['get', 'fleet', '-A', '-o', 'name']), /capacityrequest.*\/a/);
});

test('requests that mean nothing are refused with the place', options, () => {
  const create = ['create', '-f', '-'];
  assert.match(refusal(create, request('c', { priority: 0 })), /spec.resources: Required value/);
  const spread = { priority: 0, resources: {}, topologySpread: [{ topologyKey: 'z' }] };
  assert.match(refusal(create, request('c', spread)), /topologySpread\[0\].maxSkew: Required/);
  const quantity = { priority: 0, resources: { cpu: '1Q' } };
  assert.match(refusal(create, request('c', quantity)), /spec.resources.cpu: Invalid value: "1Q"/);
  const priority = { priority: 2 ** 31, resources: {} };
  assert.match(refusal(create, request('c', priority)), /int32 in spec.priority/);
});

test('nodes to come and capacity at hand read well', options, () => {
  const apiVersion = 'bigfleet.lucy.sh/v1alpha1';
  const node = {
    ...{ apiVersion, kind: 'UpcomingNode', metadata: { name: 'm-1' } },
    spec: { resources: { cpu: '4' }, taints: [{ key: 'k', effect: 'NoSchedule' }] },
  };
  kubectl(['create', '-f', '-'], JSON.stringify(node));
  const status = { phase: 'Registered', nodeRef: { kind: 'Node', name: 'node-1' } };
  const patch = JSON.stringify({ status });
  kubectl(['patch', 'upn', 'm-1', '--subresource=status', '--type=merge', '-p', patch]);
  assert.match(kubectl(['get', 'upn']), /^NAME +PHASE +NODE +AGE\nm-1 +Registered +node-1 +\S+\n$/);
  const capacity = {
    ...{ apiVersion, kind: 'AvailableCapacity', metadata: { name: 'ac-1' } },
    spec: { availability: 'High', availableCount: 3, cost: '0.25', resources: {} },
  };
  kubectl(['create', '-f', '-'], JSON.stringify(capacity));
  assert.match(
    kubectl(['get', 'avc']),
    /^NAME +AVAILABILITY +AVAILABLE +COST\nac-1 +High +3 +0.25\n$/,
  );
});

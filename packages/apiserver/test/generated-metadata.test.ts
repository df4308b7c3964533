import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { admittingModel, messageOf } from '../src/testing/admitting.sim.ts';
import type { ExchangeModel } from '../src/testing/exchange-model.sim.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

interface Answer {
  readonly metadata: Readonly<Record<string, JsonObject | string | number | undefined>>;
  readonly details?: { readonly causes?: readonly { readonly field: string }[] };
}

const answerOf = (exchange: ExchangeModel): Answer => JSON.parse(exchange.text) as Answer;
const fieldsOf = (exchange: ExchangeModel): string[] =>
  (answerOf(exchange).details?.causes ?? []).map(({ field }) => field);

test('a limit range with a prefix is named after it, one without a name by a uid', () => {
  const { ask } = admittingModel();
  const make = (metadata: object): string => {
    const made = ask('POST', '/api/v1/namespaces/n/limitranges', { metadata });
    return JSON.stringify(answerOf(made).metadata['name']);
  };
  assert.match(make({ generateName: 'g-' }), /^"g-[a-z0-9]{5}"$/);
  assert.match(make({}), /^"[0-9a-f]{8}-/);
});

test('nothing is put behind the prefix of an address', () => {
  const { ask } = admittingModel();
  const spec = { parentRef: { resource: 'services', name: 's' } };
  const path = '/apis/networking.k8s.io/v1/ipaddresses';
  const made = ask('POST', path, { metadata: { generateName: '10.0.0.' }, spec });
  assert.match(messageOf(made), /metadata.name: Invalid value: "10.0.0.": must be a valid IP/);
});

test('a job that is named here has the labels of its template as they were sent', () => {
  const { expect } = admittingModel();
  const spec = { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] };
  const labelsOf = (metadata: object): string[] => {
    const template = { metadata: { labels: { app: 'x' } }, spec };
    const path = '/apis/batch/v1/namespaces/n/jobs';
    const made = expect(201, 'POST', path, { metadata, spec: { template } });
    return Object.keys(answerOf(made).metadata['labels'] ?? {});
  };
  assert.deepEqual(labelsOf({ generateName: 'g-' }), ['app']);
  assert.ok(labelsOf({ name: 'j' }).includes('job-name'));
});

test('services of the API are named by version and group, whoever names them', () => {
  const { ask } = admittingModel();
  const spec = { version: 'v1', group: 'x.y', groupPriorityMinimum: 1, versionPriority: 1 };
  const path = '/apis/apiregistration.k8s.io/v1/apiservices';
  const made = ask('POST', path, { metadata: { generateName: 'g-' }, spec });
  assert.deepEqual(fieldsOf(made), ['metadata.generateName', 'metadata.name']);
});

test('metadata in a status is looked at as often as upstream does', () => {
  const { ask, expect } = admittingModel();
  const budgets = '/apis/policy/v1/namespaces/n/poddisruptionbudgets';
  expect(201, 'POST', budgets, { metadata: { name: 'b' }, spec: {} });
  const bad = { metadata: { labels: { 'a b': '' } } };
  const of = (path: string, body: object = bad): string[] =>
    fieldsOf(ask('PATCH', `${path}/status`, Buffer.from(JSON.stringify(body)), MERGE));
  assert.equal(of(`${budgets}/b`).length, 2);
  assert.equal(of('/api/v1/namespaces/n').length, 3);
  const cidrs = '/apis/networking.k8s.io/v1/servicecidrs';
  expect(201, 'POST', cidrs, { metadata: { name: 'c' }, spec: { cidrs: ['10.9.0.0/24'] } });
  const seconds = of(`${cidrs}/c`, { metadata: { deletionGracePeriodSeconds: 5 } });
  assert.deepEqual(new Set(seconds), new Set(['metadata.deletionGracePeriodSeconds']));
});

test('a refusal of a dry run names the key that storage would have put a prefix to', () => {
  const { ask, expect } = admittingModel();
  const path = '/api/v1/namespaces/n/configmaps';
  expect(201, 'POST', path, { metadata: { name: 'm' } });
  const put = (query: string): string => {
    const body = { metadata: { name: 'm', uid: 'other' } };
    return messageOf(ask('PUT', `${path}/m${query}`, body));
  };
  assert.match(put(''), /Key: \/registry\/configmaps\/n\/m,/);
  assert.match(put('?dryRun=All'), /Key: \/configmaps\/n\/m,/);
  // and does not look at the revision that storage would refuse
  const made = { metadata: { name: 'new', resourceVersion: 'x' } };
  const { text } = expect(201, 'POST', `${path}?dryRun=All`, made);
  assert.match(text, /"resourceVersion":"x"/);
});

test('labels of a definition that come with its status are owned', () => {
  const { ask, expect } = admittingModel();
  const schema = { openAPIV3Schema: { type: 'object' } };
  const versions = [{ name: 'v1', served: true, storage: true, schema }];
  const names = { plural: 'ws', singular: 'w', kind: 'W', listKind: 'WList' };
  const metadata = { name: 'ws.x.y' };
  const spec = { group: 'x.y', scope: 'Cluster', names, versions };
  expect(201, 'POST', DEFINITIONS, { metadata, spec });
  const kind = 'CustomResourceDefinition';
  const config = { apiVersion: 'apiextensions.k8s.io/v1', kind, metadata: { labels: { st: 'x' } } };
  const path = `${DEFINITIONS}/ws.x.y/status?fieldManager=m`;
  const named = { ...config, metadata: { ...config.metadata, ...metadata } };
  const applied = ask('PATCH', path, Buffer.from(JSON.stringify(named)), APPLY);
  const owners = JSON.stringify(answerOf(applied).metadata['managedFields']);
  assert.match(owners, /"manager":"m","operation":"Apply",.*"f:labels":{"f:st":{}}/);
});

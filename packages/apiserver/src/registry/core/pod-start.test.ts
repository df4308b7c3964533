import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { fillAppArmor, fillLabelKeys } from './pod-start.ts';

test('keys of labels become expressions of the selectors beside them', () => {
  const term = (more: JsonObject = {}): JsonObject => ({
    topologyKey: 'zone',
    labelSelector: { matchLabels: { app: 'x' } },
    ...more,
  });
  const preferred = [{ weight: 1, podAffinityTerm: term({ mismatchLabelKeys: ['tenant'] }) }];
  const pod: JsonObject = {
    metadata: { labels: { app: 'x', hash: '1', tenant: 't' } },
    spec: {
      affinity: {
        podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred },
      },
      topologySpreadConstraints: [
        term({ matchLabelKeys: ['hash', 'absent'] }),
        term({ labelSelector: undefined as never, matchLabelKeys: ['hash'] }),
      ],
    },
  };
  fillLabelKeys(pod);
  const selectors = JSON.stringify(pod['spec']).match(/"matchExpressions":\[[^\]]*\]\}\]/g);
  assert.deepEqual(selectors, [
    '"matchExpressions":[{"key":"tenant","operator":"NotIn","values":["t"]}]',
    '"matchExpressions":[{"key":"hash","operator":"In","values":["1"]}]',
  ]);
});

test('profiles of AppArmor that annotations name are written into the fields', () => {
  const key = 'container.apparmor.security.beta.kubernetes.io/';
  const annotations = {
    ...{ [`${key}a`]: 'localhost/p', [`${key}b`]: 'runtime/default' },
    ...{ [`${key}c`]: 'bad', [`${key}d`]: 'unconfined' },
  };
  const own = { securityContext: { appArmorProfile: { type: 'Unconfined' } } };
  const containers: JsonObject[] = [
    { name: 'a' },
    { name: 'b' },
    { name: 'c' },
    { name: 'd', ...own },
  ];
  const shared = { appArmorProfile: { type: 'RuntimeDefault' } };
  const told: string[] = [];
  fillAppArmor(
    { metadata: { annotations }, spec: { securityContext: shared, containers } },
    (text) => told.push(text),
  );
  const text = 'deprecated since v1.30; use the "appArmorProfile" field instead';
  assert.deepEqual(told, [
    `metadata.annotations[${key}a]: ${text}`,
    `metadata.annotations[${key}c]: ${text}`,
  ]);
  assert.deepEqual(containers, [
    {
      name: 'a',
      securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'p' } },
    },
    { name: 'b' },
    { name: 'c' },
    { name: 'd', ...own },
  ]);
});

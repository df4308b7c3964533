import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goDiff, goValueOf, versionedForm } from './go-value-format.ts';
import { findType } from '../scheme/schema.ts';

test('what v1 has beside the security context of a pod is printed within it', () => {
  const form = goValueOf('core.v1.PodSpec', {
    containers: [{ name: 'c' }],
    hostNetwork: true,
    volumes: [{ name: 'v', rbd: { monitors: ['m'], image: 'i' } }],
  });
  assert.ok(form !== null && typeof form === 'object' && !Array.isArray(form));
  const names = Object.keys(form);
  assert.ok(!names.includes('HostNetwork') && !names.includes('ServiceAccount'));
  assert.ok(names.indexOf('SetHostnameAsFQDN') < names.indexOf('Affinity'));
  const context = JSON.stringify(form['SecurityContext']);
  assert.match(context, /^{"HostNetwork":true,"HostPID":false,"HostIPC":false,/);
  assert.match(context, /"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,/);
  assert.match(JSON.stringify(form['Volumes']), /"CephMonitors":\["m"\],"RBDImage":"i"/);
});

test('differences are told a field a line, of the fields that are asked for', () => {
  const before = { nfs: { server: 's', path: '/a' }, capacity: { storage: '1Gi' } };
  const after = { nfs: { server: 's', path: '/b' }, capacity: { storage: '2Gi' } };
  const shown = goDiff('core.v1.PersistentVolumeSpec', before, after, (name) => name === 'NFS');
  assert.equal(
    shown,
    '@@ -1,7 +1,7 @@\n {\n  "NFS": {\n   "Server": "s",\n-  "Path": "/a",\n+  "Path": "/b",\n' +
      '   "ReadOnly": false\n  }\n }\n',
  );
});

test('what Go holds by value is zero where v1 leaves it out', () => {
  const rolling = goValueOf('apps.v1.RollingUpdateStatefulSetStrategy', {});
  assert.deepEqual(rolling, { Partition: 0, MaxUnavailable: null });
  const update = goValueOf('apps.v1.DaemonSetUpdateStrategy', { rollingUpdate: {} });
  assert.deepEqual(update, { Type: '', RollingUpdate: { MaxUnavailable: 0, MaxSurge: 0 } });
});

test('objects within an object keep what kind they are', () => {
  const type = findType('apps.v1.StatefulSet');
  assert.ok(type !== undefined);
  const claim = { spec: { volumeMode: 'Block' }, apiVersion: 'v1', kind: 'PersistentVolumeClaim' };
  const object = { spec: { volumeClaimTemplates: [claim] }, kind: 'StatefulSet', apiVersion: 'a' };
  const text = JSON.stringify(versionedForm(type, object));
  assert.ok(text.startsWith('{"kind":"StatefulSet","apiVersion":"a",'));
  const shown = '"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1",';
  assert.ok(text.includes(shown), text);
});

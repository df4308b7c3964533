import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { familyFaults } from './service-families.ts';

function faults(spec: JsonObject, before: JsonObject | null = null): string[] {
  const service = { metadata: { name: 's' }, spec };
  const status = familyFaults(service, before === null ? null : { spec: before });
  return (status?.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);
}

const DUAL = { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] };

test('a cluster of one family serves no second one', () => {
  assert.deepEqual(faults({}), []);
  assert.deepEqual(faults({ ipFamilies: ['IPv6'] }), [
    'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
  ]);
  assert.deepEqual(faults(DUAL), [
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for ' +
      'dual-stack services',
    'spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster',
  ]);
  assert.deepEqual(faults({ clusterIPs: ['fd00::1'] }), [
    'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster',
  ]);
});

test('headless services without a selector may have any family', () => {
  assert.deepEqual(faults({ ...DUAL, clusterIP: 'None', clusterIPs: ['None'] }), []);
  assert.deepEqual(faults({ type: 'ExternalName', ...DUAL }), []);
  const selected = { ...DUAL, clusterIP: 'None', clusterIPs: ['None'], selector: { a: 'b' } };
  assert.equal(faults(selected).length, 2);
});

test('to let a second family go takes the policy of one', () => {
  const before = { ...DUAL, clusterIP: 'None', clusterIPs: ['None'] };
  const one = { clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'] };
  assert.deepEqual(faults(one, before), [
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release ' +
      'the secondary IP family',
  ]);
  assert.deepEqual(faults({ ...one, ipFamilyPolicy: 'SingleStack' }, before), []);
  const kept = { ...before, ipFamilyPolicy: 'PreferDualStack', selector: { a: 'b' } };
  assert.deepEqual(faults(kept, kept), []);
});

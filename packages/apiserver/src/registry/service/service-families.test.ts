import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { giveFamilies } from './service-families.ts';
import type { Family } from './service-networks.ts';

const ONE: readonly Family[] = ['IPv4'];
const TWO: readonly Family[] = ['IPv6', 'IPv4'];

function faults(
  spec: JsonObject,
  before: JsonObject | null = null,
  configured: readonly Family[] = ONE,
): string[] {
  const service = { metadata: { name: 's' }, spec: { ...spec } };
  const status = giveFamilies(service, before === null ? null : { spec: before }, configured);
  return (status?.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);
}

/** Policy and families that a Service gets. */
function given(
  spec: JsonObject,
  before: JsonObject | null = null,
  configured: readonly Family[] = TWO,
): string {
  const own: JsonObject = { ...spec };
  const service = { metadata: { name: 's' }, spec: own };
  assert.equal(giveFamilies(service, before === null ? null : { spec: before }, configured), null);
  const families = listAt(own, 'ipFamilies').map((one) => stringAt(one));
  return `${stringAt(own, 'ipFamilyPolicy')} ${families.join(',')}`;
}

const DUAL = { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] };
const NONE = { clusterIP: 'None', clusterIPs: ['None'] };

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
  assert.deepEqual(faults({ clusterIP: 'fd00::1', clusterIPs: ['fd00::1'] }), [
    'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster',
  ]);
  assert.equal(given({ ipFamilyPolicy: 'PreferDualStack' }, null, ONE), 'PreferDualStack IPv4');
});

test('a cluster of two families gives its first, or both where they are wanted', () => {
  assert.equal(given({}), 'SingleStack IPv6');
  assert.equal(given({ clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9'] }), 'SingleStack IPv4');
  assert.equal(given({ ipFamilyPolicy: 'PreferDualStack' }), 'PreferDualStack IPv6,IPv4');
  assert.equal(given(DUAL), 'RequireDualStack IPv4,IPv6');
  assert.equal(
    given({ ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4'] }),
    'RequireDualStack IPv4,IPv6',
  );
  assert.deepEqual(faults({ ipFamilies: ['IPv4', 'IPv6'] }, null, TWO), [
    'spec.ipFamilyPolicy: Invalid value: "SingleStack": must be \'RequireDualStack\' or ' +
      "'PreferDualStack' when multiple IP families are specified",
  ]);
});

test('headless services without a selector may have any family', () => {
  assert.deepEqual(faults({ ...DUAL, ...NONE }), []);
  assert.deepEqual(faults({ type: 'ExternalName', ...DUAL }), []);
  assert.equal(faults({ ...DUAL, ...NONE, selector: { a: 'b' } }).length, 2);
  assert.equal(given(NONE, null, ONE), 'RequireDualStack IPv4,IPv6');
  assert.equal(given({ ...NONE, ipFamilies: ['IPv6'] }, null, ONE), 'RequireDualStack IPv6,IPv4');
  assert.equal(given({ ...NONE, selector: { a: 'b' } }), 'SingleStack IPv6');
});

test('to let a second family go takes the policy of one', () => {
  const before = { ...DUAL, ...NONE };
  const one = { ...NONE, ipFamilies: ['IPv4'] };
  assert.deepEqual(faults(one, before), [
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release ' +
      'the secondary IP family',
  ]);
  assert.deepEqual(faults({ ...one, ipFamilyPolicy: 'SingleStack' }, before), []);
  assert.equal(given({ ...before, ipFamilyPolicy: 'SingleStack' }, before), 'SingleStack IPv4');
  const kept = { ...before, ipFamilyPolicy: 'PreferDualStack', selector: { a: 'b' } };
  assert.deepEqual(faults(kept, kept), []);
});

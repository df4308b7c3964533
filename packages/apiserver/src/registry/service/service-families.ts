/** Address families of Services, as upstream gives and refuses them on clusters of one or two. */
import { invalidValue, type FieldError } from '@megaplane/machinery/fielderrors';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { invalid, type Status } from '@megaplane/machinery/status';
import { checkAddresses } from '@megaplane/machinery/validation-services';
import type { Family } from './service-networks.ts';
import { typeOf } from './service-types.ts';

const POLICY = 'spec.ipFamilyPolicy';

/**
 * Gives a Service (its spec, in place) a policy and its families, or says what is wrong with those
 * and the addresses that it asks for. `previous` is null for a new one; `configured` are the
 * cluster's families, the one first that Services get unasked.
 */
export function giveFamilies(
  service: JsonObject,
  previous: JsonObject | null,
  configured: readonly Family[],
): Status | null {
  const spec = objectAt(service, 'spec') ?? {};
  const before = previous === null ? null : (objectAt(previous, 'spec') ?? {});
  if (typeOf(spec) === 'ExternalName' || isKept(spec, before)) return null;
  spec['ipFamilyPolicy'] ||= policyOf(spec, before);
  const faults: FieldError[] = [];
  const refusal = (): Status =>
    invalid({ group: '', name: 'Service' }, stringAt(service, 'metadata', 'name'), faults);
  checkAddresses(faults, spec, listAt(before ?? {}, 'clusterIPs'));
  if (faults.length > 0) return refusal();
  if (before !== null) releaseSecond(spec, before, faults);
  checkSingle(spec, faults);
  inferFamilies(spec, configured, faults);
  if (faults.length > 0) return refusal();
  if (isOpenHeadless(spec)) {
    fillFamilies(spec, configured, true);
    return null;
  }
  checkConfigured(spec, configured, faults);
  if (faults.length > 0) return refusal();
  fillFamilies(spec, configured, configured.length > 1);
  return null;
}

/** A Service that prefers two families is left as it is while nobody changes them. */
export function isKept(spec: JsonObject, before: JsonObject | null): boolean {
  if (before === null || typeOf(spec) === 'ExternalName') return false;
  const isPreferred = spec['ipFamilyPolicy'] === 'PreferDualStack';
  const wasPreferred = [undefined, null, 'PreferDualStack'].includes(
    before['ipFamilyPolicy'] as string | null | undefined,
  );
  if (!isPreferred || !wasPreferred || typeOf(spec) !== typeOf(before)) return false;
  return isSame(spec, before, 'clusterIPs') && isSame(spec, before, 'ipFamilies');
}

function isSame(spec: JsonObject, before: JsonObject, field: string): boolean {
  return equals([...listAt(spec, field)], [...listAt(before, field)]);
}

/** Headless and without a selector: whoever fills it in may use any family. */
function isOpenHeadless(spec: JsonObject): boolean {
  const selector = objectAt(spec, 'selector') ?? {};
  return stringAt(spec, 'clusterIP') === 'None' && Object.keys(selector).length === 0;
}

/** Where none is named: the one before, or what the kind of Service needs. */
function policyOf(spec: JsonObject, before: JsonObject | null): string {
  const old = stringAt(before ?? {}, 'ipFamilyPolicy');
  if (old !== '') return old;
  return isOpenHeadless(spec) ? 'RequireDualStack' : 'SingleStack';
}

const SECONDS = [
  ['clusterIPs', 'secondary cluster IP', 'multiple cluster IPs'],
  ['ipFamilies', 'secondary IP family', 'multiple IP families'],
] as const;

/** An update to one family that leaves both as they were asks to let the second go. */
function releaseSecond(spec: JsonObject, before: JsonObject, faults: FieldError[]): void {
  const policy = stringAt(spec, 'ipFamilyPolicy');
  for (const [field, secondary] of SECONDS) {
    const own = listAt(spec, field);
    if (policy === 'SingleStack') {
      if (own.length > 1 && isSame(spec, before, field)) spec[field] = own.slice(0, 1);
    } else if (own.length > 0 && own.length < listAt(before, field).length) {
      const text = `must be 'SingleStack' to release the ${secondary}`;
      faults.push(invalidValue(POLICY, policy, text));
    }
  }
}

function checkSingle(spec: JsonObject, faults: FieldError[]): void {
  const policy = stringAt(spec, 'ipFamilyPolicy');
  if (policy !== 'SingleStack') return;
  for (const [field, , multiple] of SECONDS) {
    if (listAt(spec, field).length !== 2) continue;
    const text = `must be 'RequireDualStack' or 'PreferDualStack' when ${multiple} are specified`;
    faults.push(invalidValue(POLICY, policy, text));
  }
}

/** Addresses that are asked for tell their families. */
function inferFamilies(
  spec: JsonObject,
  configured: readonly Family[],
  faults: FieldError[],
): void {
  const families: JsonValue[] = [...listAt(spec, 'ipFamilies')];
  const addresses = listAt(spec, 'clusterIPs');
  for (const [at, address] of addresses.entries()) {
    if (address === 'None') break;
    if (at < families.length || typeof address !== 'string') continue;
    const family = address.includes(':') ? 'IPv6' : 'IPv4';
    if (configured.includes(family)) {
      families.push(family);
      continue;
    }
    const text = `${family} is not configured on this cluster`;
    faults.push(invalidValue(`spec.clusterIPs[${at}]`, [...addresses], text));
  }
  if (families.length > 0) spec['ipFamilies'] = families;
}

function checkConfigured(
  spec: JsonObject,
  configured: readonly Family[],
  faults: FieldError[],
): void {
  const policy = stringAt(spec, 'ipFamilyPolicy');
  if (policy === 'RequireDualStack' && configured.length < 2) {
    const text = 'this cluster is not configured for dual-stack services';
    faults.push(invalidValue(POLICY, policy, text));
  }
  for (const [at, family] of listAt(spec, 'ipFamilies').entries()) {
    if (configured.some((one) => one === family)) continue;
    const text = 'not configured on this cluster';
    faults.push(invalidValue(`spec.ipFamilies[${at}]`, family, text));
  }
}

/** The cluster's first family where none is named, and the other one where two are wanted. */
function fillFamilies(spec: JsonObject, configured: readonly Family[], hasBoth: boolean): void {
  const families: JsonValue[] = [...listAt(spec, 'ipFamilies')];
  if (families.length === 0) families.push(configured[0] ?? 'IPv4');
  const isDual = hasBoth && stringAt(spec, 'ipFamilyPolicy') !== 'SingleStack';
  if (isDual && families.length === 1) families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4');
  spec['ipFamilies'] = families;
}

/** Address families of Services on a cluster that has IPv4 alone, in upstream's words. */
import { invalidValue, type FieldError } from '@megaplane/machinery/fielderrors';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { invalid, type Status } from '@megaplane/machinery/status';
import { checkAddresses } from '@megaplane/machinery/validation-services';

const CONFIGURED = 'IPv4';
const POLICY = 'spec.ipFamilyPolicy';

/** What is wrong with the addresses that a Service asks for, before any is given to it. */
export function addressFaults(service: JsonObject, previous: JsonObject | null): Status | null {
  if (stringAt(service, 'spec', 'type') === 'ExternalName') return null;
  const kept = previous === null ? [] : listAt(previous, 'spec', 'clusterIPs');
  const faults: FieldError[] = [];
  checkAddresses(faults, objectAt(service, 'spec') ?? {}, kept);
  if (faults.length === 0) return null;
  return invalid({ group: '', name: 'Service' }, stringAt(service, 'metadata', 'name'), faults);
}

/** What is wrong with the families of a new Service (`previous` null) or a changed one. */
export function familyFaults(service: JsonObject, previous: JsonObject | null): Status | null {
  const spec = objectAt(service, 'spec') ?? {};
  const before = previous === null ? null : (objectAt(previous, 'spec') ?? {});
  if (stringAt(spec, 'type') === 'ExternalName') return null;
  if (before !== null && isKept(spec, before)) return null;
  const policy = policyOf(spec, before);
  const faults = changeFaults(spec, before, policy);
  const families = listAt(spec, 'ipFamilies');
  const addresses = listAt(spec, 'clusterIPs');
  for (const [at, address] of addresses.entries()) {
    if (address === 'None') break;
    const isForeign = typeof address === 'string' && address.includes(':');
    if (at < families.length || !isForeign) continue;
    const text = 'IPv6 is not configured on this cluster';
    faults.push(invalidValue(`spec.clusterIPs[${at}]`, [...addresses], text));
  }
  if (faults.length === 0 && !isOpenHeadless(spec)) {
    if (policy === 'RequireDualStack') {
      const text = 'this cluster is not configured for dual-stack services';
      faults.push(invalidValue(POLICY, policy, text));
    }
    for (const [at, family] of families.entries()) {
      if (family === CONFIGURED) continue;
      const text = 'not configured on this cluster';
      faults.push(invalidValue(`spec.ipFamilies[${at}]`, family, text));
    }
  }
  if (faults.length === 0) return null;
  return invalid({ group: '', name: 'Service' }, stringAt(service, 'metadata', 'name'), faults);
}

/** Headless and without a selector: whoever fills it in may use any family. */
function isOpenHeadless(spec: JsonObject): boolean {
  const selector = objectAt(spec, 'selector') ?? {};
  return stringAt(spec, 'clusterIP') === 'None' && Object.keys(selector).length === 0;
}

/**
 * The policy that counts where none is named: the one before, or what the kind of Service needs.
 */
function policyOf(spec: JsonObject, before: JsonObject | null): string {
  const named = stringAt(spec, 'ipFamilyPolicy') || stringAt(before ?? {}, 'ipFamilyPolicy');
  if (named !== '') return named;
  return isOpenHeadless(spec) ? 'RequireDualStack' : 'SingleStack';
}

/** A Service that prefers two families is left as it is while nobody changes them. */
function isKept(spec: JsonObject, before: JsonObject): boolean {
  const isSame = ['type', 'ipFamilyPolicy', 'clusterIPs', 'ipFamilies'].every((field) =>
    equals(spec[field], before[field]),
  );
  return isSame && spec['ipFamilyPolicy'] === 'PreferDualStack';
}

function changeFaults(spec: JsonObject, before: JsonObject | null, policy: string): FieldError[] {
  const faults: FieldError[] = [];
  const fields = [
    ['clusterIPs', 'secondary cluster IP', 'multiple cluster IPs'],
    ['ipFamilies', 'secondary IP family', 'multiple IP families'],
  ] as const;
  for (const [field, secondary, multiple] of fields) {
    const own = listAt(spec, field);
    const old = listAt(before ?? {}, field);
    if (policy === 'SingleStack') {
      // an update that leaves both as they were asks to let the second go
      if (own.length !== 2 || (before !== null && equals([...own], [...old]))) continue;
      const text = `must be 'RequireDualStack' or 'PreferDualStack' when ${multiple} are specified`;
      faults.push(invalidValue(POLICY, policy, text));
    } else if (own.length > 0 && own.length < old.length) {
      const text = `must be 'SingleStack' to release the ${secondary}`;
      faults.push(invalidValue(POLICY, policy, text));
    }
  }
  return faults;
}

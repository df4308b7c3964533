/** What containers learn about their pod: fields and resources, as environment or as files. */

import { invalidValue, notSupported, required } from '../../meta/fielderrors.ts';
import { stringAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { qualifiedNameErrors } from '../../meta/names.ts';
import { invalidEach, type Findings } from '../field/validation-rules.ts';

/** Fields that an environment variable may be. */
export const ENV_FIELDS: readonly string[] = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
/** Fields that a file may hold. */
export const FILE_FIELDS: readonly string[] = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];
/** Fields that have a name at all. */
const FIELDS: ReadonlySet<string> = new Set([
  ...ENV_FIELDS,
  ...FILE_FIELDS,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]);
const RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
];
const HUGE_PAGES = /^(limits|requests)\.hugepages-/;
const CPU_DIVISORS = ['1m', '1'];
const SIZE_DIVISORS = '1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei'.split(', ');
const SUBSCRIPTED = /^([^[\]]+)\['(.*)'\]$/s;

/** `fieldRef`: one of `fields`, or a label or annotation by its key. */
export function checkFieldReference(
  found: Findings,
  path: string,
  reference: JsonObject,
  fields: readonly string[],
): void {
  const version = stringAt(reference, 'apiVersion');
  const field = stringAt(reference, 'fieldPath');
  if (version === '') {
    found.push(required(`${path}.apiVersion`));
    return;
  }
  if (field === '') {
    found.push(required(`${path}.fieldPath`));
    return;
  }
  const unknown = (why: string): void => {
    found.push(invalidValue(`${path}.fieldPath`, field, `error converting fieldPath: ${why}`));
  };
  if (version !== 'v1') {
    unknown(`unsupported pod version: ${version}`);
    return;
  }
  const [, subscripted, key = ''] = SUBSCRIPTED.exec(field) ?? [];
  if (subscripted === 'metadata.labels') invalidEach(found, path, key, qualifiedNameErrors(key));
  else if (subscripted === 'metadata.annotations') {
    const lower = key.toLowerCase();
    invalidEach(found, path, lower, qualifiedNameErrors(lower));
  } else if (subscripted !== undefined) unknown(`field label does not support subscript: ${field}`);
  else {
    const name = field === 'spec.host' ? 'spec.nodeName' : field;
    if (!FIELDS.has(name)) unknown(`field label not supported: ${field}`);
    else if (!fields.includes(name)) found.push(notSupported(`${path}.fieldPath`, name, fields));
  }
}

/** `resourceFieldRef`: what a container asks for; files must name the container. */
export function checkResourceReference(
  found: Findings,
  path: string,
  reference: JsonObject,
  isFile: boolean,
): void {
  const resource = stringAt(reference, 'resource');
  const isNameless = isFile && stringAt(reference, 'containerName') === '';
  if (isNameless) found.push(required(`${path}.containerName`));
  else if (resource === '') found.push(required(`${path}.resource`));
  else if (!RESOURCES.includes(resource) && !HUGE_PAGES.test(resource)) {
    found.push(notSupported(`${path}.resource`, resource, RESOURCES));
  }
  checkDivisor(found, path, resource, stringAt(reference, 'divisor'));
}

function checkDivisor(found: Findings, path: string, resource: string, divisor: string): void {
  if (divisor === '' || divisor === '0') return;
  const what = resource.endsWith('.cpu')
    ? 'cpu'
    : resource.endsWith('.memory')
      ? 'memory'
      : resource.endsWith('.ephemeral-storage')
        ? 'local ephemeral storage'
        : HUGE_PAGES.test(resource)
          ? 'hugepages'
          : '';
  const allowed = what === 'cpu' ? CPU_DIVISORS : SIZE_DIVISORS;
  if (what === '' || allowed.includes(divisor)) return;
  const list = what === 'cpu' ? '1m and 1' : SIZE_DIVISORS.join(', ');
  const text = `only divisor's values ${list} are supported with the ${what} resource`;
  found.push(invalidValue(`${path}.divisor`, resource, text));
}

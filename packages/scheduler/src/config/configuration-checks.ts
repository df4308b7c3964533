/** What can be wrong with a completed configuration, in upstream's words and order. */
import { parseGoDuration } from '@megaplane/machinery/times';
import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  fieldErrorText,
  invalidValue,
  required,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { printed } from '@megaplane/machinery/fielderrors';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { qualifiedNameErrors } from '@megaplane/machinery/names';
import { argumentErrors } from './argument-checks.ts';
import { API_VERSION } from './configuration-defaults.ts';
import { ARGUMENTS, EXTENSION_POINTS } from './schema/configuration-schema.ts';
import { numberAt, objectAt, objectsAt, textAt } from './schema/members.ts';

const REMOVED = new Set(['AzureDiskLimits', 'CinderLimits', 'EBSLimits', 'GCEPDLimits']);

/** All faults, each as one line. */
export function configurationErrors(complete: JsonObject): string[] {
  const found: (FieldError | string)[] = [];
  const burst = numberAt(objectAt(complete, 'clientConnection'), 'burst');
  if (burst < 0) found.push(invalidValue('clientConnection.burst', burst, 'must be non-negative'));
  found.push(...electionErrors(objectAt(complete, 'leaderElection')));
  const parallelism = numberAt(complete, 'parallelism');
  if (parallelism <= 0) {
    const text = 'should be an integer value greater than zero';
    found.push(invalidValue('parallelism', parallelism, text));
  }
  const profiles = objectsAt(complete, 'profiles');
  const seen = new Set<string>();
  for (const [index, profile] of profiles.entries()) {
    const path = `profiles[${index}]`;
    found.push(...profileErrors(profile, path));
    const name = textAt(profile, 'schedulerName');
    if (seen.has(name)) found.push(duplicate(`${path}.schedulerName`, printed('{}')));
    seen.add(name);
  }
  found.push(...queueSortErrors(profiles));
  found.push(...percentageErrors(complete, 'percentageOfNodesToScore'));
  const initial = numberAt(complete, 'podInitialBackoffSeconds');
  const max = numberAt(complete, 'podMaxBackoffSeconds');
  if (initial <= 0) {
    found.push(invalidValue('podInitialBackoffSeconds', initial, 'must be greater than 0'));
  }
  if (max < initial) {
    const text = 'must be greater than or equal to PodInitialBackoffSeconds';
    found.push(invalidValue('podMaxBackoffSeconds', max, text));
  }
  found.push(...extenderErrors(objectsAt(complete, 'extenders')));
  return found.map((one) => (typeof one === 'string' ? one : fieldErrorText(one)));
}

function electionErrors(election: JsonObject): FieldError[] {
  if (election['leaderElect'] === false) return [];
  const found: FieldError[] = [];
  const nanosAt = (member: string): bigint => parseGoDuration(textAt(election, member)) ?? 0n;
  for (const member of ['leaseDuration', 'renewDeadline', 'retryPeriod']) {
    if (nanosAt(member) > 0n) continue;
    const value = textAt(election, member);
    found.push(invalidValue(`leaderElection.${member}`, value, 'must be greater than zero'));
  }
  if (nanosAt('leaseDuration') <= nanosAt('renewDeadline')) {
    // Upstream shows the deadline, too.
    const value = textAt(election, 'renewDeadline');
    const text = 'must be greater than `RenewDeadline`';
    found.push(invalidValue('leaderElection.leaseDuration', value, text));
  }
  const lock = textAt(election, 'resourceLock');
  if (lock !== 'leases') {
    const text = 'resourceLock value must be "leases"';
    found.push(invalidValue('leaderElection.resourceLock', lock, text));
  }
  return found;
}

function percentageErrors(parent: JsonObject, path: string): FieldError[] {
  const value = parent['percentageOfNodesToScore'];
  if (value === undefined || (Number(value) >= 0 && Number(value) <= 100)) return [];
  return [invalidValue(path, Number(value), 'not in valid range [0-100]')];
}

function removedError(name: string, path: string): FieldError {
  const text = `was invalid in version "v1" (KubeSchedulerConfiguration is version`;
  return invalidValue(path, name, `${text} "${API_VERSION}")`);
}

function profileErrors(profile: JsonObject, path: string): (FieldError | string)[] {
  const found: (FieldError | string)[] = [];
  if (textAt(profile, 'schedulerName') === '') found.push(required(`${path}.schedulerName`));
  found.push(...percentageErrors(profile, `${path}.percentageOfNodesToScore`));
  for (const point of EXTENSION_POINTS) {
    const enabled = objectsAt(objectAt(objectAt(profile, 'plugins'), point), 'enabled');
    for (const [index, entry] of enabled.entries()) {
      const name = textAt(entry, 'name');
      const where = `${path}.plugins.${point}.enabled[${index}]`;
      if (REMOVED.has(name)) found.push(removedError(name, where));
    }
  }
  const seen = new Set<string>();
  for (const [index, entry] of objectsAt(profile, 'pluginConfig').entries()) {
    const name = textAt(entry, 'name');
    const where = `${path}.pluginConfig[${index}]`;
    if (seen.has(name)) found.push(duplicate(where, name));
    seen.add(name);
    if (REMOVED.has(name)) found.push(removedError(name, where));
    else found.push(...argumentErrors(name, objectAt(entry, 'args'), `${where}.args`));
  }
  return found;
}

function queueSortErrors(profiles: readonly JsonObject[]): FieldError[] {
  const found: FieldError[] = [];
  const setOf = (profile: JsonObject | undefined): JsonObject =>
    objectAt(objectAt(profile, 'plugins'), 'queueSort');
  const shown = (set: JsonObject): string => {
    const entries = (member: string): JsonValue =>
      ownMember(set, member) === undefined
        ? null
        : objectsAt(set, member).map((one) => ({
            Name: textAt(one, 'name'),
            Weight: numberAt(one, 'weight'),
          }));
    return JSON.stringify({ Enabled: entries('enabled'), Disabled: entries('disabled') });
  };
  const [first] = profiles;
  const count = objectsAt(setOf(first), 'enabled').length;
  if (count > 1) {
    const text = 'only one queue sort plugin can be enabled';
    found.push(invalidValue('profiles[0].plugins.queueSort.Enabled', count, text));
  }
  const wanted = shown(setOf(first));
  const [sort = ''] = objectsAt(setOf(first), 'enabled').map((entry) => textAt(entry, 'name'));
  // Upstream asks of the last arguments of the first profile, and of all of the others.
  const [wantedArgs] = sort === '' ? [] : argumentsOf(first, sort).slice(-1);
  for (const [index, profile] of profiles.entries()) {
    if (index === 0) continue;
    const text = shown(setOf(profile));
    const set = `profiles[${index}].plugins.queueSort`;
    const same = 'must be the same for all profiles';
    if (text !== wanted) found.push(invalidValue(set, printed(text), same));
    for (const args of argumentsOf(profile, sort)) {
      if (args === wantedArgs) continue;
      const path = `profiles[${index}].pluginConfig.args`;
      found.push(invalidValue(path, printed(args), `queueSort ${same}`));
    }
  }
  return found;
}

/** Arguments given to a plugin as upstream shows those of its own type: with capital letters. */
function argumentsOf(profile: JsonObject | undefined, plugin: string): string[] {
  const own = Object.keys(ownMember(ARGUMENTS, plugin)?.members ?? {});
  const types = new Set(['apiVersion', 'kind']);
  return objectsAt(profile, 'pluginConfig')
    .filter((entry) => textAt(entry, 'name') === plugin && entry['args'] !== undefined)
    .map((entry) => {
      const args = objectAt(entry, 'args');
      if (own.length === 0) return JSON.stringify(args);
      const members = own.filter((name) => !types.has(name));
      return JSON.stringify(
        Object.fromEntries(members.map((name) => [capital(name), ownMember(args, name) ?? null])),
      );
    });
}

function capital(name: string): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

/** Resources that are neither Kubernetes' own nor the quotas' names of others. */
function isExtendedName(name: string): boolean {
  if (!name.includes('/') || name.includes('kubernetes.io/')) return false;
  return !name.startsWith('requests.') && qualifiedNameErrors(`requests.${name}`).length === 0;
}

function resourceErrors(name: string, path: string): FieldError[] {
  const wrong = qualifiedNameErrors(name);
  if (wrong.length > 0) return wrong.map((text) => invalidValue(path, name, text));
  if (isExtendedName(name)) return [];
  return [invalidValue(path, name, 'is an invalid extended resource name')];
}

function extenderErrors(extenders: readonly JsonObject[]): FieldError[] {
  const found: FieldError[] = [];
  const managed = new Set<string>();
  for (const [index, extender] of extenders.entries()) {
    const weight = numberAt(extender, 'weight');
    if (textAt(extender, 'prioritizeVerb') !== '' && weight <= 0) {
      const text = 'must have a positive weight applied to it';
      found.push(invalidValue(`extenders[${index}].weight`, weight, text));
    }
    for (const [number, resource] of objectsAt(extender, 'managedResources').entries()) {
      const path = `extenders[${index}].managedResources[${number}].name`;
      const name = textAt(resource, 'name');
      found.push(...resourceErrors(name, path));
      const text = 'duplicate extender managed resource name';
      if (managed.has(name)) found.push(invalidValue(path, name, text));
      managed.add(name);
    }
  }
  const binders = extenders.filter((extender) => textAt(extender, 'bindVerb') !== '').length;
  if (binders > 1) {
    const text = `found ${binders} extenders implementing bind`;
    found.push(invalidValue('extenders', text, 'only one extender can implement bind'));
  }
  return found;
}

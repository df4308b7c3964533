/** Small rules of kinds that need no file of their own. */
import { putMember } from '@megaplane/base/members';
import { mirrorDataSource } from '@megaplane/machinery/defaults-core';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { forbidden } from '@megaplane/machinery/status';
import { formatTime } from '@megaplane/machinery/times';
import {
  defineBehaviour,
  ORPHANING_DELETION,
  UNCOLLECTED_DELETION,
  type RuleContext,
} from '../rest/behaviour.ts';
import type { World } from '../../lister/world.ts';

/** Kinds whose DELETE answers the object that was there (upstream's ReturnDeletedObject). */
const RETURNING = [
  'persistentvolumes',
  'persistentvolumeclaims',
  'podtemplates',
  'resourcequotas',
  'serviceaccounts',
  'services',
  'csidrivers.storage.k8s.io',
  'csinodes.storage.k8s.io',
  'storageclasses.storage.k8s.io',
  'volumeattachments.storage.k8s.io',
  'volumeattributesclasses.storage.k8s.io',
  'deviceclasses.resource.k8s.io',
  'resourceclaims.resource.k8s.io',
  'resourceclaimtemplates.resource.k8s.io',
  'resourceslices.resource.k8s.io',
] as const;

/** Kinds of which a list without members is another one than none, where changes are counted. */
const EXACTLY_COUNTED = [
  'networkpolicies.networking.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
] as const;

const SYSTEM_CLASSES = ['system-node-critical', 'system-cluster-critical'];

/** Registers them. */
export function definePlainKinds(): void {
  for (const name of RETURNING) defineBehaviour(name, { returnsDeleted: true });
  for (const name of EXACTLY_COUNTED) defineBehaviour(name, { counting: 'exact' });
  defineBehaviour('replicationcontrollers', { deletion: ORPHANING_DELETION });
  defineBehaviour('events', { deletion: UNCOLLECTED_DELETION });
  defineBehaviour('nodes', {
    keepsStatusAtCreate: true,
    prepareCreate: (node) => {
      delete objectAt(node, 'spec')?.['configSource'];
      dropConfig(node);
    },
    prepareUpdate: (next, previous) => {
      if (objectAt(previous, 'spec', 'configSource') === undefined) {
        delete objectAt(next, 'spec')?.['configSource'];
      }
    },
    prepareStatus: dropConfig,
  });
  defineBehaviour('limitranges', { startCreate: nameRange });
  defineBehaviour('ipaddresses.networking.k8s.io', { isNamedAsPrefix: true });
  defineBehaviour('secrets', { startCreate: mergeStringData, prepareUpdate: mergeStringData });
  defineBehaviour('leases.coordination.k8s.io', {
    prepareCreate: dropElection,
    prepareUpdate: dropElection,
  });
  defineBehaviour('serviceaccounts', {
    prepareCreate: nameSecrets,
    prepareUpdate: nameSecrets,
  });
  defineBehaviour('endpointslices.discovery.k8s.io', {
    prepareCreate: (slice) => dropTopology(slice, null),
    prepareUpdate: dropTopology,
    counting: 'early',
  });
  defineBehaviour('csidrivers.storage.k8s.io', {
    prepareCreate: dropVolumeLimit,
    prepareUpdate: dropVolumeLimit,
    counting: 'late',
  });
  defineBehaviour('priorityclasses.scheduling.k8s.io', {
    admitDelete: (priority, { served, call }) => {
      const name = stringAt(priority, 'metadata', 'name');
      // upstream spares them by name only, and makes them anew at each start
      if (call.info.name === '' || !SYSTEM_CLASSES.includes(name)) return null;
      const why = 'this is a system priority class and cannot be deleted';
      return forbidden(served.plural, name, why);
    },
    // and never counts
    prepareCreate: (priority) => {
      const metadata = objectAt(priority, 'metadata');
      if (metadata !== undefined) metadata['generation'] = 1;
    },
  });
  defineBehaviour('persistentvolumes', {
    prepareCreate: (object, { world }) => {
      object['status'] = { phase: 'Pending', lastPhaseTransitionTime: timeOf(world) };
    },
    prepareStatus: stampPhase,
  });
  defineBehaviour('persistentvolumeclaims', {
    prepareCreate: (object) => {
      object['status'] = { phase: 'Pending' };
      mirrorDataSource(object);
    },
    prepareUpdate: (next) => mirrorDataSource(next),
    prepareStatus: startPhase,
  });
}

/** Configuration of kubelets out of ConfigMaps is no more, and what is said of it is dropped. */
function dropConfig(node: JsonObject): void {
  const { config, ...status } = objectAt(node, 'status') ?? {};
  if (config !== undefined) node['status'] = status;
}

/** Scaling by the volumes of a driver is off by default. */
function dropVolumeLimit(driver: JsonObject): void {
  delete objectAt(driver, 'spec')?.['preventPodSchedulingIfMissing'];
}

/** Coordinated leader election is off by default, and its fields are dropped where it is. */
function dropElection(lease: JsonObject): void {
  const spec = objectAt(lease, 'spec');
  delete spec?.['strategy'];
  delete spec?.['preferredHolder'];
}

/** Secrets of a service account are known by their names alone. */
function nameSecrets(account: JsonObject): void {
  const secrets = listAt(account, 'secrets');
  if (secrets.length === 0) return;
  account['secrets'] = secrets.map((secret) => {
    const name = stringAt(secret, 'name');
    return name === '' ? {} : { name };
  });
}

/** What v1 cannot write: where an endpoint is, by labels. A node that it named is kept. */
function dropTopology(slice: JsonObject, previous: JsonObject | null): void {
  const endpoints = listAt(slice, 'endpoints');
  // no list stays null, as upstream has it
  if (endpoints.length === 0) return;
  const before = previous === null ? [] : listAt(previous, 'endpoints');
  if (previous !== null && equals([...endpoints], [...before])) return;
  const host = ['deprecatedTopology', 'kubernetes.io/hostname'];
  const nodes = before.map((endpoint) => stringAt(endpoint, ...host));
  slice['endpoints'] = endpoints.map((endpoint) => {
    const { deprecatedTopology: _, ...rest } = objectAt(endpoint) ?? {};
    const node = stringAt(endpoint, ...host);
    const isKept = rest['nodeName'] === undefined && node !== '' && nodes.includes(node);
    return isKept ? { ...rest, nodeName: node } : rest;
  });
}

/** Ranges that nobody named are called by a uid. */
function nameRange(range: JsonObject, { world }: RuleContext): void {
  const metadata = objectAt(range, 'metadata') ?? {};
  if (stringAt(metadata, 'name') !== '' || stringAt(metadata, 'generateName') !== '') return;
  range['metadata'] = { name: world.edge.uuid(), ...metadata };
}

/** Text that is written once, and stored as bytes. */
function mergeStringData(object: JsonObject): void {
  const texts = objectAt(object, 'stringData');
  delete object['stringData'];
  if (texts === undefined || Object.keys(texts).length === 0) return;
  const data: JsonObject = { ...objectAt(object, 'data') };
  for (const [key, value] of Object.entries(texts)) {
    if (typeof value === 'string') putMember(data, key, Buffer.from(value).toString('base64'));
  }
  object['data'] = data;
}

/** A volume or a claim that says nothing of its phase waits. */
function startPhase(next: JsonObject): void {
  next['status'] = { phase: 'Pending', ...objectAt(next, 'status') };
}

/**
 * A volume says since when it is in its phase, whoever sets it; a time that is sent wins over the
 * time of the change, and over the one that an unchanged phase keeps.
 */
function stampPhase(next: JsonObject, previous: JsonObject, { world }: RuleContext): void {
  const since = (object: JsonObject): string =>
    stringAt(object, 'status', 'lastPhaseTransitionTime');
  startPhase(next);
  const [phase, before] = [next, previous].map((one) => stringAt(one, 'status', 'phase'));
  const [sent, kept] = [since(next), since(previous)];
  if (phase === before ? sent !== '' || kept === '' : sent !== '' && sent !== kept) return;
  const lastPhaseTransitionTime = phase === before ? kept : timeOf(world);
  next['status'] = { ...objectAt(next, 'status'), lastPhaseTransitionTime };
}

function timeOf(world: World): string {
  return formatTime(Math.floor(world.edge.nowMs() / 1000));
}

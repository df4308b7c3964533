/** Admission of pods: service account, priority, tolerations, as upstream's default plugins. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { POD_SPEC_ORDER } from '../../registry/core/pod-spec-order.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { followChanges } from '../../storage/follow.ts';
import { generatedName } from '../../registry/rest/object-meta.ts';
import { findServed, keyOf, rangeOf, type Served } from '../../storage/served.ts';
import { emptyRow } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import { refuse, refuseUnnamed } from '../../registry/rest/refusal.ts';
import { mirrorFault, secretFault } from './pod-secrets.ts';
import { pathNameFault, readStoredObject } from '../../lister/stored-object.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const NOT_EVICTED_SECONDS = 300;
const TOKEN_MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
const TOKEN_SECONDS = 3607;
const ROOT_CA = 'kube-root-ca.crt';

const row = emptyRow();

/** The creation of pods, which all plugins of this file are about. */
const isNewPod: NonNullable<AdmissionPlugin['handles']> = ({ resource }, operation, subresource) =>
  resource.storage.name === 'pods' && operation === 'CREATE' && subresource === '';

/** Service accounts that were read last, by namespace and name; objects are not to be changed. */
const accounts = new WeakMap<World, Map<string, { revision: number; account: JsonObject }>>();
const ACCOUNTS_MAX = 1024;

/** A service account: parsed again only when it has changed. */
function readAccount(world: World, namespace: string, name: string): JsonObject | null {
  const served = findServed('', 'v1', 'serviceaccounts');
  if (served === undefined || !world.storage.get(keyOf(served, namespace, name), row)) return null;
  let known = accounts.get(world);
  if (known === undefined) accounts.set(world, (known = new Map()));
  const path = `${namespace}/${name}`;
  const kept = known.get(path);
  if (kept?.revision === row.modRevision) return kept.account;
  if (known.size >= ACCOUNTS_MAX) known.clear();
  const account = decodeRow(served, row, row.modRevision);
  known.set(path, { revision: row.modRevision, account });
  return account;
}

/** ServiceAccount: every pod runs as one; its token is mounted unless it says no. */
export const serviceAccounts: AdmissionPlugin = {
  name: 'ServiceAccount',
  repeats: () => true,
  handles: isNewPod,
  mutate: (write) => {
    const pod = write.object;
    if (pod === null) return null;
    const annotations = objectAt(pod, 'metadata', 'annotations') ?? {};
    if (annotations['kubernetes.io/config.mirror'] !== undefined) {
      const why = mirrorFault(pod);
      return why === '' ? null : refuseUnnamed(write, why);
    }
    const spec = objectAt(pod, 'spec') ?? {};
    const name = stringAt(spec, 'serviceAccountName') || 'default';
    const { namespace } = write.call.info;
    const account = readAccount(write.world, namespace, name);
    if (account === null) {
      const why = pathNameFault(name) || `serviceaccount "${name}" not found`;
      return refuseUnnamed(write, `error looking up service account ${namespace}/${name}: ${why}`);
    }
    spec['serviceAccountName'] = name;
    spec['serviceAccount'] = name;
    const wish = spec['automountServiceAccountToken'] ?? account['automountServiceAccountToken'];
    if (wish !== false) mountToken(spec, (n) => write.world.edge.below(n));
    const secrets = listAt(account, 'imagePullSecrets');
    if (listAt(spec, 'imagePullSecrets').length === 0 && secrets.length > 0) {
      spec['imagePullSecrets'] = [...secrets];
    }
    pod['spec'] = spec;
    const why = secretFault(account, spec);
    return why === '' ? null : refuseUnnamed(write, why);
  },
};

function mountToken(spec: JsonObject, below: (n: number) => number): void {
  const isMounted = (container: JsonValue): boolean =>
    listAt(container, 'volumeMounts').some(
      (one) => stringAt(one, 'mountPath') === TOKEN_MOUNT_PATH,
    );
  const fields = ['initContainers', 'containers'];
  const wanting = fields.flatMap((field) =>
    listAt(spec, field).filter((container) => !isMounted(container)),
  );
  if (wanting.length === 0) return;
  const volumes = listAt(spec, 'volumes');
  const existing = volumes.find((one) => stringAt(one, 'name').startsWith('kube-api-access-'));
  const name =
    existing === undefined ? generatedName('kube-api-access-', below) : stringAt(existing, 'name');
  for (const container of wanting) {
    const own = container as JsonObject;
    const mount = { name, readOnly: true, mountPath: TOKEN_MOUNT_PATH };
    own['volumeMounts'] = [...listAt(own, 'volumeMounts'), mount];
  }
  if (existing === undefined) spec['volumes'] = [...volumes, tokenVolume(name)];
}

function tokenVolume(name: string): JsonObject {
  const field = { apiVersion: 'v1', fieldPath: 'metadata.namespace' };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
        { configMap: { name: ROOT_CA, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: field }] } },
      ],
      defaultMode: 420,
    },
  };
}

/** Priority: the class by its name, or the cluster's default one, or 0. */
export const priority: AdmissionPlugin = {
  name: 'Priority',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) => {
    const isWrite = (operation === 'CREATE' || operation === 'UPDATE') && subresource === '';
    return isWrite && PRIORITY_KINDS.includes(resource.storage.name);
  },
  mutate: (write) => {
    const pod = write.object;
    if (pod === null || write.served.resource.storage.name !== 'pods') return null;
    const spec = objectAt(pod, 'spec') ?? {};
    if (write.operation === 'UPDATE') {
      // who leaves them out keeps what was found at the creation
      const before = objectAt(write.previous ?? {}, 'spec') ?? {};
      for (const field of ['priority', 'preemptionPolicy']) {
        if (spec[field] === undefined && before[field] !== undefined) spec[field] = before[field];
      }
      return null;
    }
    const name = stringAt(spec, 'priorityClassName');
    const found =
      name === ''
        ? defaultClass(write.world)
        : readStoredObject(write.world, 'scheduling.k8s.io', 'priorityclasses', '', name);
    if (name !== '' && found === null) {
      return refuseUnnamed(write, `no PriorityClass with name ${name} was found`);
    }
    if (found !== null) spec['priorityClassName'] = stringAt(found, 'metadata', 'name');
    const value = found?.['value'] ?? 0;
    const sent = spec['priority'];
    if (sent !== undefined && sent !== null && sent !== value) {
      return refuseUnnamed(
        write,
        `the integer value of priority (${JSON.stringify(sent)}) must not be provided in ` +
          `pod spec; priority admission controller computed ${JSON.stringify(value)} ` +
          'from the given PriorityClass name',
      );
    }
    spec['priority'] = value;
    const policy = stringAt(found ?? {}, 'preemptionPolicy') || 'PreemptLowerPriority';
    const asked = spec['preemptionPolicy'];
    if (typeof asked === 'string' && asked !== policy) {
      return refuseUnnamed(
        write,
        `the string value of PreemptionPolicy (${asked}) must not be provided in pod spec; ` +
          `priority admission controller computed ${policy} from the given PriorityClass name`,
      );
    }
    spec['preemptionPolicy'] = policy;
    pod['spec'] = spec;
    return null;
  },
  validate: (write) => {
    if (write.object === null || write.object['globalDefault'] !== true) return null;
    const other = stringAt(defaultClass(write.world) ?? {}, 'metadata', 'name');
    if (other === '' || (write.operation === 'UPDATE' && other === write.call.info.name)) {
      return null;
    }
    return refuse(
      write,
      `PriorityClass ${other} is already marked as default. Only one default can exist`,
    );
  },
};

const PRIORITY_KINDS = ['pods', 'priorityclasses.scheduling.k8s.io'];

/** The default class of each world, forgotten when any class changes. */
const defaultClasses = new WeakMap<World, { found: JsonObject | null; isFresh: boolean }>();

/** The class marked as default; the lowest value wins where there are several. */
function defaultClass(world: World): JsonObject | null {
  const served = findServed('scheduling.k8s.io', 'v1', 'priorityclasses');
  if (served === undefined) return null;
  let kept = defaultClasses.get(world);
  if (kept === undefined) {
    const made = { found: null, isFresh: false };
    kept = made;
    defaultClasses.set(world, made);
    followChanges(world.storage, rangeOf(served, ''), () => {
      made.isFresh = false;
    });
  }
  if (!kept.isFresh) {
    kept.found = findDefaultClass(world, served);
    kept.isFresh = true;
  }
  return kept.found;
}

function findDefaultClass(world: World, served: Served): JsonObject | null {
  const { start, end } = rangeOf(served, '');
  let found: JsonObject | null = null;
  world.storage.page(start, end, 0, (one) => {
    // most clusters have none: do not parse what cannot be one
    if (one.bytes.subarray(one.start, one.end).includes('"globalDefault":true')) {
      const object = decodeRow(served, one, one.modRevision);
      if (found === null || Number(object['value']) < Number(found['value'])) found = object;
    }
    return true;
  });
  return found;
}

/** How long pods stay on nodes of either kind, unless they say it themselves. */
export interface TolerationSeconds {
  readonly notReady: number;
  readonly unreachable: number;
}

const FIVE_MINUTES: TolerationSeconds = {
  notReady: NOT_EVICTED_SECONDS,
  unreachable: NOT_EVICTED_SECONDS,
};

/** DefaultTolerationSeconds: so long on nodes that are not ready or out of reach. */
export function defaultTolerations(seconds: TolerationSeconds = FIVE_MINUTES): AdmissionPlugin {
  const rules = [
    ['node.kubernetes.io/not-ready', seconds.notReady],
    ['node.kubernetes.io/unreachable', seconds.unreachable],
  ] as const;
  return {
    name: 'DefaultTolerationSeconds',
    repeats: () => true,
    // an update that leaves them out gets them again
    handles: ({ resource }, operation, subresource) =>
      resource.storage.name === 'pods' && operation !== 'DELETE' && subresource === '',
    mutate: (write) => {
      const pod = write.object;
      if (pod === null) return null;
      const spec = objectAt(pod, 'spec') ?? {};
      const before = listAt(spec, 'tolerations');
      const tolerations = [...before];
      for (const [key, tolerationSeconds] of rules) {
        if (toleratesExecution(tolerations, key)) continue;
        tolerations.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds });
      }
      if (write.operation !== 'CREATE' && tolerations.length === before.length) return null;
      spec['tolerations'] = tolerations;
      // the last of these plugins puts what all of them added where upstream's struct has it
      pod['spec'] = orderedSpec(spec);
      return null;
    },
  };
}

function toleratesExecution(tolerations: readonly JsonValue[], key: string): boolean {
  return tolerations.some((one) => {
    const own = stringAt(one, 'key');
    const effect = stringAt(one, 'effect');
    return (own === key || own === '') && (effect === 'NoExecute' || effect === '');
  });
}

/** Fields that admission adds, where upstream's struct has them. */
function orderedSpec(spec: JsonObject): JsonObject {
  const ordered: JsonObject = {};
  for (const field of POD_SPEC_ORDER) {
    const value = spec[field];
    if (value !== undefined) ordered[field] = value;
  }
  return { ...ordered, ...spec };
}

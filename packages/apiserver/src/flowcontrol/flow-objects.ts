/**
 * The flow schemas and priority levels that every cluster has (KEP-1040; names, shares and rules as
 * kube-apiserver 1.36 makes them). Two of each are mandatory; the others are suggestions, which an
 * administrator may change for good by the annotation below.
 */
import {
  CATCH_ALL_LEVEL,
  groupSubjects as groups,
  MANDATORY_SCHEMAS,
  WHOLE,
} from '@megaplane/machinery/mandatory-flow-objects';
import type { JsonObject } from '@megaplane/machinery/json-value';

export const GROUP = 'flowcontrol.apiserver.k8s.io';
/** `"false"`: the object's spec is the administrator's. */
export const AUTO_UPDATE = 'apf.kubernetes.io/autoupdate-spec';

const API_VERSION = `${GROUP}/v1`;
const CONTROLLERS = 'system:kube-controller-manager';
const SCHEDULER = 'system:kube-scheduler';

/** An object and whether its spec may be changed. */
export interface StandardObject {
  readonly object: JsonObject;
  readonly isMandatory: boolean;
}

function users(...names: string[]): JsonObject[] {
  return names.map((name) => ({ kind: 'User', user: { name } }));
}

const SYSTEM_ACCOUNTS: JsonObject = {
  kind: 'ServiceAccount',
  serviceAccount: { namespace: 'kube-system', name: '*' },
};

function namespaced(verbs: string[], group: string, ...resources: string[]): JsonObject {
  return { verbs, apiGroups: [group], resources, namespaces: ['*'] };
}

function standard(kind: string, name: string, spec: JsonObject, status: JsonObject): JsonObject {
  const metadata = { name, annotations: { [AUTO_UPDATE]: 'true' } };
  return { kind, apiVersion: API_VERSION, metadata, spec, status };
}

function level(name: string, spec: JsonObject): JsonObject {
  return standard('PriorityLevelConfiguration', name, spec, {});
}

function queued(
  name: string,
  nominalConcurrencyShares: number,
  lendablePercent: number,
  queues: number,
  handSize: number,
): JsonObject {
  const queuing = { queues, handSize, queueLengthLimit: 50 };
  const limitResponse = { type: 'Queue', queuing };
  return level(name, {
    type: 'Limited',
    limited: { nominalConcurrencyShares, limitResponse, lendablePercent },
  });
}

function schema(
  name: string,
  levelName: string,
  matchingPrecedence: number,
  method: 'ByUser' | 'ByNamespace' | '',
  rule: JsonObject,
): JsonObject {
  const spec: JsonObject = {
    priorityLevelConfiguration: { name: levelName },
    matchingPrecedence,
    ...(method === '' ? {} : { distinguisherMethod: { type: method } }),
    rules: [rule],
  };
  return standard('FlowSchema', name, spec, {});
}

const ANYBODY = groups('system:unauthenticated', 'system:authenticated');
const NODES = groups('system:nodes');

/** Levels first: schemas refer to them. */
export function standardObjects(): StandardObject[] {
  const mandatory = [
    level('exempt', {
      type: 'Exempt',
      exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 },
    }),
    level('catch-all', CATCH_ALL_LEVEL),
    ...Object.entries(MANDATORY_SCHEMAS).map(([name, spec]) => {
      return standard('FlowSchema', name, spec, {});
    }),
  ];
  return [
    ...mandatory.map((object) => ({ object, isMandatory: true })),
    ...[...suggestedLevels(), ...suggestedSchemas()].map((object) => ({
      object,
      isMandatory: false,
    })),
  ];
}

function suggestedLevels(): JsonObject[] {
  return [
    queued('system', 30, 33, 64, 6),
    queued('node-high', 40, 25, 64, 6),
    queued('leader-election', 10, 0, 16, 4),
    queued('workload-high', 40, 50, 128, 6),
    queued('workload-low', 100, 90, 128, 6),
    queued('global-default', 20, 50, 128, 6),
  ];
}

function suggestedSchemas(): JsonObject[] {
  const leases = namespaced(['*'], 'coordination.k8s.io', 'leases');
  const nodes = {
    ...namespaced(['*'], '', 'nodes', 'nodes/status'),
    clusterScope: true,
  };
  const probes = { verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] };
  const election = namespaced(['get', 'create', 'update'], 'coordination.k8s.io', 'leases');
  return [
    schema('probes', 'exempt', 2, '', { subjects: ANYBODY, nonResourceRules: [probes] }),
    schema('system-leader-election', 'leader-election', 100, 'ByUser', {
      subjects: [...users(CONTROLLERS, SCHEDULER), SYSTEM_ACCOUNTS],
      resourceRules: [election],
    }),
    schema('system-node-high', 'node-high', 400, 'ByUser', {
      subjects: NODES,
      resourceRules: [nodes, leases],
    }),
    schema('system-nodes', 'system', 500, 'ByUser', { subjects: NODES, ...WHOLE }),
    schema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', {
      subjects: users(CONTROLLERS),
      ...WHOLE,
    }),
    schema('kube-scheduler', 'workload-high', 800, 'ByNamespace', {
      subjects: users(SCHEDULER),
      ...WHOLE,
    }),
    schema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', {
      subjects: [SYSTEM_ACCOUNTS],
      ...WHOLE,
    }),
    schema('service-accounts', 'workload-low', 9000, 'ByUser', {
      subjects: groups('system:serviceaccounts'),
      ...WHOLE,
    }),
    schema('global-default', 'global-default', 9900, 'ByUser', { subjects: ANYBODY, ...WHOLE }),
  ];
}

/** Printers of leases, access control, certificates, scheduling, flow control and devices. */
import type { JsonObject } from '../json/json-value.ts';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { ageText, humanDuration, sinceText } from './printing-age.ts';
import {
  columnsOf,
  conditionOf,
  isBeingDeleted,
  nameOf,
  shortList,
  type Printer,
} from './printing-columns.ts';

const leasePrinter: Printer = {
  columns: columnsOf('Name, Holder, Age'),
  row: (o, nowMs) => ({
    cells: [nameOf(o), stringAt(o, 'spec', 'holderIdentity'), ageText(o, nowMs)],
  }),
};

const leaseCandidatePrinter: Printer = {
  columns: columnsOf('Name, LeaseName, BinaryVersion, EmulationVersion, Age'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      stringAt(o, 'spec', 'leaseName'),
      stringAt(o, 'spec', 'binaryVersion'),
      stringAt(o, 'spec', 'emulationVersion'),
      ageText(o, nowMs),
    ],
  }),
};

const bindingPrinter: Printer = {
  columns: columnsOf('Name, Role, Age, +Users, +Groups, +ServiceAccounts'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      `${stringAt(o, 'roleRef', 'kind')}/${stringAt(o, 'roleRef', 'name')}`,
      ageText(o, nowMs),
      subjects(o, 'User'),
      subjects(o, 'Group'),
      subjects(o, 'ServiceAccount'),
    ],
  }),
};

function subjects(binding: JsonObject, kind: string): string {
  const found = listAt(binding, 'subjects').filter((one) => stringAt(one, 'kind') === kind);
  const isAccount = kind === 'ServiceAccount';
  return found
    .map((one) => (isAccount ? `${stringAt(one, 'namespace')}/` : '') + stringAt(one, 'name'))
    .join(', ');
}

const signingRequestPrinter: Printer = {
  columns: columnsOf('Name, Age, SignerName, Requestor, RequestedDuration, Condition'),
  row(o, nowMs) {
    const seconds = valueAt(o, 'spec', 'expirationSeconds');
    return {
      cells: [
        nameOf(o),
        ageText(o, nowMs),
        stringAt(o, 'spec', 'signerName') || '<none>',
        stringAt(o, 'spec', 'username'),
        typeof seconds === 'number' ? humanDuration(seconds * 1000) : '<none>',
        signingState(o),
      ],
    };
  },
};

function signingState(request: JsonObject): string {
  const has = (type: string): boolean => conditionOf(request, type) !== undefined;
  let state = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
  if (has('Failed')) state += ',Failed';
  return stringAt(request, 'status', 'certificate') === '' ? state : `${state},Issued`;
}

const podCertificatePrinter: Printer = {
  columns: columnsOf('Name, PodName, ServiceAccountName, NodeName, SignerName, State'),
  row(o) {
    let state = 'Pending';
    for (const condition of listAt(o, 'status', 'conditions')) {
      const type = stringAt(condition, 'type');
      if (type === 'Issued' || type === 'Denied' || type === 'Failed') state = type;
    }
    const fields = ['podName', 'serviceAccountName', 'nodeName', 'signerName'];
    return { cells: [nameOf(o), ...fields.map((field) => stringAt(o, 'spec', field)), state] };
  },
};

const podGroupPrinter: Printer = {
  columns: columnsOf('Name, Policy, Workload, Status, Age'),
  row(o, nowMs) {
    const spec = objectAt(o, 'spec');
    const policy = objectAt(spec, 'schedulingPolicy', 'gang') === undefined ? 'Basic' : 'Gang';
    const workload = stringAt(spec, 'podGroupTemplateRef', 'workload', 'workloadName');
    const conditions = listAt(o, 'status', 'conditions');
    const find = (type: string) => conditions.find((one) => stringAt(one, 'type') === type);
    const scheduled = find('PodGroupScheduled');
    const disrupted = find('DisruptionTarget');
    let status = 'Pending';
    if (scheduled !== undefined) {
      status = stringAt(scheduled, 'status') === 'True' ? 'Scheduled' : 'Unschedulable';
    }
    if (disrupted !== undefined) status = stringAt(disrupted, 'reason');
    return { cells: [nameOf(o), policy, workload || '<none>', status, ageText(o, nowMs)] };
  },
};

const priorityClassPrinter: Printer = {
  columns: columnsOf('Name, Value integer, Global-Default boolean, Age, PreemptionPolicy'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      numberAt(o, 'value'),
      valueAt(o, 'globalDefault') === true,
      ageText(o, nowMs),
      stringAt(o, 'preemptionPolicy'),
    ],
  }),
};

const flowSchemaPrinter: Printer = {
  columns: columnsOf(
    'Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL',
  ),
  // in the order in which they are asked
  rank: (o) => numberAt(o, 'spec', 'matchingPrecedence'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      stringAt(o, 'spec', 'priorityLevelConfiguration', 'name'),
      numberAt(o, 'spec', 'matchingPrecedence'),
      stringAt(o, 'spec', 'distinguisherMethod', 'type') || '<none>',
      ageText(o, nowMs),
      stringAt(conditionOf(o, 'Dangling'), 'status') || '?',
    ],
  }),
};

const priorityLevelPrinter: Printer = {
  columns: columnsOf(
    'Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age',
  ),
  row(o, nowMs) {
    const limited = objectAt(o, 'spec', 'limited');
    const queuing = objectAt(limited, 'limitResponse', 'queuing');
    const number = (from: JsonObject | undefined, field: string): number | string =>
      from === undefined ? '<none>' : numberAt(from, field);
    return {
      cells: [
        nameOf(o),
        stringAt(o, 'spec', 'type'),
        number(limited, 'nominalConcurrencyShares'),
        number(queuing, 'queues'),
        number(queuing, 'handSize'),
        number(queuing, 'queueLengthLimit'),
        ageText(o, nowMs),
      ],
    };
  },
};

const storageVersionPrinter: Printer = {
  columns: columnsOf('Name, CommonEncodingVersion, StorageVersions, Age'),
  row(o, nowMs) {
    const versions = listAt(o, 'status', 'storageVersions').map(
      (one) => `${stringAt(one, 'apiServerID')}=${stringAt(one, 'encodingVersion')}`,
    );
    return {
      cells: [
        nameOf(o),
        stringAt(o, 'status', 'commonEncodingVersion') || '<unset>',
        shortList(versions, 3, '<unset>'),
        ageText(o, nowMs),
      ],
    };
  },
};

const claimPrinter: Printer = {
  columns: columnsOf('Name, State, Age'),
  row(o, nowMs) {
    const states: string[] = [];
    if (isBeingDeleted(o)) states.push('deleted');
    if (objectAt(o, 'status', 'allocation') !== undefined) {
      states.push('allocated');
      if (listAt(o, 'status', 'reservedFor').length > 0) states.push('reserved');
    } else if (!isBeingDeleted(o)) {
      states.push('pending');
    }
    return { cells: [nameOf(o), states.join(','), ageText(o, nowMs)] };
  },
};

const taintRulePrinter: Printer = {
  columns: columnsOf('Name, Key, Value, Effect, TimeAdded, Age'),
  row(o, nowMs) {
    const taint = objectAt(o, 'spec', 'taint');
    const added = stringAt(taint, 'timeAdded');
    return {
      cells: [
        nameOf(o),
        stringAt(taint, 'key'),
        stringAt(taint, 'value'),
        stringAt(taint, 'effect'),
        added === '' ? '' : sinceText(added, nowMs),
        ageText(o, nowMs),
      ],
    };
  },
};

const nameAndAge: Printer = {
  columns: columnsOf('Name, Age'),
  row: (o, nowMs) => ({ cells: [nameOf(o), ageText(o, nowMs)] }),
};

export const CLUSTER_PRINTERS: readonly (readonly [string, Printer])[] = [
  ['coordination.k8s.io/Lease', leasePrinter],
  ['coordination.k8s.io/LeaseCandidate', leaseCandidatePrinter],
  ['rbac.authorization.k8s.io/RoleBinding', bindingPrinter],
  ['rbac.authorization.k8s.io/ClusterRoleBinding', bindingPrinter],
  ['certificates.k8s.io/CertificateSigningRequest', signingRequestPrinter],
  ['certificates.k8s.io/PodCertificateRequest', podCertificatePrinter],
  [
    'certificates.k8s.io/ClusterTrustBundle',
    {
      columns: columnsOf('Name, SignerName'),
      row: (o) => ({ cells: [nameOf(o), stringAt(o, 'spec', 'signerName') || '<none>'] }),
    },
  ],
  ['scheduling.k8s.io/PriorityClass', priorityClassPrinter],
  ['scheduling.k8s.io/PodGroup', podGroupPrinter],
  ['scheduling.k8s.io/Workload', nameAndAge],
  [
    'node.k8s.io/RuntimeClass',
    {
      columns: columnsOf('Name, Handler, Age'),
      row: (o, nowMs) => ({ cells: [nameOf(o), stringAt(o, 'handler'), ageText(o, nowMs)] }),
    },
  ],
  ['flowcontrol.apiserver.k8s.io/FlowSchema', flowSchemaPrinter],
  ['flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration', priorityLevelPrinter],
  ['internal.apiserver.k8s.io/StorageVersion', storageVersionPrinter],
  ['resource.k8s.io/DeviceClass', nameAndAge],
  ['resource.k8s.io/ResourceClaimTemplate', nameAndAge],
  ['resource.k8s.io/ResourceClaim', claimPrinter],
  ['resource.k8s.io/DeviceTaintRule', taintRulePrinter],
  [
    'resource.k8s.io/ResourceSlice',
    {
      columns: columnsOf('Name, Node, Driver, Pool, Age'),
      row: (o, nowMs) => ({
        cells: [
          nameOf(o),
          stringAt(o, 'spec', 'nodeName'),
          stringAt(o, 'spec', 'driver'),
          stringAt(o, 'spec', 'pool', 'name'),
          ageText(o, nowMs),
        ],
      }),
    },
  ],
];

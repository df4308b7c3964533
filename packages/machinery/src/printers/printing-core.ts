/** Printers of the core group, except pods and what belongs to storage and network. */
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { ageText, sinceText } from './printing-age.ts';
import { nodeDigest } from './printing-digest.ts';
import {
  columnsOf,
  conditionOf,
  containerCells,
  labelsText,
  nameOf,
  type Printer,
} from './printing-columns.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';

const nodePrinter: Printer = {
  digest: nodeDigest,
  columns: columnsOf(
    'Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, ' +
      '+Kernel-Version, +Container-Runtime',
  ),
  row(node, nowMs) {
    const info = objectAt(node, 'status', 'nodeInfo');
    return {
      cells: [
        nameOf(node),
        nodeStatus(node),
        nodeRoles(node),
        ageText(node, nowMs),
        stringAt(info, 'kubeletVersion'),
        nodeAddress(node, 'InternalIP'),
        nodeAddress(node, 'ExternalIP'),
        stringAt(info, 'osImage') || '<unknown>',
        kernel(info),
        stringAt(info, 'containerRuntimeVersion') || '<unknown>',
      ],
    };
  },
};

function nodeStatus(node: JsonObject): string {
  const ready = conditionOf(node, 'Ready');
  const isReady = stringAt(ready, 'status') === 'True';
  const status = ready === undefined ? 'Unknown' : isReady ? 'Ready' : 'NotReady';
  return valueAt(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status;
}

function nodeRoles(node: JsonObject): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(objectAt(node, 'metadata', 'labels') ?? {})) {
    if (key.startsWith(ROLE_PREFIX)) roles.add(key.slice(ROLE_PREFIX.length));
    else if (key === 'kubernetes.io/role' && typeof value === 'string') roles.add(value);
  }
  roles.delete('');
  return [...roles].sort().join(',') || '<none>';
}

function nodeAddress(node: JsonObject, type: string): string {
  const found = listAt(node, 'status', 'addresses').find((one) => stringAt(one, 'type') === type);
  return found === undefined ? '<none>' : stringAt(found, 'address');
}

/** Since 1.36 the architecture stands behind the kernel's version. */
function kernel(info: JsonObject | undefined): string {
  const version = stringAt(info, 'kernelVersion') || '<unknown>';
  const architecture = stringAt(info, 'architecture');
  return architecture === '' ? version : `${version} (${architecture})`;
}

const eventPrinter: Printer = {
  columns: columnsOf(
    'Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, ' +
      '+Count, +Name',
  ),
  row(event, nowMs) {
    const first = firstTime(event, 'firstTimestamp', 'deprecatedFirstTimestamp', 'eventTime');
    const last = firstTime(event, 'lastTimestamp', 'deprecatedLastTimestamp') || first;
    const series = objectAt(event, 'series');
    const regarding = objectAt(event, 'involvedObject') ?? objectAt(event, 'regarding');
    const count = numberAt(event, 'count') || numberAt(event, 'deprecatedCount') || 1;
    const kind = stringAt(regarding, 'kind').toLowerCase();
    const target = stringAt(regarding, 'name');
    const seen = series === undefined ? last : stringAt(series, 'lastObservedTime');
    return {
      cells: [
        sinceText(seen, nowMs),
        stringAt(event, 'type'),
        stringAt(event, 'reason'),
        target === '' ? kind : `${kind}/${target}`,
        stringAt(regarding, 'fieldPath'),
        eventSource(event),
        (stringAt(event, 'message') || stringAt(event, 'note')).trim(),
        sinceText(first, nowMs),
        series === undefined ? count : numberAt(series, 'count'),
        nameOf(event),
      ],
    };
  },
};

function firstTime(event: JsonObject, ...fields: string[]): string {
  return fields.map((field) => stringAt(event, field)).find((text) => text !== '') ?? '';
}

function eventSource(event: JsonObject): string {
  const source = objectAt(event, 'source') ?? objectAt(event, 'deprecatedSource');
  const component =
    stringAt(source, 'component') ||
    stringAt(event, 'reportingComponent') ||
    stringAt(event, 'reportingController');
  const instance = stringAt(source, 'host') || stringAt(event, 'reportingInstance');
  return instance === '' ? component : `${component}, ${instance}`;
}

function size(object: JsonValue | undefined, ...path: string[]): number {
  return Object.keys(objectAt(object, ...path) ?? {}).length;
}

const quotaPrinter: Printer = {
  columns: columnsOf('Name, Request, Limit, Age'),
  row(quota, nowMs) {
    const requests: string[] = [];
    const limits: string[] = [];
    for (const resource of Object.keys(objectAt(quota, 'status', 'hard') ?? {}).sort()) {
      const used = quantityText(quota, 'used', resource);
      const cell = `${resource}: ${used}/${quantityText(quota, 'hard', resource)}`;
      (resource.startsWith('limits.') ? limits : requests).push(cell);
    }
    const cells = [nameOf(quota), requests.join(', '), limits.join(', '), ageText(quota, nowMs)];
    return { cells };
  },
};

function quantityText(quota: JsonObject, which: 'used' | 'hard', resource: string): string {
  const value = valueAt(quota, 'status', which, resource);
  return typeof value === 'string' ? value : String(typeof value === 'number' ? value : 0);
}

const componentPrinter: Printer = {
  columns: columnsOf('Name, Status, Message, Error'),
  row(component) {
    const healthy = listAt(component, 'conditions').find(
      (one) => stringAt(one, 'type') === 'Healthy',
    );
    const isHealthy = stringAt(healthy, 'status') === 'True';
    const status = healthy === undefined ? 'Unknown' : isHealthy ? 'Healthy' : 'Unhealthy';
    const texts = [stringAt(healthy, 'message'), stringAt(healthy, 'error')];
    return { cells: [nameOf(component), status, ...texts] };
  },
};

export const CORE_PRINTERS: readonly (readonly [string, Printer])[] = [
  ['/Node', nodePrinter],
  ['/Event', eventPrinter],
  ['events.k8s.io/Event', eventPrinter],
  [
    '/Namespace',
    {
      columns: columnsOf('Name, Status, Age'),
      row: (o, nowMs) => ({
        cells: [nameOf(o), stringAt(o, 'status', 'phase'), ageText(o, nowMs)],
      }),
    },
  ],
  [
    '/ConfigMap',
    {
      columns: columnsOf('Name, Data, Age'),
      row: (o, nowMs) => ({
        cells: [nameOf(o), size(o, 'data') + size(o, 'binaryData'), ageText(o, nowMs)],
      }),
    },
  ],
  [
    '/Secret',
    {
      columns: columnsOf('Name, Type, Data, Age'),
      row: (o, nowMs) => ({
        cells: [nameOf(o), stringAt(o, 'type'), size(o, 'data'), ageText(o, nowMs)],
      }),
    },
  ],
  [
    '/ServiceAccount',
    {
      columns: columnsOf('Name, Age'),
      row: (o, nowMs) => ({ cells: [nameOf(o), ageText(o, nowMs)] }),
    },
  ],
  [
    '/PodTemplate',
    {
      columns: columnsOf('Name, Containers, Images, Pod Labels'),
      row: (o) => ({
        cells: [
          nameOf(o),
          ...containerCells(objectAt(o, 'template')),
          labelsText(objectAt(o, 'template', 'metadata', 'labels')),
        ],
      }),
    },
  ],
  ['/ResourceQuota', quotaPrinter],
  ['/ComponentStatus', componentPrinter],
];

/** Printers of what makes pods: workloads, and what scales or protects them. */
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { ageText, humanDuration, sinceText } from './printing-age.ts';
import {
  columnsOf,
  containerCells,
  isBeingDeleted,
  isConditionTrue,
  labelsText,
  nameOf,
  type Printer,
} from './printing-columns.ts';
import { formatLabelSelector, labelSelectorOf, selectorText } from '../selectors/selectors.ts';

const TEMPLATE_COLUMNS = '+Containers, +Images, +Selector';

function templateCells(object: JsonObject): string[] {
  return containerCells(objectAt(object, 'spec', 'template'));
}

/** `spec.replicas` is defaulted when stored; an object without it counts as 0. */
function readyOfDesired(object: JsonObject): string {
  return `${numberAt(object, 'status', 'readyReplicas')}/${numberAt(object, 'spec', 'replicas')}`;
}

const deploymentPrinter: Printer = {
  columns: columnsOf(`Name, Ready, Up-to-date, Available, Age, ${TEMPLATE_COLUMNS}`),
  row(o, nowMs) {
    const selector = labelSelectorOf(valueAt(o, 'spec', 'selector'));
    return {
      cells: [
        nameOf(o),
        readyOfDesired(o),
        numberAt(o, 'status', 'updatedReplicas'),
        numberAt(o, 'status', 'availableReplicas'),
        ageText(o, nowMs),
        ...templateCells(o),
        'error' in selector ? '<invalid>' : selectorText(selector.value),
      ],
    };
  },
};

function replicasPrinter(selector: (object: JsonObject) => string): Printer {
  return {
    columns: columnsOf(
      `Name, Desired integer, Current integer, Ready integer, Age, ${TEMPLATE_COLUMNS}`,
    ),
    row: (o, nowMs) => ({
      cells: [
        nameOf(o),
        numberAt(o, 'spec', 'replicas'),
        numberAt(o, 'status', 'replicas'),
        numberAt(o, 'status', 'readyReplicas'),
        ageText(o, nowMs),
        ...templateCells(o),
        selector(o),
      ],
    }),
  };
}

const statefulSetPrinter: Printer = {
  columns: columnsOf('Name, Ready, Age, +Containers, +Images'),
  row: (o, nowMs) => ({
    cells: [nameOf(o), readyOfDesired(o), ageText(o, nowMs), ...templateCells(o)],
  }),
};

const daemonSetPrinter: Printer = {
  columns: columnsOf(
    'Name, Desired integer, Current integer, Ready integer, Up-to-date integer, ' +
      `Available integer, Node Selector, Age, ${TEMPLATE_COLUMNS}`,
  ),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      numberAt(o, 'status', 'desiredNumberScheduled'),
      numberAt(o, 'status', 'currentNumberScheduled'),
      numberAt(o, 'status', 'numberReady'),
      numberAt(o, 'status', 'updatedNumberScheduled'),
      numberAt(o, 'status', 'numberAvailable'),
      labelsText(objectAt(o, 'spec', 'template', 'spec', 'nodeSelector')),
      ageText(o, nowMs),
      ...templateCells(o),
      formatLabelSelector(valueAt(o, 'spec', 'selector')),
    ],
  }),
};

const jobPrinter: Printer = {
  columns: columnsOf(`Name, Status, Completions, Duration, Age, ${TEMPLATE_COLUMNS}`),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      jobStatus(o),
      jobCompletions(o),
      jobDuration(o, nowMs),
      ageText(o, nowMs),
      ...templateCells(o),
      formatLabelSelector(valueAt(o, 'spec', 'selector')),
    ],
  }),
};

function jobStatus(job: JsonObject): string {
  if (isConditionTrue(job, 'Complete')) return 'Complete';
  if (isConditionTrue(job, 'Failed')) return 'Failed';
  if (isBeingDeleted(job)) return 'Terminating';
  if (isConditionTrue(job, 'Suspended')) return 'Suspended';
  if (isConditionTrue(job, 'FailureTarget')) return 'FailureTarget';
  return isConditionTrue(job, 'SuccessCriteriaMet') ? 'SuccessCriteriaMet' : 'Running';
}

function jobCompletions(job: JsonObject): string {
  const succeeded = numberAt(job, 'status', 'succeeded');
  const wanted = valueAt(job, 'spec', 'completions');
  if (typeof wanted === 'number') return `${succeeded}/${wanted}`;
  const parallelism = numberAt(job, 'spec', 'parallelism');
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration(job: JsonObject, nowMs: number): string {
  const startMs = Date.parse(stringAt(job, 'status', 'startTime'));
  if (Number.isNaN(startMs)) return '';
  const endMs = Date.parse(stringAt(job, 'status', 'completionTime'));
  return humanDuration((Number.isNaN(endMs) ? nowMs : endMs) - startMs);
}

const cronJobPrinter: Printer = {
  columns: columnsOf(
    'Name, Schedule, Timezone, Suspend boolean, Active integer, Last Schedule, ' +
      `Age, ${TEMPLATE_COLUMNS}`,
  ),
  row(o, nowMs) {
    const last = stringAt(o, 'status', 'lastScheduleTime');
    const suspend = valueAt(o, 'spec', 'suspend');
    const job = objectAt(o, 'spec', 'jobTemplate', 'spec');
    return {
      cells: [
        nameOf(o),
        stringAt(o, 'spec', 'schedule'),
        stringAt(o, 'spec', 'timeZone') || '<none>',
        typeof suspend === 'boolean' ? (suspend ? 'True' : 'False') : '<unset>',
        listAt(o, 'status', 'active').length,
        last === '' ? '<none>' : sinceText(last, nowMs),
        ageText(o, nowMs),
        ...containerCells(objectAt(job, 'template')),
        formatLabelSelector(valueAt(job, 'selector')),
      ],
    };
  },
};

function owner(object: JsonObject): string {
  const controller = listAt(object, 'metadata', 'ownerReferences').find(
    (one) => valueAt(one, 'controller') === true,
  );
  if (controller === undefined) return '<none>';
  const apiVersion = stringAt(controller, 'apiVersion');
  const group = apiVersion.includes('/') ? `.${apiVersion.split('/')[0] ?? ''}` : '';
  return (
    `${stringAt(controller, 'kind')}${group}`.toLowerCase() + `/${stringAt(controller, 'name')}`
  );
}

function intOrText(value: JsonValue | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : 'N/A';
}

const budgetPrinter: Printer = {
  columns: columnsOf('Name, Min Available, Max Unavailable, Allowed Disruptions integer, Age'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      intOrText(valueAt(o, 'spec', 'minAvailable')),
      intOrText(valueAt(o, 'spec', 'maxUnavailable')),
      numberAt(o, 'status', 'disruptionsAllowed'),
      ageText(o, nowMs),
    ],
  }),
};

const METRICS_SHOWN_MAX = 2;

const autoscalerPrinter: Printer = {
  columns: columnsOf('Name, Reference, Targets, MinPods, MaxPods, Replicas, Age'),
  row(o, nowMs) {
    const target = objectAt(o, 'spec', 'scaleTargetRef');
    const min = valueAt(o, 'spec', 'minReplicas');
    return {
      cells: [
        nameOf(o),
        `${stringAt(target, 'kind')}/${stringAt(target, 'name')}`,
        metricsText(o),
        typeof min === 'number' ? String(min) : '<unset>',
        numberAt(o, 'spec', 'maxReplicas'),
        numberAt(o, 'status', 'currentReplicas'),
        ageText(o, nowMs),
      ],
    };
  },
};

function metricsText(autoscaler: JsonObject): string {
  const current = listAt(autoscaler, 'status', 'currentMetrics');
  const texts = listAt(autoscaler, 'spec', 'metrics').map((metric, i) =>
    metricText(metric, current[i]),
  );
  if (texts.length === 0) return v1Metrics(autoscaler);
  const shown = texts.slice(0, METRICS_SHOWN_MAX).join(', ');
  const more = texts.length - METRICS_SHOWN_MAX;
  return more > 0 ? `${shown} + ${more} more...` : shown;
}

/** autoscaling/v1 has one metric, in fields of its own. */
function v1Metrics(autoscaler: JsonObject): string {
  const target = valueAt(autoscaler, 'spec', 'targetCPUUtilizationPercentage');
  if (typeof target !== 'number') return '<none>';
  const current = valueAt(autoscaler, 'status', 'currentCPUUtilizationPercentage');
  return `cpu: ${typeof current === 'number' ? `${current}%` : '<unknown>'}/${target}%`;
}

const METRIC_FIELDS: ReadonlyMap<string, string> = new Map([
  ['External', 'external'],
  ['Pods', 'pods'],
  ['Object', 'object'],
  ['Resource', 'resource'],
  ['ContainerResource', 'containerResource'],
]);

function metricText(metric: JsonValue, status: JsonValue | undefined): string {
  const field = METRIC_FIELDS.get(stringAt(metric, 'type'));
  if (field === undefined) return '<unknown type>';
  const target = objectAt(metric, field, 'target');
  const current = objectAt(status, field, 'current');
  const average = quantity(target, 'averageValue');
  const isResource = field === 'resource' || field === 'containerResource';
  const prefix = isResource ? `${stringAt(metric, field, 'name')}: ` : '';
  if (average !== undefined || field === 'pods') {
    const suffix = field === 'external' || field === 'object' ? ' (avg)' : '';
    const now = quantity(current, 'averageValue') ?? '<unknown>';
    return `${prefix}${now}/${average ?? '0'}${suffix}`;
  }
  if (!isResource) {
    return `${quantity(current, 'value') ?? '<unknown>'}/${quantity(target, 'value') ?? '0'}`;
  }
  const wanted = percent(target, '<auto>');
  return `${prefix}${percent(current, '<unknown>')}/${wanted}`;
}

function quantity(object: JsonObject | undefined, field: string): string | undefined {
  const value = valueAt(object, field);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function percent(object: JsonObject | undefined, absent: string): string {
  const value = valueAt(object, 'averageUtilization');
  return typeof value === 'number' ? `${value}%` : absent;
}

export const WORKLOAD_PRINTERS: readonly (readonly [string, Printer])[] = [
  ['apps/Deployment', deploymentPrinter],
  ['apps/ReplicaSet', replicasPrinter((o) => formatLabelSelector(valueAt(o, 'spec', 'selector')))],
  ['/ReplicationController', replicasPrinter((o) => labelsText(objectAt(o, 'spec', 'selector')))],
  ['apps/StatefulSet', statefulSetPrinter],
  ['apps/DaemonSet', daemonSetPrinter],
  ['batch/Job', jobPrinter],
  ['batch/CronJob', cronJobPrinter],
  [
    'apps/ControllerRevision',
    {
      columns: columnsOf('Name, Controller, Revision, Age'),
      row: (o, nowMs) => ({
        cells: [nameOf(o), owner(o), numberAt(o, 'revision'), ageText(o, nowMs)],
      }),
    },
  ],
  ['policy/PodDisruptionBudget', budgetPrinter],
  ['autoscaling/HorizontalPodAutoscaler', autoscalerPrinter],
  [
    'autoscaling/Scale',
    {
      columns: columnsOf('Name, Desired integer, Available integer, Age').map((column) =>
        column.name === 'Name' ? { ...column, format: '' } : column,
      ),
      row: (o, nowMs) => ({
        cells: [
          nameOf(o),
          numberAt(o, 'spec', 'replicas'),
          numberAt(o, 'status', 'replicas'),
          ageText(o, nowMs),
        ],
      }),
    },
  ],
];

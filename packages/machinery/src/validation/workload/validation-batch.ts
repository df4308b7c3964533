/** Jobs and cron jobs. */

import { ownMember } from '@megaplane/base/members';
import {
  invalidValue,
  notSupported,
  printed,
  required,
  typedText,
} from '../../meta/fielderrors.ts';
import { goForm, selectorForm, sortedMap } from '../../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { dnsLabelErrors } from '../../meta/names.ts';
import { checkPodTemplate } from '../pod/validation-pods.ts';
import { cronFault } from '../../meta/cron-fields.ts';
import {
  checkSelector,
  IMMUTABLE,
  immutable,
  isSame,
  nonNegative,
  oneOf,
  type Findings,
} from '../field/validation-rules.ts';
import {
  checkFailurePolicy,
  checkManager,
  checkReplacement,
  checkSuccessPolicy,
} from './validation-job-policies.ts';
import { updateJobStatus } from './validation-job-status.ts';
import { selectorMatches } from './validation-workloads.ts';
import type { RuleTable } from '../field/rule-table.ts';

const CRON_NAME_MAX = 52;
const INDEXED_PARALLELISM_MAX = 100000;
const COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
];
const FROZEN = [
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
];
const FROZEN_TYPES: Readonly<Record<string, string>> = {
  podFailurePolicy: 'batch.v1.PodFailurePolicy',
  successPolicy: 'batch.v1.SuccessPolicy',
};

export const BATCH_RULES: RuleTable = {
  'jobs.batch': {
    create: checkJob,
    change: changeJob,
    subresources: { status: updateJobStatus },
  },
  'cronjobs.batch': { create: checkCronJob },
};

function checkJob(found: Findings, job: JsonObject): void {
  const spec = objectAt(job, 'spec') ?? {};
  const selector = objectAt(spec, 'selector');
  if (selector !== undefined && spec['manualSelector'] !== true) checkGenerated(found, job);
  checkOwnSpec(found, job);
  checkHostNames(found, job);
}

/** The spec of a Job, not that of a template of Jobs, whose selector comes later. */
function checkOwnSpec(found: Findings, job: JsonObject): void {
  const spec = objectAt(job, 'spec') ?? {};
  const selector = objectAt(spec, 'selector');
  checkJobSpec(found, 'spec', spec);
  if (selector === undefined) found.push(required('spec.selector'));
  else checkSelector(found, 'spec.selector', selector);
  const labels = objectAt(spec, 'template', 'metadata', 'labels');
  if (selector !== undefined && mayMatch(selector, labels ?? {})) return;
  const text = '`selector` does not match template `labels`';
  const value = labels === undefined ? printed('null') : sortedMap(labels);
  found.push(invalidValue('spec.template.metadata.labels', value, text));
}

/** Of a selector that cannot be read nobody says that it does not match. */
function mayMatch(selector: JsonObject, labels: JsonObject): boolean {
  const faults: Findings = [];
  checkSelector(faults, 'spec.selector', selector);
  return faults.length > 0 || selectorMatches(selector, labels);
}

/** A job without a selector of its own owns pods by its uid, and its name; nobody else says so. */
function checkGenerated(found: Findings, job: JsonObject): void {
  const uid = stringAt(job, 'metadata', 'uid');
  const name = stringAt(job, 'metadata', 'name');
  const labels = objectAt(job, 'spec', 'template', 'metadata', 'labels') ?? {};
  const expected: JsonObject = {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  };
  for (const [key, value] of Object.entries(expected)) {
    if (ownMember(labels, key) === value) continue;
    const path = `spec.template.metadata.labels[${key}]`;
    const text = `must be '${stringAt(value)}'`;
    if (ownMember(labels, key) === undefined) found.push(required(path, text));
    else found.push(invalidValue(path, sortedMap(labels), text));
  }
  const selector = objectAt(job, 'spec', 'selector') ?? {};
  if (mayMatch(selector, expected)) return;
  const text = '`selector` not auto-generated';
  found.push(invalidValue('spec.selector', selectorForm(selector), text));
}

/** Pods of an indexed job are named after it, and their names are host names. */
function checkHostNames(found: Findings, job: JsonObject): void {
  const completions = numberAt(job, 'spec', 'completions');
  if (stringAt(job, 'spec', 'completionMode') !== 'Indexed' || completions <= 0) return;
  const name = stringAt(job, 'metadata', 'name');
  const longest = `${name}-${completions - 1}`;
  if (dnsLabelErrors(longest).length === 0) return;
  const text = `will not able to create pod with invalid DNS label: ${longest}`;
  found.push(invalidValue('metadata.name', name, text));
}

function checkJobSpec(found: Findings, path: string, spec: JsonObject): void {
  for (const field of COUNTS) nonNegative(found, `${path}.${field}`, spec[field]);
  if (spec['maxFailedIndexes'] !== undefined && spec['backoffLimitPerIndex'] === undefined) {
    const text = 'when maxFailedIndexes is specified';
    found.push(required(`${path}.backoffLimitPerIndex`, text));
  }
  checkManager(found, `${path}.managedBy`, spec['managedBy']);
  checkCompletion(found, path, spec);
  checkFailurePolicy(found, `${path}.podFailurePolicy`, spec);
  checkSuccessPolicy(found, `${path}.successPolicy`, spec);
  checkReplacement(found, `${path}.podReplacementPolicy`, spec);
  checkPodTemplate(found, `${path}.template`, objectAt(spec, 'template') ?? {});
  const at = `${path}.template.spec.restartPolicy`;
  const policy = stringAt(spec, 'template', 'spec', 'restartPolicy');
  if (policy === 'Always' || policy === '') {
    found.push(required(at, 'valid values: "OnFailure", "Never"'));
  } else if (policy !== 'OnFailure' && policy !== 'Never') {
    found.push(notSupported(at, policy, ['OnFailure', 'Never']));
  } else if (spec['podFailurePolicy'] !== undefined && policy !== 'Never') {
    const text = 'only "Never" is supported when podFailurePolicy is specified';
    found.push(invalidValue(at, policy, text));
  }
}

const COMPLETIONS_SOFT_LIMIT = 100000;
const HIGH_COMPLETIONS_MAX = 10000;

function checkCompletion(found: Findings, path: string, spec: JsonObject): void {
  const mode = spec['completionMode'];
  const modes = ['NonIndexed', 'Indexed'];
  if (mode !== undefined && (typeof mode !== 'string' || !modes.includes(mode))) {
    found.push(notSupported(`${path}.completionMode`, mode, modes));
  }
  if (mode === 'Indexed') {
    checkIndexed(found, path, spec);
    return;
  }
  if (mode !== undefined && mode !== 'NonIndexed') return;
  for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes']) {
    const value = spec[field];
    if (value === undefined) continue;
    found.push(invalidValue(`${path}.${field}`, value, 'requires indexed completion mode'));
  }
}

function checkIndexed(found: Findings, path: string, spec: JsonObject): void {
  const { completions, parallelism, maxFailedIndexes: failures } = spec;
  if (completions === undefined) {
    found.push(required(`${path}.completions`, 'when completion mode is Indexed'));
  }
  const limit = INDEXED_PARALLELISM_MAX;
  if (Number(parallelism) > limit) {
    const text = `must be less than or equal to ${limit} when completion mode is Indexed`;
    found.push(invalidValue(`${path}.parallelism`, parallelism, text));
  }
  const at = `${path}.maxFailedIndexes`;
  if (Number(failures) > Number(completions)) {
    found.push(invalidValue(at, failures, 'must be less than or equal to completions'));
  }
  if (Number(failures) > limit) {
    found.push(invalidValue(at, failures, `must be less than or equal to ${limit}`));
  }
  const isHigh = Number(completions) > COMPLETIONS_SOFT_LIMIT;
  if (!isHigh || spec['backoffLimitPerIndex'] === undefined) return;
  if (failures === undefined) {
    const text = `must be specified when completions is above ${COMPLETIONS_SOFT_LIMIT}`;
    found.push(required(at, text));
  }
  const text =
    `must be less than or equal to ${HIGH_COMPLETIONS_MAX} when completions are above ` +
    `${COMPLETIONS_SOFT_LIMIT} and used with backoff limit per index`;
  for (const field of ['parallelism', 'maxFailedIndexes']) {
    if (Number(spec[field]) <= HIGH_COMPLETIONS_MAX || spec[field] === undefined) continue;
    found.push(invalidValue(`${path}.${field}`, spec[field], text));
  }
}

/** The template of a job that is suspended may still be directed elsewhere. */
const DIRECTABLE = ['nodeSelector', 'tolerations', 'schedulingGates'];

function changeJob(found: Findings, next: JsonObject, previous: JsonObject): void {
  const spec = objectAt(next, 'spec') ?? {};
  const stored = objectAt(previous, 'spec') ?? {};
  // upstream looks at the spec as at that of a new job, and again as at that of a changed one
  checkOwnSpec(found, next);
  checkCompletionsChange(found, spec, stored);
  const [after, before] = [spec['selector'], stored['selector']];
  immutable(found, 'spec.selector', selectorForm(after), selectorForm(before));
  if (isHeld(stored, objectAt(previous, 'status'))) checkHeldTemplate(found, spec, stored);
  else {
    const { template } = spec;
    immutable(found, 'spec.template', template, stored['template'], 'core.v1.PodTemplateSpec');
  }
  for (const field of FROZEN) {
    immutable(found, `spec.${field}`, spec[field], stored[field], FROZEN_TYPES[field]);
  }
}

function checkCompletionsChange(found: Findings, spec: JsonObject, stored: JsonObject): void {
  const path = 'spec.completions';
  if (spec['completionMode'] !== 'Indexed') {
    immutable(found, path, spec['completions'], stored['completions']);
  } else if (
    spec['completions'] !== stored['completions'] &&
    spec['completions'] !== undefined &&
    spec['completions'] !== spec['parallelism']
  ) {
    const text = 'can only be modified in tandem with spec.parallelism';
    found.push(invalidValue(path, spec['completions'], text));
  }
}

/** Suspended, and known to be: nothing of it runs any more. */
function isHeld(stored: JsonObject, status: JsonObject | undefined): boolean {
  const isSuspended = listAt(status, 'conditions').some(
    (one) => stringAt(one, 'type') === 'Suspended' && stringAt(one, 'status') === 'True',
  );
  return stored['suspend'] === true && isSuspended && numberAt(status, 'active') === 0;
}

/** Affinity with that to nodes as it was; none where nothing but that to nodes was added. */
function affinityBesideNodes(after: JsonObject, before: JsonObject): JsonObject | null {
  const { nodeAffinity: _nodes, ...others } = objectAt(after, 'affinity') ?? {};
  const stored = objectAt(before, 'affinity');
  if (stored === undefined) return Object.keys(others).length === 0 ? null : others;
  return { ...others, nodeAffinity: stored['nodeAffinity'] ?? null };
}

/** Where pods of a held job go may change, and what their containers ask for; nothing else. */
function checkHeldTemplate(found: Findings, spec: JsonObject, stored: JsonObject): void {
  const after = objectAt(spec, 'template', 'spec') ?? {};
  const before = objectAt(stored, 'template', 'spec') ?? {};
  const compared: JsonObject = { ...after };
  for (const field of DIRECTABLE) compared[field] = before[field] ?? null;
  compared['affinity'] = affinityBesideNodes(after, before);
  for (const field of ['containers', 'initContainers']) {
    const [next, old] = [listAt(after, field), listAt(before, field)];
    if (next.length !== old.length) continue;
    compared[field] = next.map((container, index) => {
      const same = objectAt(old[index]);
      if (!isObject(container) || same?.['name'] !== container['name']) return container;
      return { ...container, resources: same?.['resources'] ?? null };
    });
  }
  if (isSame(compared, before)) return;
  found.push(invalidValue('spec.template.spec', goForm('core.v1.PodSpec', after), IMMUTABLE));
}

function checkCronJob(found: Findings, cronJob: JsonObject): void {
  const spec = objectAt(cronJob, 'spec') ?? {};
  const schedule = stringAt(spec, 'schedule');
  if (schedule === '') found.push(required('spec.schedule'));
  else checkSchedule(found, schedule);
  nonNegative(found, 'spec.startingDeadlineSeconds', spec['startingDeadlineSeconds']);
  checkZone(found, 'spec.timeZone', spec['timeZone']);
  const policies = ['Allow', 'Forbid', 'Replace'];
  oneOf(found, 'spec.concurrencyPolicy', spec['concurrencyPolicy'], policies);
  checkJobTemplate(found, 'spec.jobTemplate.spec', objectAt(spec, 'jobTemplate', 'spec') ?? {});
  nonNegative(found, 'spec.successfulJobsHistoryLimit', spec['successfulJobsHistoryLimit']);
  nonNegative(found, 'spec.failedJobsHistoryLimit', spec['failedJobsHistoryLimit']);
  const name = stringAt(cronJob, 'metadata', 'name');
  if (name.length <= CRON_NAME_MAX) return;
  const text = `must be no more than ${CRON_NAME_MAX} characters`;
  found.push(invalidValue('metadata.name', name, text));
}

function checkZone(found: Findings, path: string, zone: JsonValue | undefined): void {
  if (typeof zone !== 'string') return;
  if (zone === '') {
    found.push(invalidValue(path, zone, 'timeZone must be nil or non-empty string'));
    return;
  }
  const unknown = invalidValue(path, typedText(zone), `unknown time zone ${zone}`);
  const isName = (part: string): boolean =>
    part !== '.' && part !== '..' && /^(?!-)[A-Za-z.\-_0-9+]{1,14}$/.test(part);
  // names of files of the IANA database, whose case counts
  if (!zone.split('/').every(isName) || /(^|\/)[a-z]/.test(zone.replace(/^local$/i, 'Local'))) {
    found.push(unknown);
    return;
  }
  if (zone.toLowerCase() === 'local') {
    const text =
      'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    found.push(invalidValue(path, zone, text));
  }
  if (zone !== 'Local' && !isZone(zone)) found.push(unknown);
}

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    return true;
  } catch {
    return false;
  }
}

/** Jobs of a template get their selector when they are made. */
function checkJobTemplate(found: Findings, path: string, spec: JsonObject): void {
  checkJobSpec(found, path, spec);
  const selector = objectAt(spec, 'selector');
  if (selector !== undefined) {
    const text = '`selector` will be auto-generated';
    found.push(invalidValue(`${path}.selector`, selectorForm(selector), text));
  }
  if (spec['manualSelector'] !== true) return;
  found.push(notSupported(`${path}.manualSelector`, true, ['nil', 'false']));
}

function checkSchedule(found: Findings, schedule: string): void {
  if (schedule.includes('TZ')) {
    const text = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
    found.push(invalidValue('spec.schedule', schedule, text));
    return;
  }
  const fault = cronFault(schedule);
  if (fault !== '') found.push(invalidValue('spec.schedule', schedule, fault));
}

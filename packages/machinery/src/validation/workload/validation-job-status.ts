/**
 * What is reported of Jobs, by whichever controller has them (upstream's checks of KEP 4368): how a
 * Job ends, what counts, and which indexes there are. A rule is asked only where something it
 * looks at has changed: a spec may have changed under a status that was right.
 */

import { ownMember } from '@megaplane/base/members';
import { duplicate, invalidValue, required, type FieldError } from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { countIndexes, intervalOf } from './validation-job-policies.ts';
import { isSame, nonNegative, type Findings } from '../field/validation-rules.ts';

/** What a report says, in the terms of the rules. */
interface Report {
  readonly status: JsonObject;
  readonly isTrue: (type: string) => boolean;
  readonly isComplete: boolean;
  readonly isFailed: boolean;
  readonly isFinished: boolean;
  readonly hasSucceeded: boolean;
  readonly isFailing: boolean;
}

function reportOf(job: JsonObject): Report {
  const status = objectAt(job, 'status') ?? {};
  const has = (type: string, value: string): boolean =>
    listAt(status, 'conditions').some(
      (one) => stringAt(one, 'type') === type && stringAt(one, 'status') === value,
    );
  const isTrue = (type: string): boolean => has(type, 'True');
  const [isComplete, isFailed] = [isTrue('Complete'), isTrue('Failed')];
  return {
    ...{ status, isTrue, isComplete, isFailed },
    isFinished: isComplete || isFailed,
    hasSucceeded: isTrue('SuccessCriteriaMet'),
    isFailing: isTrue('FailureTarget'),
  };
}

export function updateJobStatus(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [report, before] = [reportOf(next), reportOf(previous)];
  const spec = objectAt(next, 'spec') ?? {};
  for (const field of ['active', 'succeeded', 'failed', 'ready', 'terminating']) {
    nonNegative(found, `status.${field}`, report.status[field]);
  }
  checkUncounted(found, report.status);
  checkEnd(found, report, before);
  checkFinished(found, report, before, spec);
  checkIndexes(found, report.status, before.status, spec);
  checkCounts(found, report, before);
  checkSuccess(found, report, spec);
  checkKept(found, report, before, spec);
}

/** A refusal of conditions, which are not printed. */
function conditionFault(detail: string): FieldError {
  return { kind: 'invalid', field: 'status.conditions', body: `Invalid value: ${detail}` };
}

function checkUncounted(found: Findings, status: JsonObject): void {
  const seen = new Set<JsonValue>();
  for (const field of ['succeeded', 'failed']) {
    const uids = listAt(status, 'uncountedTerminatedPods', field);
    for (const [index, uid] of uids.entries()) {
      const path = `status.uncountedTerminatedPods.${field}[${index}]`;
      if (uid === '') found.push(invalidValue(path, uid, 'must not be empty'));
      else if (seen.has(uid)) found.push(duplicate(path, uid));
      else seen.add(uid);
    }
  }
}

/** A Job ends in one way, and says when, and why before that. */
function checkEnd(found: Findings, report: Report, before: Report): void {
  const { status, isComplete, isFailed } = report;
  const completed = stringAt(status, 'completionTime');
  const started = stringAt(status, 'startTime');
  const isCompletion = isComplete !== before.isComplete;
  const isFailure = isFailed !== before.isFailed;
  const isTimed = hasChanged('completionTime', report, before);
  const path = 'status.completionTime';
  if ((isCompletion || isFailure) && isComplete && isFailed) {
    found.push(conditionFault('cannot set Complete=True and Failed=true conditions'));
  }
  const isTurned = isCompletion || report.isFailing !== before.isFailing;
  if (isTurned && isComplete && report.isFailing) {
    found.push(conditionFault('cannot set Complete=True and FailureTarget=true conditions'));
  }
  if ((isCompletion || isTimed) && completed !== '' && !isComplete) {
    const text = 'cannot set completionTime when there is no Complete=True condition';
    found.push(invalidValue(path, completed, text));
  }
  if ((isCompletion || isTimed) && completed === '' && isComplete) {
    found.push(required(path, 'completionTime is required for Complete jobs'));
  }
  const isMoved = isTimed || hasChanged('startTime', report, before);
  if (isMoved && started !== '' && completed !== '' && completed < started) {
    found.push(invalidValue(path, completed, 'must be equal to or after `startTime`'));
  }
  const isRecounted = hasChanged('failedIndexes', report, before);
  if ((isFailure || isRecounted) && isFailed && !report.isFailing) {
    const text = 'cannot set Failed=True condition without the FailureTarget=true condition';
    found.push(conditionFault(text));
  }
  const isMet = isCompletion || report.hasSucceeded !== before.hasSucceeded;
  if (isMet && isComplete && !report.hasSucceeded) {
    const text = 'cannot set Complete=True condition without the SuccessCriteriaMet=true condition';
    found.push(conditionFault(text));
  }
}

function hasChanged(field: string, report: Report, before: Report): boolean {
  return (ownMember(report.status, field) ?? null) !== (ownMember(before.status, field) ?? null);
}

/** Nothing runs of what is finished, and nothing is left to count. */
function checkFinished(found: Findings, report: Report, before: Report, spec: JsonObject): void {
  const { status, isFinished } = report;
  if (!isFinished) return;
  const isEnd = !before.isFinished;
  const active = numberAt(status, 'active');
  if ((isEnd || active !== numberAt(before.status, 'active')) && active > 0) {
    found.push(invalidValue('status.active', active, 'active>0 is invalid for finished job'));
  }
  const isStarted = isEnd || hasChanged('startTime', report, before);
  const isEmpty = spec['suspend'] === true && spec['completions'] === 0;
  if (isStarted && !isEmpty && stringAt(status, 'startTime') === '') {
    found.push(required('status.startTime', 'startTime is required for finished job'));
  }
  const pods = objectAt(status, 'uncountedTerminatedPods');
  const isCounted = isEnd || !isSame(pods, before.status['uncountedTerminatedPods']);
  if (isCounted && listAt(pods, 'failed').length + listAt(pods, 'succeeded').length > 0) {
    const value = goForm('batch.v1.UncountedTerminatedPods', pods);
    const text = 'must be empty for finished job';
    found.push(invalidValue('status.uncountedTerminatedPods', value, text));
  }
}

function checkIndexes(
  found: Findings,
  status: JsonObject,
  before: JsonObject,
  spec: JsonObject,
): void {
  const { completions, backoffLimitPerIndex: limit } = spec;
  const completed = stringAt(status, 'completedIndexes');
  const failed = status['failedIndexes'];
  const isNewlyCompleted = completed !== stringAt(before, 'completedIndexes');
  const isNewlyFailed = (failed ?? null) !== (before['failedIndexes'] ?? null);
  const check = (field: string, indexes: string): void => {
    if (typeof completions !== 'number') return;
    const fault = countIndexes(indexes, completions);
    if (typeof fault !== 'string') return;
    found.push(invalidValue(`status.${field}`, indexes, `error parsing ${field}: ${fault}`));
  };
  const path = 'status.failedIndexes';
  if (isNewlyCompleted) check('completedIndexes', completed);
  const isFailed = typeof failed === 'string';
  if (isNewlyFailed && limit !== undefined && isFailed) check('failedIndexes', failed);
  if (isNewlyCompleted && completed !== '' && spec['completionMode'] !== 'Indexed') {
    const text = 'cannot set non-empty completedIndexes when non-indexed completion mode';
    found.push(invalidValue('status.completedIndexes', completed, text));
  }
  if (!isFailed) return;
  if (isNewlyFailed && limit === undefined) {
    const text = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
    found.push(invalidValue(path, failed, text));
  }
  if (!(isNewlyFailed || isNewlyCompleted) || typeof completions !== 'number') return;
  const shared = sharedIndex(completed, failed, completions);
  if (shared === null) return;
  const text = `failedIndexes and completedIndexes overlap at index: ${shared}`;
  found.push(invalidValue(path, failed, text));
}

/** The first index that is in both lists; intervals that are none are passed over. */
function sharedIndex(completed: string, failed: string, completions: number): number | null {
  const read = (text: string): [number, number][] =>
    text
      .split(',')
      .map((interval) => intervalOf(interval, completions))
      .filter((interval) => typeof interval !== 'string');
  if (completed === '' || failed === '') return null;
  const [ones, others] = [read(completed), read(failed)];
  let [at, otherAt] = [0, 0];
  for (;;) {
    const [one, other] = [ones[at], others[otherAt]];
    if (one === undefined || other === undefined) return null;
    if (one[0] <= other[1] && other[0] <= one[1]) return Math.max(one[0], other[0]);
    if (one[0] <= other[0]) at++;
    else otherAt++;
  }
}

function checkCounts(found: Findings, report: Report, before: Report): void {
  const { status, isFinished } = report;
  const terminating = numberAt(status, 'terminating');
  const isLeaving = isFinished !== before.isFinished || hasChanged('terminating', report, before);
  if (isLeaving && terminating > 0 && isFinished) {
    const text = 'terminating>0 is invalid for finished job';
    found.push(invalidValue('status.terminating', terminating, text));
  }
  const [ready, active] = [numberAt(status, 'ready'), numberAt(status, 'active')];
  const isCounted =
    hasChanged('ready', report, before) || active !== numberAt(before.status, 'active');
  if (isCounted && status['ready'] !== undefined && ready > active) {
    found.push(invalidValue('status.ready', ready, 'cannot set more ready pods than active'));
  }
}

function checkSuccess(found: Findings, report: Report, spec: JsonObject): void {
  const { hasSucceeded, isComplete } = report;
  const set = 'cannot set SuccessCriteriaMet=True and';
  if (hasSucceeded && report.isFailed) found.push(conditionFault(`${set} Failed=true conditions`));
  if (hasSucceeded && report.isFailing) {
    found.push(conditionFault(`${set} FailureTarget=true conditions`));
  }
  if (spec['successPolicy'] === undefined || hasSucceeded || !isComplete) return;
  const text = 'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True';
  found.push(conditionFault(text));
}

/** What is over stays over, and counts do not fall. */
function checkKept(found: Findings, report: Report, before: Report, spec: JsonObject): void {
  for (const type of ['Failed', 'Complete', 'FailureTarget']) {
    if (!before.isTrue(type) || report.isTrue(type)) continue;
    found.push(conditionFault(`cannot disable the terminal ${type}=True condition`));
  }
  // what is scaled with its completions may lose some that had succeeded
  const isElastic =
    spec['completionMode'] === 'Indexed' && spec['completions'] === spec['parallelism'];
  for (const field of isElastic ? ['failed'] : ['failed', 'succeeded']) {
    const count = numberAt(report.status, field);
    if (count >= numberAt(before.status, field)) continue;
    found.push(invalidValue(`status.${field}`, count, `cannot decrease the ${field} counter`));
  }
  const completed = stringAt(report.status, 'completionTime');
  const old = stringAt(before.status, 'completionTime');
  if (completed !== '' && old !== '' && completed !== old) {
    found.push(invalidValue('status.completionTime', completed, 'field is immutable'));
  }
  checkStart(found, report, before, spec);
  if (before.hasSucceeded && !report.hasSucceeded) {
    found.push(conditionFault('cannot disable the SuccessCriteriaMet=True condition'));
  }
  if (before.isComplete && !before.hasSucceeded && report.hasSucceeded) {
    const text = 'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions';
    found.push(conditionFault(text));
  }
}

/** A Job starts once, and again when it goes on after a pause. */
function checkStart(found: Findings, report: Report, before: Report, spec: JsonObject): void {
  const resumes = before.isTrue('Suspended') && isFalse(report.status, 'Suspended');
  if (resumes || spec['suspend'] === true || !hasChanged('startTime', report, before)) return;
  if (stringAt(before.status, 'startTime') === '') return;
  const text = 'field is immutable for unsuspended job once set';
  found.push(invalidValue('status.startTime', report.status['startTime'] ?? null, text));
}

function isFalse(status: JsonObject, type: string): boolean {
  return listAt(status, 'conditions').some(
    (one) => stringAt(one, 'type') === type && stringAt(one, 'status') === 'False',
  );
}

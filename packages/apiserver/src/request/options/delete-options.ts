/** DeleteOptions: from a body, from the query, or from an eviction. */
import { invalidValue, notSupported, type FieldError } from '@megaplane/machinery/fielderrors';
import { objectAt } from '@megaplane/machinery/json';
import { isNumber, type JsonValue, type JsonObject } from '@megaplane/machinery/json-value';
import { failed, invalid, success, type Result } from '@megaplane/machinery/status';
import { readOptionsBody } from '../../serializer/body.ts';
import type { Call } from '../call.ts';
import { dryRunErrors } from './write-options.ts';

/** DeleteOptions from the body, or from the query where there is no body. */
export function readDeleteOptions(call: Call): Result<DeleteOptions> {
  const hasBody = call.body.length > 0;
  const fields = hasBody ? readOptionsBody(call, 'DeleteOptions') : queryFields(call);
  if (!fields.ok) return fields;
  if (hasBody) call.record?.noteOptions(fields.value);
  return checkedDeleteOptions(fields.value);
}

/** What the fields say, or upstream's refusal of them. */
export function checkedDeleteOptions(fields: JsonObject): Result<DeleteOptions> {
  const errors = checkDelete(fields);
  if (errors.length > 0) {
    return failed(invalid({ group: 'meta.k8s.io', name: 'DeleteOptions' }, '', errors));
  }
  const preconditions = objectAt(fields, 'preconditions');
  const policy = fields['propagationPolicy'];
  return success({
    gracePeriodSeconds: numberOrNull(fields['gracePeriodSeconds']),
    uid: textOrNull(preconditions?.['uid']),
    resourceVersion: textOrNull(preconditions?.['resourceVersion']),
    orphanDependents: booleanOrNull(fields['orphanDependents']),
    propagationPolicy: (typeof policy === 'string'
      ? policy
      : '') as DeleteOptions['propagationPolicy'],
    dryRun: Array.isArray(fields['dryRun']) && fields['dryRun'].length > 0,
  });
}

/** The options as admission is told of them, but for `dryRun`, which each write has. */
export function shownOptions(options: DeleteOptions): JsonObject {
  const { gracePeriodSeconds, orphanDependents, propagationPolicy, uid, resourceVersion } = options;
  const shown: JsonObject = {};
  if (gracePeriodSeconds !== null) shown['gracePeriodSeconds'] = gracePeriodSeconds;
  if (uid !== null || resourceVersion !== null) {
    shown['preconditions'] = {
      ...(uid === null ? {} : { uid }),
      ...(resourceVersion === null ? {} : { resourceVersion }),
    };
  }
  if (orphanDependents !== null) shown['orphanDependents'] = orphanDependents;
  if (propagationPolicy !== '') shown['propagationPolicy'] = propagationPolicy;
  return shown;
}

/** Upstream's conversion from url.Values; `uid` and `resourceVersion` are preconditions. */
function queryFields(call: Call): Result<JsonObject> {
  const { query } = call;
  const options: JsonObject = {};
  const grace = query.integer('gracePeriodSeconds');
  if (!grace.ok) return grace;
  if (grace.value !== null) options['gracePeriodSeconds'] = grace.value;
  if (query.has('orphanDependents')) options['orphanDependents'] = query.flag('orphanDependents');
  if (query.has('propagationPolicy'))
    options['propagationPolicy'] = query.text('propagationPolicy');
  const dryRun = query.all('dryRun');
  if (dryRun.length > 0) options['dryRun'] = [...dryRun];
  const preconditions: JsonObject = {};
  for (const name of ['uid', 'resourceVersion']) {
    const value = query.text(name);
    if (value !== '') preconditions[name] = value;
  }
  if (Object.keys(preconditions).length > 0) options['preconditions'] = preconditions;
  return success(options);
}

function checkDelete(options: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const policy = options['propagationPolicy'];
  const hasPolicy = typeof policy === 'string';
  if (
    hasPolicy &&
    options['orphanDependents'] !== undefined &&
    options['orphanDependents'] !== null
  ) {
    const text = 'orphanDependents and deletionPropagation cannot be both set';
    errors.push(invalidValue('propagationPolicy', policy, text));
  }
  if (hasPolicy && !['Foreground', 'Background', 'Orphan'].includes(policy)) {
    const supported = ['Foreground', 'Background', 'Orphan', 'nil'];
    errors.push(notSupported('propagationPolicy', policy, supported));
  }
  const dryRun = options['dryRun'];
  if (Array.isArray(dryRun)) {
    errors.push(...dryRunErrors(dryRun.map((value) => (typeof value === 'string' ? value : ''))));
  }
  return errors;
}

function numberOrNull(value: JsonValue | undefined): number | bigint | null {
  return isNumber(value) ? value : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function booleanOrNull(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

/** DeleteOptions, checked. */
export interface DeleteOptions {
  readonly gracePeriodSeconds: Seconds | null;
  readonly uid: string | null;
  readonly resourceVersion: string | null;
  readonly orphanDependents: boolean | null;
  readonly propagationPolicy: '' | 'Orphan' | 'Background' | 'Foreground';
  readonly dryRun: boolean;
}

/** Of 64 bits, as the API has it. */
export type Seconds = number | bigint;

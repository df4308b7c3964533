/** Options of writes in the query: dryRun, fieldManager, fieldValidation, force; DeleteOptions. */
import {
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
  tooLong,
} from '@megaplane/machinery/fielderrors';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { failed, invalid, success, type Result } from '@megaplane/machinery/status';
import { mediaTypeOf, readBody } from './body.ts';
import type { Call } from './call.ts';
import type { DeleteOptions } from './deletion.ts';

const MANAGER_LENGTH_MAX = 128;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldManager: string;
  readonly fieldValidation: 'Ignore' | 'Warn' | 'Strict';
  readonly force: boolean;
}

/** Of a write that asks for nothing particular. */
const PLAIN_OPTIONS = { dryRun: false, fieldValidation: 'Warn', force: false } as const;

/** `kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`, which the refusal names. */
export function readWriteOptions(call: Call, kind: string): Result<WriteOptions> {
  const { query } = call;
  if (query.isEmpty && kind !== 'PatchOptions') {
    call.fieldManager = agentName(call);
    return success({ ...PLAIN_OPTIONS, fieldManager: call.fieldManager });
  }
  const errors: FieldError[] = [...dryRunErrors(query.all('dryRun'))];
  const manager = query.text('fieldManager');
  if (manager.length > MANAGER_LENGTH_MAX) {
    errors.push(tooLong('fieldManager', MANAGER_LENGTH_MAX));
  }
  for (const [index, letter] of Array.from(manager).entries()) {
    if (UNPRINTABLE.test(letter)) {
      const code = letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
      const text = `invalid character U+${code} (at position ${index})`;
      errors.push(invalidValue('fieldManager', manager, text));
      break;
    }
  }
  const validation = query.text('fieldValidation');
  if (validation !== '' && !['Ignore', 'Warn', 'Strict'].includes(validation)) {
    errors.push(notSupported('fieldValidation', validation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  const isApply = mediaTypeOf(call).startsWith('application/apply-patch');
  if (kind === 'PatchOptions' && isApply && manager === '') {
    errors.push(required('fieldManager', 'is required for apply patch'));
  }
  if (kind === 'PatchOptions' && query.has('force') && !isApply) {
    errors.push(forbiddenField('force', 'may not be specified for non-apply patch'));
  }
  if (errors.length > 0) {
    return failed(invalid({ group: 'meta.k8s.io', name: kind }, '', errors));
  }
  call.fieldManager = manager === '' ? agentName(call) : manager;
  return success({
    dryRun: query.all('dryRun').length > 0,
    fieldManager: call.fieldManager,
    fieldValidation: validation === '' ? 'Warn' : (validation as WriteOptions['fieldValidation']),
    force: query.flag('force'),
  });
}

function dryRunErrors(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === 'All')) return [];
  return [notSupported('dryRun', printed(JSON.stringify(values)), ['All'])];
}

function agentName(call: Call): string {
  return managerOfAgent(call.exchange.header('user-agent') ?? '');
}

/** The program's name before its version, without what cannot be printed, as far as it fits. */
export function managerOfAgent(userAgent: string): string {
  const name = userAgent.split('/')[0] ?? '';
  if (name.length <= MANAGER_LENGTH_MAX && /^[ -~]*$/.test(name)) return name;
  let text = '';
  let size = 0;
  for (const letter of name) {
    if (UNPRINTABLE.test(letter)) continue;
    size += Buffer.byteLength(letter);
    if (size > MANAGER_LENGTH_MAX) break;
    text += letter;
  }
  return text;
}

/** DeleteOptions from the body, or from the query where there is no body. */
export function readDeleteOptions(call: Call): Result<DeleteOptions> {
  const hasBody = call.body.length > 0;
  const fields = hasBody ? bodyFields(call) : queryFields(call);
  if (!fields.ok) return fields;
  const options = fields.value;
  const errors = checkDelete(options);
  if (errors.length > 0) {
    return failed(invalid({ group: 'meta.k8s.io', name: 'DeleteOptions' }, '', errors));
  }
  const preconditions = objectAt(options, 'preconditions');
  const policy = options['propagationPolicy'];
  return success({
    gracePeriodSeconds: numberOrNull(options['gracePeriodSeconds']),
    uid: textOrNull(preconditions?.['uid']),
    resourceVersion: textOrNull(preconditions?.['resourceVersion']),
    orphanDependents: booleanOrNull(options['orphanDependents']),
    propagationPolicy: (typeof policy === 'string'
      ? policy
      : '') as DeleteOptions['propagationPolicy'],
    dryRun: Array.isArray(options['dryRun']) && options['dryRun'].length > 0,
  });
}

function bodyFields(call: Call): Result<JsonObject> {
  const { group, version } = call.info;
  const own = group === '' ? version : `${group}/${version}`;
  const body = readBody(call, { apiVersion: 'v1', kind: 'DeleteOptions' }, false);
  if (body.ok) return success(body.value.object);
  // client-go names the group of the resource, older clients meta.k8s.io
  for (const apiVersion of [own, 'meta.k8s.io/v1', 'v1beta1', 'policy/v1']) {
    const other = readBody(call, { apiVersion, kind: 'DeleteOptions' }, false);
    if (other.ok) return success(other.value.object);
  }
  return body;
}

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

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function booleanOrNull(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

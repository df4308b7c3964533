/** Options of writes in the query: dryRun, fieldManager, fieldValidation, force. */
import { forbiddenField, notSupported, printed, required } from '@megaplane/machinery/fielderrors';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import { managerErrors } from '@megaplane/machinery/field-manager';
import { failed, invalid, success, type Result } from '@megaplane/machinery/status';
import { mediaTypeOf } from '../../serializer/body.ts';
import type { Call } from '../call.ts';
import { managerOfAgent } from '../agent-manager.ts';

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
  errors.push(...managerErrors(manager, 'fieldManager'));
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

/** `All` is the only way to run dry. */
export function dryRunErrors(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === 'All')) return [];
  return [notSupported('dryRun', printed(JSON.stringify(values)), ['All'])];
}

/** Of the agent that was asked about last: writes of one client come in rows. */
let lastAgent = '';
let lastManager = '';

function agentName(call: Call): string {
  const agent = call.exchange.header('user-agent') ?? '';
  if (agent !== lastAgent) {
    lastManager = managerOfAgent(agent);
    lastAgent = agent;
  }
  return lastManager;
}

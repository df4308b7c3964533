/** Parameters of policies: objects that a binding names or selects. */
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';
import { decodeRow } from '../../serializer/encoder.ts';
import { keyOf, rangeOf, type Served } from '../../storage/served.ts';
import { emptyRow } from '../../storage/storage.ts';
import type { Binding, Policy } from './policies.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';

/** Parameters of one binding; each is an evaluation of its own. */
const PARAMS_MAX = 1000;

const row = emptyRow();

export type Params =
  /** `null` stands for a policy without parameters, or a binding that names none. */
  | { readonly kind: 'found'; readonly all: readonly (JsonObject | null)[] }
  /** None, and the binding allows that. */
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly message: string };

const WITHOUT: Params = { kind: 'found', all: [null] };

function failed(message: string): Params {
  return { kind: 'failed', message };
}

/** Why a policy cannot be followed whatever its bindings say; '' where it can. */
export function policyFault({ paramKind }: Policy, { world }: Admitted): string {
  if (paramKind === null) return '';
  const { apiVersion, kind } = paramKind;
  if (world.kinds.findKind(apiVersion, kind) !== undefined) return '';
  const text = `${apiVersion}, Kind=${kind}`;
  return `failed to configure policy: failed to find resource referenced by paramKind: '${text}'`;
}

/** The parameters of a binding for this write, of a policy that can be followed. */
export function paramsOf({ paramKind }: Policy, { paramRef }: Binding, write: Admitted): Params {
  if (paramKind === null) return WITHOUT;
  const served = write.world.kinds.findKind(paramKind.apiVersion, paramKind.kind);
  if (served === undefined) return failed('');
  if (paramRef === null) return WITHOUT;
  const namespace = namespaceOf(served, paramRef, write);
  if (namespace.fault !== '') return failed(`failed to configure binding: ${namespace.fault}`);
  const found = find(served, paramRef, namespace.name, write);
  if (typeof found === 'string') return failed(`failed to configure binding: ${found}`);
  if (found.length > 0) return { kind: 'found', all: found };
  if (stringAt(paramRef, 'parameterNotFoundAction') !== 'Deny') return { kind: 'none' };
  return failed(
    'failed to configure binding: no params found for policy binding with `Deny` ' +
      'parameterNotFoundAction',
  );
}

function namespaceOf(
  { resource }: Served,
  paramRef: JsonObject,
  write: Admitted,
): { readonly name: string; readonly fault: string } {
  const named = stringAt(paramRef, 'namespace');
  if (!resource.namespaced) {
    const text = 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`';
    return { name: '', fault: named === '' ? '' : text };
  }
  const name = named === '' && write.served.resource.namespaced ? write.call.info.namespace : named;
  const text =
    'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources';
  return { name, fault: name === '' ? text : '' };
}

function find(
  served: Served,
  paramRef: JsonObject,
  namespace: string,
  { world }: Admitted,
): JsonObject[] | string {
  const { storage } = world.at(served);
  const name = stringAt(paramRef, 'name');
  const selector = objectAt(paramRef, 'selector');
  if (name !== '' && selector !== undefined) {
    return 'paramRef.name and paramRef.selector are mutually exclusive';
  }
  if (name !== '') {
    if (!storage.get(keyOf(served, namespace, name), row)) return [];
    return [decodeRow(served, row, row.modRevision)];
  }
  const parsed = labelSelectorOf(selector ?? {});
  if ('error' in parsed) return parsed.error;
  const { start, end } = rangeOf(served, namespace);
  const found: JsonObject[] = [];
  storage.page(start, end, 0, (one) => {
    const object = decodeRow(served, one, one.modRevision);
    if (matchesLabels(parsed.value, objectAt(object, 'metadata', 'labels'))) found.push(object);
    return found.length < PARAMS_MAX;
  });
  return found;
}

/** A write as webhooks and expressions are told of it. */
import { authorizerValue, type Ask } from '@megaplane/machinery/cel/authorizer-library';
import { fromJson } from '@megaplane/machinery/cel/json-values';
import type { CelValue } from '@megaplane/machinery/cel/values';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { wireForm } from '@megaplane/machinery/empty-collections';
import { fromStored, toStored } from '../../storage/conversion.ts';
import { convertedForm } from './equivalent-forms.ts';
import { serviceAccountIdentity } from '../../request/identity.ts';
import type { Served } from '../../storage/served.ts';
import { writtenName } from '../../registry/rest/refusal.ts';
import { readNamespace } from '../../lister/stored-namespaces.ts';
import type { Admitted, Operation } from '../../registry/rest/admitted.ts';
import { shownObject } from '../../managedfields/shown-fields.ts';

/** What is written; a Scale or a Binding is of one version whatever it is written to. */
type Written = Pick<Admitted, 'served' | 'subresource'>;

function isSame({ served, subresource }: Written, to: Served): boolean {
  if (served === to) return true;
  const own = served.resource.subresources.get(subresource);
  return own !== undefined && own.kind !== served.resource.kind;
}

/** The object in another version of the same resource, as the API shows it. */
export function shownAs(object: JsonObject | null, from: Written, to: Served): JsonObject | null {
  if (object === null) return null;
  const converted = convertedForm(object, to);
  if (converted !== undefined) return shownObject(wireForm(converted));
  const shown = shownObject(wireForm(object));
  const { resource } = from.served;
  return isSame(from, to) ? shown : fromStored(toStored(shown, resource), to.resource);
}

/** The object of `shownAs` in its own version again. */
export function shownBack(object: JsonObject, from: Written, to: Served): JsonObject {
  const { resource } = from.served;
  return isSame(from, to) ? object : fromStored(toStored(object, to.resource), resource);
}

function kindOf({ resource }: Served, subresource: string): JsonObject {
  const own = subresource === '' ? undefined : resource.subresources.get(subresource);
  const { group, version, kind } = own ?? resource;
  return { group, version, kind };
}

function resourceOf({ resource }: Served): JsonObject {
  return { group: resource.group, version: resource.version, resource: resource.resource };
}

const OPTIONS_KIND: Readonly<Record<Operation, string>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
  CONNECT: '',
};

/** A patch comes as the creation or the update that it turned out to be. */
function optionsOf({ call, isDryRun, operation, deleteOptions }: Admitted): JsonObject | null {
  if (operation === 'CONNECT') return null;
  const options: JsonObject = {
    kind: OPTIONS_KIND[operation],
    apiVersion: 'meta.k8s.io/v1',
    ...deleteOptions,
  };
  if (isDryRun) options['dryRun'] = ['All'];
  if (operation === 'DELETE') return options;
  for (const field of ['fieldManager', 'fieldValidation']) {
    const text = call.query.text(field);
    if (text !== '') options[field] = text;
  }
  return options;
}

/** When somebody is told of a write: what the server adds to a new object comes in between. */
export type Phase = 'mutating' | 'validating';

/** The object of a write, in the version of `target`. */
export function shownObjectOf(write: Admitted, target: Served, phase: Phase): JsonObject | null {
  const { object, previous, operation } = write;
  const shown = shownAs(object, write, target);
  if (shown === null) return null;
  const metadata = objectAt(shown, 'metadata') ?? {};
  if (operation === 'CREATE' && phase === 'mutating' && write.subresource === '') {
    const { uid: _, creationTimestamp: __, generation: ___, ...sent } = metadata;
    return { ...shown, metadata: sent };
  }
  if (operation === 'UPDATE' && phase === 'mutating' && write.sent !== undefined) {
    return { ...shown, metadata: asSent(metadata, objectAt(write.sent, 'metadata') ?? {}) };
  }
  const resourceVersion = stringAt(previous ?? {}, 'metadata', 'resourceVersion');
  if (operation !== 'UPDATE' || resourceVersion === '' || 'resourceVersion' in metadata) {
    return shown;
  }
  return { ...shown, metadata: { ...metadata, resourceVersion } };
}

/** What the server knows by itself, and puts into an update after it was told of. */
const FILLED_IN: readonly string[] = [
  ...['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp'],
  'deletionGracePeriodSeconds',
];

function asSent(metadata: JsonObject, sent: JsonObject): JsonObject {
  const shown = { ...metadata };
  for (const field of FILLED_IN) {
    const value = sent[field];
    if (value === undefined || value === null) delete shown[field];
    else shown[field] = value;
  }
  return shown;
}

/** What the object is called where it is told of: '' for each of many, and before it is named. */
function nameOf({ object, call, operation }: Admitted): string {
  if (operation === 'DELETE' || object === null) return call.info.name;
  return stringAt(object, 'metadata', 'name') || call.info.name;
}

/** `request` of an AdmissionReview without the objects; `target` is the version to show. */
export function requestOf(write: Admitted, target: Served, uid: string): JsonObject {
  const { served, subresource, call, operation, isDryRun } = write;
  const { user, uid: userUid, groups, extra } = call.identity;
  const named = subresource === '' ? {} : { subResource: subresource };
  const asked = subresource === '' ? {} : { requestSubResource: subresource };
  const name = nameOf(write);
  // a new namespace is in itself
  const isNamespace = served.resource.storage.name === 'namespaces' && operation === 'CREATE';
  const namespace = call.info.namespace || (isNamespace ? name : '');
  return {
    uid,
    kind: kindOf(target, subresource),
    resource: resourceOf(target),
    ...named,
    requestKind: kindOf(served, subresource),
    requestResource: resourceOf(served),
    ...asked,
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: {
      username: user,
      ...(userUid === '' ? {} : { uid: userUid }),
      groups: [...groups],
      ...(Object.keys(extra).length === 0
        ? {}
        : {
            extra: Object.fromEntries(Object.entries(extra).map(([key, all]) => [key, [...all]])),
          }),
    },
    dryRun: isDryRun,
    options: optionsOf(write),
  };
}

/** Values of the variables that all expressions of admission have. */
export function bindingsOf(
  write: Admitted,
  target: Served,
  phase: Phase,
): Record<string, CelValue | undefined> {
  const { previous, served, call, world, subresource } = write;
  const request = requestOf(write, target, '');
  delete request['uid'];
  const ask = askerOf(write);
  const { namespace } = call.info;
  const { resource } = served;
  const isNamespaced = resource.namespaced && namespace !== '';
  const about = {
    group: resource.group,
    resource: resource.resource,
    subresource,
    namespace,
    name: writtenName(write),
  };
  return {
    object: jsonValue(shownObjectOf(write, target, phase)),
    oldObject: jsonValue(shownAs(previous, write, target)),
    request: fromJson(request),
    namespaceObject: isNamespaced ? namespaceValue(readNamespace(world, namespace)) : null,
    authorizer: authorizerValue(ask),
    'authorizer.requestResource': authorizerValue(ask, about),
  };
}

function jsonValue(object: JsonObject | null): CelValue {
  return object === null ? null : fromJson(object);
}

/** What expressions see of the metadata of a namespace. */
const NAMESPACE_METADATA: readonly string[] = [
  ...['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'generation'],
  ...['creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'],
  ...['labels', 'annotations', 'finalizers'],
];

function namespaceValue(namespace: JsonObject | null): CelValue {
  if (namespace === null) return null;
  const own = objectAt(namespace, 'metadata') ?? {};
  const metadata: JsonObject = {};
  for (const field of NAMESPACE_METADATA) {
    const value = own[field];
    if (value !== undefined) metadata[field] = value;
  }
  return fromJson({
    metadata,
    spec: objectAt(namespace, 'spec') ?? {},
    status: objectAt(namespace, 'status') ?? {},
  });
}

/** Answers `authorizer.check` by the server's own authorizers. */
function askerOf({ services, call }: Admitted): Ask {
  return (question) => {
    const { serviceAccount, path } = question;
    const identity =
      serviceAccount === null
        ? call.identity
        : serviceAccountIdentity(serviceAccount.namespace, serviceAccount.name, '');
    const decision = services.authorize(identity, {
      verb: question.verb,
      isResource: path === null,
      path: path ?? '',
      group: question.group,
      version: '*',
      resource: question.resource,
      subresource: question.subresource,
      namespace: question.namespace,
      name: question.name,
    });
    return {
      allowed: decision.allowed,
      reason: decision.reason,
      error: '',
    };
  };
}

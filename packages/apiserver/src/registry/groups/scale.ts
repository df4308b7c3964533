/** The scale subresource: the replicas of a workload as an autoscaling/v1 Scale. */
import { ownMember } from '@megaplane/base/members';
import { updateWarnings } from '@megaplane/machinery/warnings/warnings';
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { equals, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { decodedText, parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { applyPatch, parsePatch, patchKindOf } from '@megaplane/machinery/patch';
import { parseIncludeObject, printerOf } from '@megaplane/machinery/printing';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import {
  badRequest,
  conflict,
  failed,
  internalError,
  invalid,
  notFound,
  storageUidConflict,
  success,
  unclassified,
  unsupportedPatchType,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { scaleFault } from '@megaplane/machinery/custom/scale-paths';
import { customPrinterOf } from '@megaplane/machinery/custom/columns';
import { parseSimplePath, readPath, selectableText } from '@megaplane/machinery/custom/simple-path';
import { trackApply, trackUpdate } from '@megaplane/machinery/apply/field-manager';
import { unpackManaged } from '@megaplane/machinery/apply/field-templates';
import type { Managed } from '@megaplane/machinery/apply/managed-fields';
import { mediaTypeOf } from '../../serializer/body.ts';
import type { Call } from '../../request/call.ts';
import { APPLY_TYPE, readConfig } from '../../handlers/applying.ts';
import { scaleScope } from '../../fieldmanager/field-scope.ts';
import { parentOwners, scaleOwners } from '../../fieldmanager/scale-owners.ts';
import { checkName, sentUid } from '../rest/object-meta.ts';
import { documentOf, resultForm } from '../../handlers/patching.ts';
import { formKept, keptForm } from '../../apiextensions/schema/custom-objects.ts';
import { JSON_TYPE } from '../../request/negotiation.ts';
import { sendMade } from '../../serializer/representation.ts';
import { changeFaults, faultyKind } from '../rest/schema-gate.ts';
import { keyOf, keyText, type Served } from '../../storage/served.ts';
import { defineSubresource, type SubresourceContext } from '../../handlers/subresource.ts';
import { objectTable } from '../../serializer/table-encoder.ts';
import type { WriteOutcome } from '../../storage/storage.ts';
import { readStored, refusedWrite } from '../../handlers/writing.ts';
import type { Admitted } from '../rest/admitted.ts';
import { setManaged, shownObject } from '../../managedfields/shown-fields.ts';

const TRIES_MAX = 5;
const SCALED = [
  'deployments.apps',
  'replicasets.apps',
  'statefulsets.apps',
  'replicationcontrollers',
];
const KIND = { group: 'autoscaling', name: 'Scale' } as const;
const RESOURCE = { apiVersion: 'autoscaling/v1', kind: 'Scale' } as const;

/** What custom resources are registered as, whichever they are. */
export const CUSTOM_SCALE = '*/scale';

/** Where a workload has what its scale shows: steps from the root of the object. */
interface ScaleShape {
  readonly replicas: readonly string[];
  readonly seen: readonly string[];
  readonly selector: (object: JsonObject) => string;
}

const PLAIN: ScaleShape = {
  replicas: ['spec', 'replicas'],
  seen: ['status', 'replicas'],
  selector: selectorText,
};

/** What upstream shows where a custom resource has no replicas yet: a write has to change it. */
const NEVER_SET = -(2 ** 31);

/** A Scale that a client wants, and who owns its replicas then. */
interface Wanted {
  readonly scale: JsonObject;
  readonly owners: Managed;
}

/** Makes the new Scale from the present one and its owners. */
type NextScale = (scale: JsonObject, owners: Managed) => Result<Wanted>;

/** Registers the scale of every workload that has one. */
export function defineScales(): void {
  for (const path of [...SCALED.map((name) => `${name}/scale`), CUSTOM_SCALE]) {
    defineSubresource(path, 'get', getScale);
    defineSubresource(path, 'update', (context) => {
      change(context, (scale, owners) => success(updated(context, scale, context.body, owners)), 1);
    });
    defineSubresource(path, 'patch', (context) => {
      const isApply = mediaTypeOf(context.call) === APPLY_TYPE;
      change(context, isApply ? applied(context) : patched(context), 1);
    });
  }
}

function getScale(context: SubresourceContext): void {
  const { world, call, served } = context;
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, call.info.name));
    return;
  }
  const { custom } = served;
  const shape = shapeOf(served);
  if (isUnreadable(context, stored.object)) return;
  if (custom !== null && readPath(stored.object, shape.replicas) === undefined) {
    const path = JSON.stringify(custom.facts.scale?.specReplicasPath ?? '');
    call.fail(internalError(`the spec replicas field ${path} does not exist`));
    return;
  }
  sendScale(call, served, scaleOf(stored.object, stored.revision, shape));
}

/** Answers where something else stands at the paths of a custom resource's scale. */
function isUnreadable({ call, served }: SubresourceContext, object: JsonObject): boolean {
  const paths = served.custom?.facts.scale ?? null;
  const fault = paths === null ? null : scaleFault(object, paths);
  if (fault !== null) call.fail(unclassified(fault));
  return fault !== null;
}

/** Answers with a Scale; custom resources show it in the columns of their own kind. */
/** What scales of custom resources are printed by, whatever their kinds say. */
const CUSTOM_PRINTER = customPrinterOf([
  { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas' },
  { name: 'Available', type: 'integer', jsonPath: '.status.replicas' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
]);

function sendScale(call: Call, { custom }: Served, scale: JsonObject): void {
  if (call.media.transform !== 'table') {
    sendMade(call, 200, scale);
    return;
  }
  const include = parseIncludeObject(call.query.text('includeObject'));
  if (!include.ok) {
    call.fail(include.status);
    return;
  }
  const printer = custom === null ? printerOf(KIND.group, KIND.name) : CUSTOM_PRINTER;
  const version = call.media.version === 'v1' ? 'v1' : 'v1beta1';
  const table = objectTable(scale, printer, version, include.value, call.nowMs);
  if (call.media.encoding === 'yaml') call.sendObject(200, parseJson(table) as JsonObject);
  else call.send(200, JSON_TYPE, table);
}

function shapeOf({ custom }: Served): ScaleShape {
  const paths = custom?.facts.scale ?? null;
  if (paths === null) return PLAIN;
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = paths;
  const selector = parseSimplePath(labelSelectorPath);
  return {
    replicas: parseSimplePath(specReplicasPath) ?? PLAIN.replicas,
    seen: parseSimplePath(statusReplicasPath) ?? PLAIN.seen,
    selector: (object) => (selector === null ? '' : selectableText(object, selector)),
  };
}

function patched(context: SubresourceContext): NextScale {
  const { call, options } = context;
  const kind = patchKindOf(mediaTypeOf(call));
  const isStrict = options.fieldValidation !== 'Ignore';
  const text = decodedText(call.body);
  const patch = kind === undefined ? null : parsePatch(kind, text, isStrict);
  const type = findTypeOfKind(RESOURCE.apiVersion, RESOURCE.kind);
  return (scale, owners) => {
    if (patch === null) return failed(unsupportedPatchType());
    if (!patch.ok) return patch;
    const next = applyPatch(patch.value, scale, type);
    if (!next.ok) return next;
    const document = (): JsonObject => documentOf(patch.value, ownedScale(scale, owners), type);
    const result = { patch: patch.value, patched: next.value, isChecked: !isStrict, document };
    const target = { custom: null, resource: RESOURCE };
    const form = resultForm(target, result, options, (warning) => call.warn(warning));
    if (!form.ok) return form;
    const renamed = checkName(form.value, call.info.name);
    if (renamed !== null) return failed(renamed);
    return success(updated(context, scale, form.value, owners));
  };
}

/** A Scale with its owners, which refusals show. */
function ownedScale(scale: JsonObject, owners: Managed): JsonObject {
  const whole: JsonObject = { ...scale, metadata: { ...objectAt(scale, 'metadata') } };
  setManaged(whole, owners);
  return shownObject(whole);
}

function updated(
  { call }: SubresourceContext,
  live: JsonObject,
  scale: JsonObject,
  owners: Managed,
): Wanted {
  const next = trackUpdate(scaleScope(call, 'Update'), live, scale, owners);
  return { scale, owners: next };
}

/** Upstream has no way from a Scale to a custom kind's version, and applies none that changes. */
function unscalable(which: string, who: string): string {
  const { apiVersion } = RESOURCE;
  const what = `${which} object (${who}; ${apiVersion}, Kind=Scale)`;
  const why = `request to convert CR to an invalid group/version: ${apiVersion}`;
  return `failed to convert ${what} to proper version: ${why}`;
}

function applied(context: SubresourceContext): NextScale {
  const config = readConfig(context.call);
  return (scale, owners) => {
    if (!config.ok) return config;
    const isCustom = context.served.custom !== null;
    const { force } = context.options;
    if (isCustom && owners.owners.size === 0) {
      const fault = unscalable('live', '/');
      return failed(unclassified(`failed to create manager for existing fields: ${fault}`));
    }
    const scope = scaleScope(context.call, 'Apply');
    const result = trackApply(scope, scale, config.value, owners, 'Scale', force);
    if (!result.ok) return result;
    const { object, managed } = result.value;
    if (isCustom && object !== null) {
      const { name, namespace } = context.call.info;
      return failed(unclassified(unscalable('new', `${namespace}/${name}`)));
    }
    return success({ scale: object ?? scale, owners: managed });
  };
}

function change(context: SubresourceContext, nextScale: NextScale, attempt: number): void {
  const { call, served, world } = context;
  const { name } = call.info;
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const { object, revision } = stored;
  if (isUnreadable(context, object)) return;
  const parent = unpackManaged(objectAt(object, 'metadata')?.['managedFields']);
  const shape = shapeOf(served);
  const live = scaleOf(object, revision, shape);
  // what was not set before has to be set now
  const isUnset = served.custom !== null && readPath(object, shape.replicas) === undefined;
  if (isUnset) live['spec'] = { replicas: NEVER_SET };
  const next = nextScale(live, scaleOwners(parent, shape.replicas));
  if (!next.ok) {
    call.fail(next.status);
    return;
  }
  const { scale } = next.value;
  if (isUnset && objectAt(scale, 'spec')?.['replicas'] === NEVER_SET) {
    const path = JSON.stringify(served.custom?.facts.scale?.specReplicasPath ?? '');
    call.fail(badRequest(`the spec replicas field ${path} cannot be empty`));
    return;
  }
  const uid = sentUid(scale);
  const ownUid = sentUid(object);
  if (uid !== '' && uid !== ownUid) {
    const key = keyText(served, call.info.namespace, name);
    call.fail(storageUidConflict(served.plural, name, key, uid, ownUid));
    return;
  }
  const wanted = stringAt(scale, 'metadata', 'resourceVersion');
  if (wanted !== '' && wanted !== String(revision)) {
    call.fail(conflict(served.plural, name));
    return;
  }
  const write: Admitted = {
    ...context,
    operation: 'UPDATE',
    subresource: 'scale',
    object: scale,
    previous: isUnset ? live : scaleOf(object, revision, shape),
  };
  context.admission.mutate(write, (refusal) => {
    if (refusal !== null) {
      call.fail(refusal);
      return;
    }
    const retry = (): boolean => {
      if (wanted !== '' || attempt >= TRIES_MAX) return false;
      change(context, nextScale, attempt + 1);
      return true;
    };
    judgeScale(context, write, stored, next.value, retry);
  });
}

/** What a scale is made of. */
interface Scaled {
  readonly object: JsonObject;
  readonly revision: number;
}

/** Who only looks sees the Scale of the object as it is to be, and not what was sent. */
function judgeScale(
  context: SubresourceContext,
  write: Admitted,
  stored: Scaled,
  wanted: Wanted,
  retry: () => boolean,
): void {
  const { call, served, admission } = context;
  const { object, revision } = stored;
  const shape = shapeOf(served);
  const replicas = numberAt(wanted.scale, 'spec', 'replicas');
  const scaled = withReplicas(object, replicas, shape.replicas);
  const refusal = refusalOf(served, call.info.name, scaled, object, replicas);
  if (refusal !== null) {
    call.fail(refusal);
    return;
  }
  // the object is what changes, and what is odd about it is told
  const oddities =
    served.custom === null ? updateWarnings(served.resource, scaled, object, '') : [];
  for (const text of oddities) call.warn(text);
  admission.validate({ ...write, object: scaleOf(scaled, revision, shape) }, (denial) => {
    if (denial === null) storeScale(context, stored, wanted, scaled, retry);
    else call.fail(denial);
  });
}

function storeScale(
  context: SubresourceContext,
  { object, revision }: Scaled,
  { scale, owners }: Wanted,
  scaled: JsonObject,
  retry: () => boolean,
): void {
  const { call, served, world, isDryRun } = context;
  const { namespace, name } = call.info;
  const parent = unpackManaged(objectAt(object, 'metadata')?.['managedFields']);
  const shape = shapeOf(served);
  const replicas = numberAt(scale, 'spec', 'replicas');
  const { apiVersion } = served.resource;
  setManaged(scaled, parentOwners(parent, owners, apiVersion, shape.replicas));
  const isSame = replicas === readPath(object, shape.replicas);
  if (isDryRun || (isSame && equals(scaled, object))) {
    sendScale(call, served, scaleOf(keptOf(served, scaled), revision, shape));
    return;
  }
  const key = keyOf(served, namespace, name);
  const value = encodeCanonical(keptForm(served, scaled));
  world.storage.put(
    key,
    value,
    revision,
    call.timed('etcd', (outcome: WriteOutcome) => {
      if (outcome.kind === 'done') {
        sendScale(call, served, scaleOf(keptOf(served, scaled), outcome.revision, shape));
      } else if (outcome.kind !== 'conflict' || !retry()) {
        call.fail(refusedWrite(served, name, outcome));
      }
    }),
  );
}

/** What reads will find: replicas that the schema does not know are not kept. */
function keptOf({ custom }: Served, scaled: JsonObject): JsonObject {
  return custom === null ? scaled : formKept(custom, structuredClone(scaled));
}

/** Custom resources are judged by their schema, which knows where their replicas are. */
function refusalOf(
  served: Served,
  name: string,
  scaled: JsonObject,
  object: JsonObject,
  replicas: number,
): Status | null {
  if (served.custom !== null) {
    const warn = (): void => undefined;
    const faults = changeFaults(served, scaled, object, 'scale', warn);
    return faults.length === 0 ? null : invalid(faultyKind(served, scaled), name, faults);
  }
  if (replicas >= 0) return null;
  const text = 'must be greater than or equal to 0';
  return invalid(KIND, name, [invalidValue('spec.replicas', replicas, text)]);
}

function withReplicas(object: JsonObject, replicas: number, steps: readonly string[]): JsonObject {
  const metadata = { ...objectAt(object, 'metadata') };
  const isChanged = replicas !== readPath(object, steps);
  const generation = numberAt(metadata, 'generation');
  if (isChanged && generation > 0) metadata['generation'] = generation + 1;
  return { ...withValueAt(object, steps, replicas), metadata };
}

function withValueAt(object: JsonObject, steps: readonly string[], value: number): JsonObject {
  const [step = '', ...rest] = steps;
  if (rest.length === 0) return { ...object, [step]: value };
  const inner = ownMember(object, step);
  return { ...object, [step]: withValueAt(isObject(inner) ? inner : {}, rest, value) };
}

/** The Scale of a workload at a revision. */
function scaleOf(object: JsonObject, revision: number, shape: ScaleShape): JsonObject {
  const metadata = objectAt(object, 'metadata') ?? {};
  const selector = shape.selector(object);
  const { namespace = '' } = metadata;
  const replicas = numberIn(object, shape.replicas);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name: metadata['name'] ?? '',
      ...(namespace === '' ? {} : { namespace }),
      uid: metadata['uid'] ?? '',
      resourceVersion: String(revision),
      creationTimestamp: metadata['creationTimestamp'] ?? null,
    },
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: numberIn(object, shape.seen),
      ...(selector === '' ? {} : { selector }),
    },
  };
}

function numberIn(object: JsonObject, steps: readonly string[]): number {
  const value = readPath(object, steps);
  return typeof value === 'number' ? value : 0;
}

function selectorText(object: JsonObject): string {
  const isPlain = object['kind'] === 'ReplicationController';
  const labels = isPlain
    ? objectAt(object, 'spec', 'selector')
    : objectAt(object, 'spec', 'selector', 'matchLabels');
  return Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : ''}`)
    .sort()
    .join(',');
}

/** Requests for resources: which verb, which object, which subresource, and who answers. */
import { ownMember } from '@megaplane/base/members';
import { objectAt } from '@megaplane/machinery/json';
import type { Resource, Subresource } from '@megaplane/machinery/kinds';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  escapeFieldValue,
  parseFieldSelector,
  pinnedField,
} from '@megaplane/machinery/fieldselectors';
import {
  badRequest,
  failed,
  generic,
  methodNotSupported,
  notFound,
  success,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import type { Admission } from '../admission/admission.ts';
import { admitConnection } from '../handlers/connecting.ts';
import { readBody } from '../serializer/body.ts';
import type { Call } from '../request/call.ts';
import {
  getComponentStatus,
  isComponentStatus,
  listComponentStatuses,
} from '../registry/groups/component-statuses.ts';
import type { CustomVersion } from '../storage/served.ts';
import { deleteCollection } from '../handlers/collection-removal.ts';
import { deprecationOf } from '../request/deprecation.ts';
import { readListOptions, type ListOptions } from '../request/options/list-options.ts';
import { whenRead } from '../handlers/long-yaml.ts';
import { partScope } from '../fieldmanager/field-scope.ts';
import { ownersOfPart, trackNew } from '../fieldmanager/tracking.ts';
import { checkName, checkNamespace } from '../registry/rest/object-meta.ts';
import { warningsOf } from '../request/yaml/yaml-body.ts';
import { checkPatchType, patchObject } from '../handlers/patching.ts';
import { checkNamed, checkPlace } from '../request/place-check.ts';
import { isPassedOn } from '../kubelet/pod-routes.ts';
import { isProxied } from '../request/proxied-path.ts';
import { getObject, listObjects } from '../handlers/reading.ts';
import { deleteObject } from '../handlers/removing.ts';
import { isOfRouter } from '../request/negotiation.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { effectiveVerb } from '../request/request-terms.ts';
import { negotiateCall } from '../serializer/representation.ts';
import { CUSTOM_SCALE } from '../registry/groups/scale.ts';
import type { Served } from '../storage/served.ts';
import {
  findForms,
  findJudge,
  findSubresource,
  type Judge,
  type ShownForms,
  type SubresourceContext,
} from '../handlers/subresource.ts';
import { updateObject } from '../handlers/updating.ts';
import { watchObjects } from '../handlers/watching.ts';
import { readDeleteOptions } from '../request/options/delete-options.ts';
import { readWriteOptions, type WriteOptions } from '../request/options/write-options.ts';
import { createObject, type WriteContext } from '../handlers/writing.ts';
import type { RepeatedWrites } from '../fastpath/repeated-writes.ts';
import type { Services } from '../registry/rest/services.ts';
import type { World } from '../lister/world.ts';
import type { Normal } from '../apiextensions/schema/normal.ts';
import type { Admitted } from '../registry/rest/admitted.ts';
import { shownObject } from '../managedfields/shown-fields.ts';

/** What the handlers of the verbs work with. */
export interface RouteParts {
  /** The server's own; a request may see another view of it. */
  readonly world: World;
  readonly services: Services;
  readonly admission: Admission;
  /** Writes from templates; null where every write goes the ordinary way. */
  readonly repeated: RepeatedWrites | null;
}

/** Answers a request for `served`, as `world` shows it; the caller has authorized it. */
export function answerResource(world: World, parts: RouteParts, call: Call, served: Served): void {
  // the routes of built-in kinds are found first
  const early = served.custom === null ? checkRoute(call, served) : null;
  if (early !== null) {
    call.fail(early);
    return;
  }
  call.isRouted = served.custom === null;
  const media = negotiateCall(call, served);
  const warning = deprecationOf(served);
  // told with refusals too, but for those of the router
  if (warning !== '' && (media.ok || !isOfRouter(media.status))) {
    call.warn(warning);
    call.annotate('k8s.io/deprecated', 'true');
  }
  if (!media.ok && !isProxied(call.info)) {
    // routes of patches take their types alone, whatever is asked for
    const isPatch = served.custom === null && call.exchange.method === 'PATCH';
    call.fail((isPatch ? checkPatchType(call, served) : null) ?? media.status);
    return;
  }
  if (isOutOfScope(call, served)) {
    call.sendText(404, '404 page not found\n');
    return;
  }
  const misuse = served.custom === null ? null : checkRoute(call, served);
  if (misuse !== null) {
    call.fail(misuse);
    return;
  }
  call.isRouted = true;
  const answer = (one: Call): void => answerVerb(world, parts, one, served);
  // what is behind a proxy reads its bodies itself
  const isOwn = !isProxied(call.info) && !isPassedOn(call.info.subresource);
  const ordinary = (one: Call): void => {
    if (isOwn) whenRead(world, parts.admission, one, () => answer(one));
    else answer(one);
  };
  const isPlain = warning === '' && call.record === null;
  // templates are of what the server itself keeps, in the form that it keeps
  const { repeated } = parts;
  if (isPlain && world === parts.world && repeated?.answer(call, served, ordinary) === true) return;
  ordinary(call);
}

function answerVerb(world: World, parts: RouteParts, call: Call, served: Served): void {
  if (call.info.subresource !== '') {
    answerSubresource(world, parts, call, served);
    return;
  }
  const verb = effectiveVerb(call);
  const misplaced = ASK_FIRST.has(verb) ? checkPlace(call.info, served) : null;
  if (misplaced !== null) {
    call.fail(misplaced);
    return;
  }
  switch (verb) {
    case 'get':
      if (isComponentStatus(served)) getComponentStatus(world, parts.services.probe, call);
      else getObject(world, call, served);
      return;
    case 'list':
      answerList(world, parts, call, served, false);
      return;
    case 'watch':
      answerList(world, parts, call, served, true);
      return;
    case 'create':
      answerCreate(contextOf(world, parts, call, served), call, served);
      return;
    case 'update':
      answerUpdate(contextOf(world, parts, call, served), '');
      return;
    case 'patch':
      answerPatch(contextOf(world, parts, call, served), '');
      return;
    case 'delete':
      answerDelete(contextOf(world, parts, call, served));
      return;
    case 'deletecollection':
      answerDeleteCollection(contextOf(world, parts, call, served));
      return;
    default:
      call.fail(generic('MethodNotAllowed'));
  }
}

/** Verbs for which a path is refused before anything else of the request is. */
const ASK_FIRST: ReadonlySet<string> = new Set([
  ...['get', 'list', 'watch', 'delete', 'deletecollection'],
]);

/**
 * Custom resources in a namespace that have none, or named without theirs: upstream's handler of
 * them knows no such path.
 */
function isOutOfScope(call: Call, { custom, resource }: Served): boolean {
  if (custom === null) return false;
  const isInside = call.info.namespace !== '';
  if (isInside || !resource.namespaced) return isInside && !resource.namespaced;
  const verb = effectiveVerb(call);
  return verb !== 'list' && verb !== 'watch';
}

/** Ways that the resource does not have; then names that no object may have. */
function checkRoute(call: Call, served: Served): Status | null {
  const misuse = checkWay(call, served);
  const { name } = call.info;
  if (misuse !== null || (name !== '.' && name !== '..')) return misuse;
  return badRequest(`Name parameter invalid: "${name}": may not be '${name}'`);
}

/** Methods and scopes that the resource does not have. */
function checkWay(call: Call, served: Served): Status | null {
  const { info, exchange } = call;
  const { resource } = served;
  const isPartOfWatch = info.verb === 'watch' && info.subresource !== '';
  const isProxy = isProxied(info);
  if (!isProxy && (info.extra || isPartOfWatch)) return generic('NotFound');
  if (!isProxy && ['HEAD', 'OPTIONS'].includes(exchange.method)) {
    const { subresource, name } = info;
    const isKnown = subresource === '' || resource.subresources.has(subresource);
    const isWay = isKnown && (name === '' || !isAcross(info, resource));
    return generic(isWay || served.custom !== null ? 'MethodNotAllowed' : 'NotFound');
  }
  if (info.verb === 'proxy') return generic('NotFound');
  if (info.verb === 'watch' && exchange.method !== 'GET') return generic('MethodNotAllowed');
  // of custom resources, `isOutOfScope` has told
  if (!resource.namespaced && info.isInside && served.custom === null) return generic('NotFound');
  if (info.subresource !== '') {
    return served.custom === null ? checkSubresource(call, served) : null;
  }
  const verb = effectiveVerb(call);
  const isEverywhere = isAcross(info, resource);
  if (isEverywhere && info.name !== '') return generic('NotFound');
  if (isEverywhere && verb !== 'list' && verb !== 'watch') return generic('MethodNotAllowed');
  if ((verb === 'create') !== (info.name === '') && ['create', 'update', 'patch'].includes(verb)) {
    return generic('MethodNotAllowed');
  }
  // objects of an ending definition may still change, or nobody could let go of them
  if (served.custom?.kind.facts.state.isTerminating === true) return null;
  if (resource.verbs.includes(verb)) return null;
  const isUnwatched = verb === 'watch' && resource.verbs.includes('list');
  return isUnwatched ? methodNotSupported(served.plural, verb) : generic('MethodNotAllowed');
}

/** Whether a path is about all namespaces. */
function isAcross({ isInside }: RequestInfo, { namespaced }: Resource): boolean {
  return namespaced && !isInside;
}

/** Subresources that there are not, and methods that they do not take. */
function checkSubresource({ info, exchange }: Call, served: Served): Status | null {
  const { custom, plural, resource } = served;
  if (custom === null && isAcross(info, resource)) return generic('NotFound');
  const subresource = resource.subresources.get(info.subresource);
  // upstream says of the object that it is not there by a way that its kind does not have
  if (subresource === undefined) {
    return custom === null ? generic('NotFound') : notFound(plural, info.name);
  }
  const verb = subresourceVerb(info.verb, exchange.method);
  if (subresource.verbs.includes(verb)) return null;
  return custom === null ? generic('MethodNotAllowed') : methodNotSupported(plural, verb);
}

function subresourceVerb(verb: string, method: string): string {
  return verb === 'list' || method === 'OPTIONS' ? 'get' : verb;
}

/** A request whose body and options belong to somebody else. */
const PASSED_OPTIONS: WriteOptions = {
  dryRun: false,
  fieldManager: '',
  fieldValidation: 'Ignore',
  force: false,
};

function contextOf(
  world: World,
  { services, admission }: RouteParts,
  call: Call,
  served: Served,
): WriteContext {
  return { world, services, admission, call, served, isDryRun: false };
}

function answerList(
  world: World,
  { services }: RouteParts,
  call: Call,
  served: Served,
  watch: boolean,
): void {
  const options = readListOptions(call.query, watch, served);
  if (!options.ok) {
    call.fail(options.status);
    return;
  }
  const named = withName(call, served, options.value);
  if (!named.ok) call.fail(named.status);
  else if (isComponentStatus(served))
    listComponentStatuses(world, services.probe, call, named.value);
  else if (watch) watchObjects(world, call, served, named.value);
  else listObjects(world, call, served, named.value);
}

/** The deprecated watch of one object by its path is a watch with a selector of its name. */
function withName(call: Call, served: Served, options: ListOptions): Result<ListOptions> {
  const { name } = call.info;
  if (name === '') return success(options);
  const { group, kind } = served.resource;
  const own = `metadata.name=${escapeFieldValue(name)}`;
  if (options.fieldSelector === '') return success({ ...options, fieldSelector: own });
  const selectable = served.custom?.facts.selectable;
  const parsed = parseFieldSelector(options.fieldSelector, group, kind, selectable);
  if ('error' in parsed) return failed(badRequest(parsed.error));
  if (pinnedField(parsed.value, 'metadata.name') === name) return success(options);
  return failed(badRequest("fieldSelector metadata.name doesn't match requested name"));
}

function answerCreate(context: WriteContext, call: Call, served: Served): void {
  const options = readWriteOptions(call, 'CreateOptions');
  if (!options.ok) {
    call.fail(options.status);
    return;
  }
  const body = readObject(call, served.resource, options.value, served.custom, served.stored);
  if ('status' in body) {
    call.fail(body.status);
    return;
  }
  const isDryRun = options.value.dryRun;
  if (!served.stored) {
    const virtual = findSubresource(served.resource.storage.name, 'create');
    if (virtual === undefined) call.fail(generic('MethodNotAllowed'));
    else {
      const object = trackedReview({ ...context, isDryRun }, body.object);
      const full = { ...context, isDryRun, options: options.value, body: object };
      admitted(full, virtual, { judge: findJudge(served.resource.storage.name) });
    }
    return;
  }
  const { admission } = context;
  admission.pause(context, call.body.length, () => {
    createObject({ ...context, isDryRun }, body.object);
  });
}

/** A kind that is not stored has owners of its fields all the same, and shows them. */
function trackedReview(context: WriteContext, object: JsonObject): JsonObject {
  trackNew(context, object, object);
  const shown = shownObject(object);
  const { managedFields, ...metadata } = objectAt(shown, 'metadata') ?? {};
  if (managedFields === undefined) return { ...shown, metadata };
  return { ...shown, metadata: { ...metadata, managedFields } };
}

/** Decodes the body into its type's form, with what `fieldValidation` says about the rest. */
export function readObject(
  call: Call,
  expected: { readonly apiVersion: string; readonly kind: string },
  options: WriteOptions,
  custom: CustomVersion | null = null,
  hasVoids = false,
): Normal | { readonly status: Status } {
  const form = readBody(call, expected, options.fieldValidation !== 'Ignore', custom, hasVoids);
  if (!form.ok) return { status: form.status };
  const { complaints } = form.value;
  if (complaints.length > 0 && options.fieldValidation === 'Strict') {
    const version = expected.apiVersion.split('/').at(-1) ?? '';
    return {
      status: badRequest(
        `${expected.kind} in version ${JSON.stringify(version)} cannot be handled as a ` +
          `${expected.kind}: strict decoding error: ${complaints.join(', ')}`,
      ),
    };
  }
  if (options.fieldValidation === 'Warn') {
    for (const text of complaints.flatMap(warningsOf)) call.warn(text);
  }
  if (form.value.mismatch !== undefined) return { status: badRequest(form.value.mismatch) };
  call.record?.noteObject(form.value.object, custom);
  return form.value;
}

function answerUpdate(context: WriteContext, subresource: string): void {
  const { call, served } = context;
  const options = readWriteOptions(call, 'UpdateOptions');
  if (!options.ok) {
    call.fail(options.status);
    return;
  }
  const body = readObject(call, served.resource, options.value, served.custom, true);
  if ('status' in body) {
    call.fail(body.status);
    return;
  }
  const { object } = body;
  const { namespaced } = served.resource;
  const mismatch =
    (namespaced ? checkNamespace(object, call.info.namespace) : null) ??
    checkName(object, call.info.name) ??
    checkPlace(call.info, served);
  if (mismatch !== null) {
    call.fail(mismatch);
    return;
  }
  const isDryRun = options.value.dryRun;
  const change = () => ({ ok: true as const, value: object });
  context.admission.pause(context, call.body.length, () => {
    updateObject({ ...context, isDryRun }, { subresource, change, isPut: true });
  });
}

function answerPatch(context: WriteContext, subresource: string): void {
  const { call, served } = context;
  const refusal = checkPatchType(call, served) ?? checkPlace(call.info, served);
  if (refusal !== null) {
    context.call.fail(refusal);
    return;
  }
  const options = readWriteOptions(context.call, 'PatchOptions');
  if (!options.ok) {
    context.call.fail(options.status);
    return;
  }
  context.call.record?.notePatch(context.call.body);
  patchObject({ ...context, isDryRun: options.value.dryRun }, subresource, options.value);
}

function answerDelete(context: WriteContext): void {
  const options = readDeleteOptions(context.call);
  if (!options.ok) context.call.fail(options.status);
  else deleteObject({ ...context, isDryRun: options.value.dryRun }, options.value);
}

function answerDeleteCollection(context: WriteContext): void {
  const { call } = context;
  const list = readListOptions(call.query, false, context.served);
  const options = readDeleteOptions(call);
  if (!list.ok) call.fail(list.status);
  else if (!options.ok) call.fail(options.status);
  else deleteCollection({ ...context, isDryRun: options.value.dryRun }, options.value, list.value);
}

const handlerPaths = new WeakMap<Subresource, string>();

function handlerPath({ custom, resource }: Served, subresource: Subresource): string {
  const { name } = subresource;
  if (custom !== null && name === 'scale') return CUSTOM_SCALE;
  let path = handlerPaths.get(subresource);
  if (path === undefined) {
    path = `${resource.storage.name}/${name}`;
    handlerPaths.set(subresource, path);
  }
  return path;
}

/** Subresources that show the whole object are verbs on it; all others have code of their own. */
function answerSubresource(world: World, parts: RouteParts, call: Call, served: Served): void {
  const { info } = call;
  const misuse = checkSubresource(call, served) ?? checkNamed(info);
  const subresource = served.resource.subresources.get(info.subresource);
  if (misuse !== null || subresource === undefined) {
    call.fail(misuse ?? generic('NotFound'));
    return;
  }
  const verb = subresourceVerb(info.verb, call.exchange.method);
  const context = contextOf(world, parts, call, served);
  const own = findSubresource(handlerPath(served, subresource), verb);
  const misplaced =
    verb === 'get' || isPassedOn(info.subresource) ? checkPlace(info, served) : null;
  if (misplaced !== null) {
    call.fail(misplaced);
    return;
  }
  if (own !== undefined && isPassedOn(info.subresource)) {
    admitConnection(context, parts.admission, () => {
      own({ ...context, options: PASSED_OPTIONS, body: {} });
    });
    return;
  }
  if (own !== undefined) {
    runSubresource(context, subresource, own, verb);
    return;
  }
  if (subresource.kind !== served.resource.kind) {
    call.fail(generic('NotFound'));
    return;
  }
  if (verb === 'get') getObject(world, call, served);
  else if (verb === 'update') answerUpdate(context, info.subresource);
  else if (verb === 'patch') answerPatch(context, info.subresource);
  else call.fail(generic('MethodNotAllowed'));
}

const OPTIONS_OF: Readonly<Record<string, string>> = {
  create: 'CreateOptions',
  patch: 'PatchOptions',
};

function runSubresource(
  context: WriteContext,
  kind: Subresource,
  run: (context: SubresourceContext) => void,
  verb: string,
): void {
  const { call } = context;
  const { served } = context;
  const isPatch = verb === 'patch';
  const refusal = isPatch ? (checkPatchType(call, served) ?? checkPlace(call.info, served)) : null;
  if (refusal !== null) {
    call.fail(refusal);
    return;
  }
  const options = readWriteOptions(call, ownMember(OPTIONS_OF, verb) ?? 'UpdateOptions');
  if (!options.ok) {
    call.fail(options.status);
    return;
  }
  const isDryRun = options.value.dryRun;
  if (verb === 'patch') call.record?.notePatch(call.body);
  if (verb !== 'create' && verb !== 'update') {
    run({ ...context, isDryRun, options: options.value, body: {} });
    return;
  }
  const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`;
  const body = readObject(call, { apiVersion, kind: kind.kind }, options.value);
  if ('status' in body) {
    call.fail(body.status);
    return;
  }
  const moved = checkNamespace(body.object, call.info.namespace);
  const renamed = verb === 'update' ? checkName(body.object, call.info.name) : null;
  const mismatch = moved ?? renamed ?? checkPlace(call.info, served);
  if (mismatch !== null) {
    call.fail(mismatch);
    return;
  }
  const full = { ...context, isDryRun, options: options.value, body: body.object };
  if (verb !== 'create') {
    run(full);
    return;
  }
  const own = placed(body.object, call.info.namespace);
  const path = handlerPath(context.served, kind);
  const forms = findForms(path);
  // who owns what of it is told those who look, and kept nowhere
  const isLookedAt = forms === undefined && !context.admission.repeats(context);
  if (isLookedAt) addOwners(call, kind, own);
  const shown = { ...full, body: forms?.decoded(own) ?? own };
  admitted(shown, run, { forms, judge: findJudge(path) });
}

function addOwners(call: Call, { group, version, kind, name }: Subresource, own: JsonObject): void {
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const { managedFields: _, ...sent } = objectAt(own, 'metadata') ?? {};
  const scope = partScope(call, apiVersion, kind, name, 'Update');
  own['metadata'] = { ...sent, ...ownersOfPart(scope, { ...own, metadata: sent }) };
}

/** What is made under an object is in its namespace, whether it says so or not. */
function placed(object: JsonObject, namespace: string): JsonObject {
  const metadata = objectAt(object, 'metadata') ?? {};
  return namespace === '' ? object : { ...object, metadata: { ...metadata, namespace } };
}

/** Bindings, evictions and tokens are created under an object: they too are admitted. */
function admitted(
  context: SubresourceContext,
  run: (context: SubresourceContext) => void,
  { forms, judge }: { readonly forms?: ShownForms | undefined; readonly judge?: Judge | undefined },
): void {
  const { call, admission, body } = context;
  const { subresource } = call.info;
  const write: Admitted = {
    ...context,
    operation: 'CREATE',
    subresource,
    object: body,
    previous: null,
  };
  const then = (refusal: Status | null): void => {
    if (refusal === null) run(context);
    else call.fail(refusal);
  };
  admission.mutate(write, (refusal) => {
    const fault = refusal ?? judge?.(context) ?? null;
    if (fault !== null) then(fault);
    else if (forms === undefined) admission.validate(write, then);
    else admission.validate({ ...write, object: forms.completed(body, context) }, then);
  });
}

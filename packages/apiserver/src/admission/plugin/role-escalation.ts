/**
 * Nobody gives by a role or a binding what they do not have themselves, unless they may `escalate`
 * or `bind` (upstream's `registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/
 * policybased`). It is part of the kinds' storage there: no flag turns it off.
 */
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  badRequest,
  forbidden,
  notFound,
  unclassified,
  type Status,
} from '@megaplane/machinery/status';
import { whenDecided, type Attributes } from '../../authorization/authorization.ts';
import { parseRule, type PolicyRule } from '../../authorization/rbac.ts';
import { missingRights } from '../../authorization/rbac-cover.ts';
import { readStoredObject } from '../../lister/stored-object.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin, Verdict } from '../admission-plugin.ts';

const GROUP = 'rbac.authorization.k8s.io';
const ROLES = [`roles.${GROUP}`, `clusterroles.${GROUP}`];
const BINDINGS = [`rolebindings.${GROUP}`, `clusterrolebindings.${GROUP}`];
const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], groups: ['*'], resources: ['*'], names: [], paths: [] },
  { verbs: ['*'], groups: [], resources: [], names: [], paths: ['*'] },
];

export const roleEscalation: AdmissionPlugin = {
  name: 'RoleEscalation',
  handles: ({ resource }, operation, subresource) => {
    const { name } = resource.storage;
    const isWrite = (operation === 'CREATE' || operation === 'UPDATE') && subresource === '';
    return isWrite && (ROLES.includes(name) || BINDINGS.includes(name));
  },
  mutate: (write) => {
    const { object, previous, call, served } = write;
    if (object === null || call.identity.isMaster) return null;
    if (previous !== null && isCollectorsChange(object, previous)) return null;
    const isRole = ROLES.includes(served.resource.storage.name);
    // nobody may bind what is no role
    if (!isRole && !isRoleKind(object)) return judgeBinding(write, object);
    return unlessAllowed(
      write,
      isRole ? escalateQuestion(write) : bindQuestion(write, object),
      () => (isRole ? judgeRole(write, object) : judgeBinding(write, object)),
    );
  },
};

const COLLECTORS_FIELDS = ['ownerReferences', 'finalizers', 'managedFields', 'resourceVersion'];

/** Owners and finalizers change without a look at the rules: the garbage collector needs it. */
function isCollectorsChange(next: JsonObject, previous: JsonObject): boolean {
  const bare = (object: JsonObject): JsonObject => {
    const metadata = { ...objectAt(object, 'metadata') };
    for (const field of COLLECTORS_FIELDS) delete metadata[field];
    return { ...object, metadata };
  };
  return equals(bare(next), bare(previous));
}

function escalateQuestion({ call }: Admitted): Attributes {
  const { group, version, resource, name, namespace, path } = call.info;
  const what = { group, version, resource, name, namespace, path };
  return { ...what, verb: 'escalate', isResource: true, subresource: '' };
}

function bindQuestion({ call }: Admitted, binding: JsonObject): Attributes {
  const isCluster = stringAt(binding, 'roleRef', 'kind') === 'ClusterRole';
  return {
    verb: 'bind',
    isResource: true,
    path: '',
    group: GROUP,
    version: '*',
    resource: isCluster ? 'clusterroles' : 'roles',
    subresource: '',
    namespace: call.info.namespace,
    name: stringAt(binding, 'roleRef', 'name'),
  };
}

/** Asks whether one may do it anyway, in this turn where nobody else has to be asked. */
function unlessAllowed(write: Admitted, question: Attributes, judge: () => Status | null): Verdict {
  const { services, call } = write;
  const authorize = services.decide;
  const decision = authorize(call.identity, question);
  if (decision.pending === undefined) return decision.allowed ? null : judge();
  return (then) => {
    whenDecided(authorize, call.identity, question, ({ allowed }) => {
      then(allowed ? null : judge());
    });
  };
}

function judgeRole(write: Admitted, role: JsonObject): Status | null {
  const { previous, served } = write;
  const refusal = refusalOf(write, role, listAt(role, 'rules').map(parseRule));
  if (refusal !== null) return refusal;
  const gathers = [role, previous ?? {}].some(
    (one) => listAt(one, 'aggregationRule', 'clusterRoleSelectors').length > 0,
  );
  if (!gathers || grantFault(write, EVERYTHING) === '') return null;
  const why = 'must have cluster-admin privileges to use the aggregationRule';
  return forbidden(served.plural, stringAt(role, 'metadata', 'name'), why);
}

function isRoleKind(binding: JsonObject): boolean {
  return ['ClusterRole', 'Role'].includes(stringAt(binding, 'roleRef', 'kind'));
}

function judgeBinding(write: Admitted, binding: JsonObject): Status | null {
  const { world, call, served } = write;
  const kind = stringAt(binding, 'roleRef', 'kind');
  const name = stringAt(binding, 'roleRef', 'name');
  const { namespace } = call.info;
  if (!isRoleKind(binding)) {
    return unclassified(`unsupported role reference kind: ${JSON.stringify(kind)}`);
  }
  if (kind === 'Role' && namespace === '') return badRequest('Namespace parameter required.');
  const role =
    kind === 'ClusterRole'
      ? readStoredObject(world, GROUP, 'clusterroles', '', name)
      : readStoredObject(world, GROUP, 'roles', namespace, name);
  if (role === null) return notFound(served.plural, name);
  return refusalOf(write, binding, listAt(role, 'rules').map(parseRule));
}

function refusalOf(
  write: Admitted,
  object: JsonObject,
  wanted: readonly PolicyRule[],
): Status | null {
  const why = grantFault(write, wanted);
  if (why === '') return null;
  return forbidden(write.served.plural, stringAt(object, 'metadata', 'name'), why);
}

/** Why one may not give these rules; '' where one has them all. */
function grantFault(write: Admitted, wanted: readonly PolicyRule[]): string {
  const { services, call } = write;
  const { user, groups } = call.identity;
  const held = services.rulesOf(call.identity, call.info.namespace);
  const missing = missingRights(held, wanted);
  if (missing.length === 0) return '';
  const own = groups.map((group) => JSON.stringify(group)).join(' ');
  return (
    `user ${JSON.stringify(user)} (groups=[${own}]) is attempting to grant RBAC permissions ` +
    `not currently held:\n${missing.join('\n')}${unresolved(write)}`
  );
}

/** Roles that bindings of the user name and that are not there, told as upstream tells them. */
function unresolved({ services, call }: Admitted): string {
  const { resource, namespace } = call.info;
  const names = services.missingRoles(call.identity, namespace);
  const told = [...new Set(names)].map(
    (name) => `${resource}.${GROUP} ${JSON.stringify(name)} not found`,
  );
  if (told.length === 0) return '';
  return `; resolution errors: [${told.length === 1 ? told.join() : `[${told.join(', ')}]`}]`;
}

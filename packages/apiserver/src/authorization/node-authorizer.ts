/**
 * The Node authorizer: a kubelet may do its own work, and read what the pods of its node refer to.
 * Rules and reasons are upstream's (`plugin/pkg/auth/authorizer/node`); what a write may hold is
 * said by NodeRestriction.
 */
import { ownMember } from '@megaplane/base/members';
import { pinnedTerm } from '@megaplane/machinery/fieldselectors';
import { stringAt } from '@megaplane/machinery/json';
import { readStoredObject } from '../lister/stored-object.ts';
import { DENIED, type Attributes, type Authorizer, type Decision } from './authorization.ts';
import type { World } from '../lister/world.ts';
import { isNode, LEASE_NAMESPACE, nodeNameOfUser } from './node-identity.ts';
import { NodeRelations } from './node-relations.ts';
import { referenceOf, type Referred } from './pod-references.ts';

const READ = ['get', 'list', 'watch'];
const OWN_VERBS = ['get', 'create', 'update', 'patch', 'delete'];
const ALLOWED: Decision = { allowed: true, reason: '', isNarrow: true };

/** `resource[/subresource][.group]` -> verbs that all kubelets have alike. */
const RULES: Readonly<Record<string, readonly string[]>> = {
  services: READ,
  endpoints: ['get'],
  events: ['create', 'update', 'patch'],
  'events.events.k8s.io': ['create', 'update', 'patch'],
  'csidrivers.storage.k8s.io': READ,
  'runtimeclasses.node.k8s.io': READ,
  'certificatesigningrequests.certificates.k8s.io': ['create', ...READ],
  'clustertrustbundles.certificates.k8s.io': READ,
  'tokenreviews.authentication.k8s.io': ['create'],
  'subjectaccessreviews.authorization.k8s.io': ['create'],
  'localsubjectaccessreviews.authorization.k8s.io': ['create'],
};

function no(reason: string): Decision {
  return reason === '' ? DENIED : { allowed: false, reason };
}

export class NodeAuthorizer {
  readonly #world: World;
  readonly #relations: NodeRelations;

  constructor(world: World) {
    this.#world = world;
    this.#relations = new NodeRelations(world);
  }

  readonly authorize: Authorizer = (identity, what) => {
    if (!isNode(identity)) return DENIED;
    const node = nodeNameOfUser(identity);
    if (node === '') return no(`unknown node for user ${JSON.stringify(identity.user)}`);
    if (!what.isResource) return DENIED;
    const name = what.group === '' ? what.resource : `${what.resource}.${what.group}`;
    switch (name) {
      case 'secrets':
      case 'configmaps':
        return this.#readNamespaced(node, name, what);
      case 'persistentvolumeclaims':
        return what.subresource === 'status'
          ? this.#updateStatus(node, what)
          : this.#get(node, 'persistentvolumeclaims', what);
      case 'persistentvolumes':
        return this.#get(node, 'persistentvolumes', what);
      case 'pods':
        return this.#pods(node, what);
      case 'nodes':
        return decideNode(node, what);
      case 'serviceaccounts':
        return this.#serviceAccounts(node, what);
      case 'leases.coordination.k8s.io':
        return decideLease(node, what);
      case 'csinodes.storage.k8s.io':
        return decideCsiNode(node, what);
      case 'volumeattachments.storage.k8s.io':
        return this.#ofNode(node, what, ['get'], 'can only get individual resources of this type');
      case 'resourceclaims.resource.k8s.io':
        return this.#get(node, 'resourceclaims', what);
      case 'resourceslices.resource.k8s.io':
        return this.#slices(node, what);
      default:
        return decideByRule(what);
    }
  };

  #related(node: string, kind: Referred, what: Attributes): Decision {
    if (what.name === '') return no('No Object name found');
    const related = this.#relations.has(node, referenceOf(kind, what.namespace, what.name));
    if (related === true) return ALLOWED;
    if (typeof related === 'object') return { ...DENIED, pending: related.pending };
    return no(`no relationship found between node '${node}' and this object`);
  }

  #get(node: string, kind: Referred, what: Attributes): Decision {
    if (what.verb !== 'get') return no('can only get individual resources of this type');
    if (what.subresource !== '') return no('cannot get subresource');
    return this.#related(node, kind, what);
  }

  #updateStatus(node: string, what: Attributes): Decision {
    if (what.verb !== 'update' && what.verb !== 'patch') {
      return no('can only get/update/patch this type');
    }
    return this.#related(node, 'persistentvolumeclaims', what);
  }

  #readNamespaced(node: string, kind: Referred, what: Attributes): Decision {
    if (!READ.includes(what.verb)) return no('can only read resources of this type');
    if (what.subresource !== '') return no('cannot read subresource');
    if (what.namespace === '') return no('can only read namespaced object of this type');
    return this.#related(node, kind, what);
  }

  #serviceAccounts(node: string, what: Attributes): Decision {
    if (what.verb === 'get' && what.subresource === '') {
      return this.#readNamespaced(node, 'serviceaccounts', what);
    }
    if (what.verb !== 'create' || what.name === '') {
      return no('can only create tokens for individual service accounts');
    }
    if (what.subresource !== 'token') {
      return no('can only create token subresource of serviceaccount');
    }
    return this.#related(node, 'serviceaccounts', what);
  }

  #pods(node: string, what: Attributes): Decision {
    const { verb, subresource } = what;
    if (subresource === 'status') return verb === 'update' || verb === 'patch' ? ALLOWED : DENIED;
    if (subresource === 'eviction') return verb === 'create' ? ALLOWED : DENIED;
    if (subresource !== '') return DENIED;
    if (verb === 'create' || verb === 'delete') return ALLOWED;
    if (verb === 'get') return this.#related(node, 'pods', what);
    if (verb !== 'list' && verb !== 'watch') return DENIED;
    if (selectsNode(what, node)) return ALLOWED;
    if (what.name !== '') return this.#related(node, 'pods', what);
    return no('can only list/watch pods with spec.nodeName field selector');
  }

  #slices(node: string, what: Attributes): Decision {
    if (what.subresource !== '') return no('cannot authorize ResourceSlice subresources');
    switch (what.verb) {
      case 'create':
        return ALLOWED;
      case 'get':
      case 'update':
      case 'patch':
      case 'delete':
        return this.#ofNode(node, what, OWN_VERBS, '');
      case 'list':
      case 'watch':
      case 'deletecollection':
        if (selectsNode(what, node)) return ALLOWED;
        return no(
          'can only list/watch/deletecollection resourceslices with nodeName field selector',
        );
      default:
        return no(
          'only the following verbs are allowed for a ResourceSlice: ' +
            'get, watch, list, create, update, patch, delete, deletecollection',
        );
    }
  }

  /** Objects that name their node in their spec. */
  #ofNode(node: string, what: Attributes, verbs: readonly string[], otherwise: string): Decision {
    if (!verbs.includes(what.verb)) return no(otherwise);
    if (what.subresource !== '') return no('cannot get subresource');
    if (what.name === '') return no('No Object name found');
    const found = readStoredObject(this.#world, what.group, what.resource, '', what.name);
    if (found !== null && stringAt(found, 'spec', 'nodeName') === node) return ALLOWED;
    return no(`no relationship found between node '${node}' and this object`);
  }
}

/** As it was sent: whether the kind has such fields is asked of those that may ask. */
function selectsNode({ fieldSelector = '' }: Attributes, node: string): boolean {
  return fieldSelector !== '' && pinnedTerm(fieldSelector, 'spec.nodeName') === node;
}

function decideNode(node: string, { verb, subresource, name }: Attributes): Decision {
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? ALLOWED : DENIED;
  if (subresource !== '') return DENIED;
  if (['create', 'update', 'patch'].includes(verb)) return ALLOWED;
  if (!READ.includes(verb)) return DENIED;
  if (name === node) return ALLOWED;
  return name === ''
    ? no(`node '${node}' cannot read all nodes, only its own Node object`)
    : no(`node '${node}' cannot read '${name}', only its own Node object`);
}

function decideLease(node: string, { verb, namespace, name }: Attributes): Decision {
  if (!OWN_VERBS.includes(verb)) {
    return no('can only get, create, update, patch, or delete a node lease');
  }
  if (namespace !== LEASE_NAMESPACE) {
    return no(`can only access leases in the "${LEASE_NAMESPACE}" system namespace`);
  }
  // on create the name is in the body: admission looks there
  if (verb === 'create' || name === node) return ALLOWED;
  return no('can only access node lease with the same name as the requesting node');
}

function decideCsiNode(node: string, { verb, subresource, name }: Attributes): Decision {
  if (!OWN_VERBS.includes(verb)) {
    return no('can only get, create, update, patch, or delete a CSINode');
  }
  if (subresource !== '') return no('cannot authorize CSINode subresources');
  if (verb === 'create' || name === node) return ALLOWED;
  return no('can only access CSINode with the same name as the requesting node');
}

function decideByRule(what: Attributes): Decision {
  const full = what.subresource === '' ? what.resource : `${what.resource}/${what.subresource}`;
  const name = what.group === '' ? full : `${full}.${what.group}`;
  return ownMember(RULES, name)?.includes(what.verb) === true
    ? { allowed: true, reason: '' }
    : DENIED;
}

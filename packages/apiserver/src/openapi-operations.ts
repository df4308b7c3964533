/**
 * What documents tell of one operation besides its parameters: the names by which generated clients
 * call it, and what it takes and answers. Rules and names are those of upstream's installer.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';

/** Of what an operation is. */
export interface Subject {
  readonly group: string;
  readonly version: string;
  /** Of the resource, whatever kind its subresource has. */
  readonly kind: string;
  readonly subresource: string;
  readonly isNamespaced: boolean;
  /** Lists over all namespaces. */
  readonly isAcross: boolean;
}

/** The extension's action, in the word that names of operations begin with. */
const WORDS: Readonly<Record<string, string>> = {
  list: 'list',
  post: 'create',
  deletecollection: 'delete',
  get: 'read',
  put: 'replace',
  patch: 'patch',
  delete: 'delete',
  connect: 'connect',
};

/** Kinds whose deletion answers the object; that of others answers a Status. */
const DELETED_SHOWN: ReadonlySet<string> = new Set([
  '/PersistentVolume',
  '/PersistentVolumeClaim',
  '/Pod',
  '/PodTemplate',
  '/ResourceQuota',
  '/Service',
  '/ServiceAccount',
  'resource.k8s.io/DeviceClass',
  'resource.k8s.io/ResourceClaim',
  'resource.k8s.io/ResourceClaimTemplate',
  'resource.k8s.io/ResourceSlice',
  'storage.k8s.io/CSIDriver',
  'storage.k8s.io/CSINode',
  'storage.k8s.io/StorageClass',
  'storage.k8s.io/VolumeAttachment',
  'storage.k8s.io/VolumeAttributesClass',
]);

/** Codes of success that each action tells of. */
const CODES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  post: [
    ['200', 'OK'],
    ['201', 'Created'],
    ['202', 'Accepted'],
  ],
  put: [
    ['200', 'OK'],
    ['201', 'Created'],
  ],
  patch: [
    ['200', 'OK'],
    ['201', 'Created'],
  ],
  delete: [
    ['200', 'OK'],
    ['202', 'Accepted'],
  ],
};
const READ_CODES: readonly (readonly [string, string])[] = [['200', 'OK']];

/** `deleteAppsV1CollectionNamespacedDeployment`, `connectCoreV1GetNamespacedPodExec`. */
export function operationId(action: string, method: string, subject: Subject): string {
  const { group, version, kind, subresource, isNamespaced, isAcross } = subject;
  const via = action === 'connect' ? capital(method) : '';
  const many = action === 'deletecollection' ? 'Collection' : '';
  const inside = isNamespaced && !isAcross ? 'Namespaced' : '';
  const where = isAcross ? 'ForAllNamespaces' : '';
  const place = capital(groupWord(group)) + capital(version);
  const what = kind + capital(subresource);
  return `${WORDS[action] ?? action}${place}${via}${many}${inside}${what}${where}`;
}

/** `rbacAuthorization_v1` */
export function tagOf({ group, version }: Subject): string {
  return `${groupWord(group)}_${version}`;
}

function groupWord(group: string): string {
  if (group === '') return 'core';
  const words = group.replace(/\.k8s\.io$/, '').split(/[^A-Za-z0-9]+/);
  return words.map((word, index) => (index === 0 ? word : capital(word))).join('');
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Names of the schemas that an operation may answer with. */
export interface Answers {
  readonly object: string;
  readonly list: string;
  readonly status: string;
}

/** Which of the answers an action has; '' where its form is not told. */
export function answerOf(action: string, { group, kind }: Subject, answers: Answers): string {
  if (action === 'list') return answers.list;
  if (action === 'deletecollection') return answers.status;
  if (action !== 'delete') return answers.object;
  return DELETED_SHOWN.has(`${group}/${kind}`) ? answers.object : answers.status;
}

/** `responses` of version 2 or, where types are given, of version 3. */
export function responsesOf(
  action: string,
  schema: JsonObject | null,
  types: readonly string[] | null,
): JsonObject {
  const responses: JsonObject = {};
  for (const [code, description] of CODES[action] ?? READ_CODES) {
    if (schema === null) responses[code] = { description };
    else if (types === null) responses[code] = { description, schema };
    else {
      const content = Object.fromEntries(types.map((type) => [type, { schema }]));
      responses[code] = { description, content };
    }
  }
  responses['401'] = { description: 'Unauthorized' };
  return responses;
}

/** What expressions of admission see: match conditions of webhooks, policies, and mutations. */
import { AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE } from './library/authorizer-library.ts';
import { celEnvironment } from './program.ts';
import {
  BOOL,
  DYN,
  INT,
  listOf,
  mapOf,
  opaque,
  STRING,
  TIMESTAMP,
  type CelType,
  type FieldType,
} from './values/typing.ts';
import { CelObject, type CelValue } from './values/values.ts';
import type { Environment, StructType } from './syntax/environment.ts';

/** An object type with these fields. */
export function objectOf(name: string, fields: Readonly<Record<string, CelType>>): CelType {
  const table = new Map<string, FieldType>(
    Object.entries(fields).map(([member, type]) => [member, { type, member }]),
  );
  return { kind: 'object', name, params: [], fields: table };
}

const TEXTS = listOf(STRING);
const KIND = objectOf('kubernetes.GroupVersionKind', {
  group: STRING,
  version: STRING,
  kind: STRING,
});
const RESOURCE = objectOf('kubernetes.GroupVersionResource', {
  group: STRING,
  version: STRING,
  resource: STRING,
});

/** `request`: the AdmissionReview's request without the objects. */
const REQUEST_TYPE: CelType = objectOf('kubernetes.AdmissionRequest', {
  kind: KIND,
  resource: RESOURCE,
  subResource: STRING,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: objectOf('kubernetes.UserInfo', {
    username: STRING,
    uid: STRING,
    groups: TEXTS,
    extra: mapOf(STRING, TEXTS),
  }),
  dryRun: BOOL,
  options: DYN,
});

/** `namespaceObject`: the namespace of the request. */
const NAMESPACE_TYPE: CelType = objectOf('kubernetes.Namespace', {
  metadata: objectOf('kubernetes.NamespaceMetadata', {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: mapOf(STRING, STRING),
    annotations: mapOf(STRING, STRING),
    UID: STRING,
    creationTimestamp: TIMESTAMP,
    deletionGracePeriodSeconds: INT,
    deletionTimestamp: TIMESTAMP,
    generation: INT,
    resourceVersion: STRING,
    finalizers: TEXTS,
  }),
  spec: objectOf('kubernetes.NamespaceSpec', { finalizers: TEXTS }),
  status: objectOf('kubernetes.NamespaceStatus', { phase: STRING }),
});

export interface AdmissionScope {
  /** The policy names a kind of parameters. */
  readonly hasParams: boolean;
  /** Variables of the policy by name, and their types as far as they are known. */
  readonly variables?: ReadonlyMap<string, CelType> | undefined;
  /** Types of `object`, `oldObject` and `params` to check against; default: anything. */
  readonly object?: CelType | undefined;
  readonly params?: CelType | undefined;
  /** Whether expressions may ask what the user is allowed to; default: yes. */
  readonly hasAuthorizer?: boolean | undefined;
  /** Mutations may make objects and JSON patches. */
  readonly makesPatches?: boolean | undefined;
}

const shared = new Map<string, Environment>();

/** The environment of one policy; those without variables and types of their own are shared. */
export function admissionEnvironment(scope: AdmissionScope): Environment {
  const isCommon =
    scope.variables === undefined && scope.object === undefined && scope.params === undefined;
  const { hasAuthorizer = true, makesPatches = false } = scope;
  const key = `${scope.hasParams}${makesPatches}${hasAuthorizer}`;
  const known = isCommon ? shared.get(key) : undefined;
  if (known !== undefined) return known;
  const made = make(scope);
  if (isCommon) shared.set(key, made);
  return made;
}

function make(scope: AdmissionScope): Environment {
  const { hasParams, variables, object, params, makesPatches } = scope;
  const declared: Record<string, CelType> = {
    object: object ?? DYN,
    oldObject: object ?? DYN,
    request: REQUEST_TYPE,
    namespaceObject: NAMESPACE_TYPE,
  };
  if (scope.hasAuthorizer !== false) {
    declared['authorizer'] = opaque(AUTHORIZER_TYPE);
    declared['authorizer.requestResource'] = opaque(RESOURCE_CHECK_TYPE);
  }
  if (hasParams) declared['params'] = params ?? DYN;
  if (variables !== undefined) {
    declared['variables'] = objectOf('kubernetes.variables', Object.fromEntries(variables));
  }
  return celEnvironment({
    variables: declared,
    ...(makesPatches === true ? { structs: patchStruct, makesPatches } : {}),
  });
}

/** Objects that mutations make: `Object{spec: Object.spec{replicas: 1}}`. */
export class MadeObject extends CelObject {
  readonly typeName: string;
  readonly #fields: ReadonlyMap<string, CelValue>;
  constructor(typeName: string, fields: ReadonlyMap<string, CelValue>) {
    super();
    this.typeName = typeName;
    this.#fields = fields;
  }
  field(name: string): CelValue | undefined {
    return this.#fields.get(name);
  }
  fieldNames(): readonly string[] {
    return Array.from(this.#fields.keys());
  }
}

const JSON_PATCH = objectOf('JSONPatch', {
  op: STRING,
  path: STRING,
  from: STRING,
  value: DYN,
});

function patchStruct(name: string): StructType | undefined {
  if (name === 'JSONPatch') {
    return { type: JSON_PATCH, make: (fields) => new MadeObject(name, fields) };
  }
  if (name !== 'Object' && !name.startsWith('Object.')) return undefined;
  const type: CelType = { kind: 'object', name, params: [], fields: null };
  return { type, make: (fields) => new MadeObject(name, fields) };
}

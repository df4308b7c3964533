/**
 * Paths and operations of one resource, as upstream's documents name them: generators of clients
 * make functions of operation ids and tags, kubectl looks for parameters of a patch.
 */
import { ownMember, putMember, putMembers } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { Resource, Subresource } from '@megaplane/machinery/kinds';
import { ANSWERS, operationWords } from './openapi-words.ts';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { isConnection, OperationNames, PROXY_METHODS } from './openapi-names.ts';
import {
  commonOf,
  DELETE_LIST_PARAMETERS,
  DELETE_PARAMETERS,
  LIST_PARAMETERS,
  optionParameters,
  parameterOf,
  pathParameters,
  withoutCommon,
  WRITE_PARAMETERS,
  type Parameter,
  type ParameterPlace,
} from './openapi-parameters.ts';
import { schemaName, type Dialect } from './openapi-schemas.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const OBJECT_TYPES = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
];
const WATCHED_TYPES = [
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
];
const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
];
/** Custom resources have neither protobuf nor a schema that strategic patches could merge by. */
const CUSTOM_TYPES = ['application/json', 'application/yaml'];
const CUSTOM_PATCH_TYPES = PATCH_TYPES.filter((type) => !type.includes('strategic'));

const CUSTOM_GET_PARAMETERS: readonly Parameter[] = [['resourceVersion', 'string', 'query']];

/** What an operation is about. */
interface Target {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface Operation {
  readonly method: string;
  readonly id: string;
  readonly action: string;
  readonly target: Target;
  readonly parameters: readonly Parameter[];
  /** Schema of the body; '' without one. */
  readonly body: string;
  /** Schema of the answer; '' for text. */
  readonly answer: string;
  /** Codes besides 200. */
  readonly codes: readonly string[];
  readonly isStreamed: boolean;
}

/** Adds the path that lists the resources of a built-in group and version. */
export function addDiscoveryPath(paths: JsonObject, resource: Resource, dialect: Dialect): void {
  const path = new ResourcePaths(resource, dialect, undefined);
  path.addDiscovery(paths);
}

/**
 * Adds the paths of `resource` and its subresources to `paths`; `schema` names the one of a custom
 * resource.
 */
export function addPaths(
  paths: JsonObject,
  resource: Resource,
  dialect: Dialect,
  schema?: string,
): void {
  new ResourcePaths(resource, dialect, schema).add(paths);
}

class ResourcePaths {
  readonly #resource: Resource;
  readonly #dialect: Dialect;
  readonly #schema: string | undefined;
  readonly #names: OperationNames;
  readonly #base: string;
  readonly #types: readonly string[];

  constructor(resource: Resource, dialect: Dialect, schema: string | undefined) {
    const { group, version } = resource;
    this.#resource = resource;
    this.#dialect = dialect;
    this.#schema = schema;
    this.#names = new OperationNames(resource);
    this.#base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    this.#types = schema === undefined ? OBJECT_TYPES : CUSTOM_TYPES;
  }

  addDiscovery(paths: JsonObject): void {
    const answers = {
      '200': this.#answer('200', `${META}.APIResourceList`, false),
      '401': unauthorized(),
    };
    const operation: JsonObject = {
      description: 'get available resources',
      ...(this.#dialect.wrapsReferences ? {} : this.#media(OBJECT_TYPES, OBJECT_TYPES)),
      tags: [this.#names.tag],
      operationId: this.#names.discovery,
      responses: answers,
    };
    putMember(paths, `${this.#base}/`, { get: operation });
  }

  add(paths: JsonObject): void {
    const { resource: plural, verbs, namespaced, subresources } = this.#resource;
    const inner = namespaced ? `${this.#base}/namespaces/{namespace}` : this.#base;
    const collection = `${inner}/${plural}`;
    const item = `${collection}/{name}`;
    this.#addPath(paths, collection, this.#collectionOperations(verbs));
    this.#addPath(paths, item, this.#itemOperations(verbs, this.#resource, this.#own, ''));
    if (namespaced && verbs.includes('list')) {
      this.#addPath(paths, `${this.#base}/${plural}`, [this.#list('list', 'ForAllNamespaces')]);
    }
    for (const sub of subresources.values()) this.#addSubresource(paths, item, sub);
    if (this.#schema === undefined && verbs.includes('watch')) this.#addWatches(paths, plural);
  }

  /** Name of the schema of the resource itself. */
  get #own(): string {
    return this.#schema ?? schemaOf(this.#resource);
  }

  #operation(
    operation: Pick<Operation, 'method' | 'id' | 'action'> & Partial<Operation>,
  ): Operation {
    return {
      target: this.#resource,
      parameters: [],
      body: '',
      answer: this.#own,
      codes: [],
      isStreamed: false,
      ...operation,
    };
  }

  #list(action: string, place: string): Operation {
    const { group, version, listKind } = this.#resource;
    const answer =
      this.#schema === undefined
        ? schemaOf({ group, version, kind: listKind })
        : `${this.#schema}List`;
    return this.#operation({
      method: 'get',
      id: this.#names.of(action, '', place),
      action,
      parameters: LIST_PARAMETERS,
      answer,
      isStreamed: this.#schema === undefined,
    });
  }

  #collectionOperations(verbs: readonly string[]): Operation[] {
    const found: Operation[] = [];
    const names = this.#names;
    if (verbs.includes('list')) found.push(this.#list('list', ''));
    if (verbs.includes('create')) {
      found.push(
        this.#operation({
          method: 'post',
          id: names.of('create', '', ''),
          action: 'post',
          parameters: WRITE_PARAMETERS,
          body: this.#own,
          codes: ['201', '202'],
        }),
      );
    }
    if (verbs.includes('deletecollection')) {
      found.push(
        this.#operation({
          method: 'delete',
          id: names.of('delete', 'Collection', ''),
          action: 'deletecollection',
          parameters: this.#schema === undefined ? DELETE_LIST_PARAMETERS : LIST_PARAMETERS,
          body: this.#schema === undefined ? `${META}.DeleteOptions` : '',
          answer: `${META}.Status`,
        }),
      );
    }
    return found;
  }

  #itemOperations(
    verbs: readonly string[],
    target: Target,
    schema: string,
    suffix: string,
  ): Operation[] {
    const found: Operation[] = [];
    const add = (
      operation: Partial<Operation> & Pick<Operation, 'method' | 'action'>,
      verb: string,
    ) => {
      const id = this.#names.of(verb, '', suffix);
      found.push(this.#operation({ id, target, answer: schema, ...operation }));
    };
    const isCustom = this.#schema !== undefined;
    if (verbs.includes('get')) {
      const parameters = isCustom ? CUSTOM_GET_PARAMETERS : [];
      add({ method: 'get', action: 'get', parameters }, 'read');
    }
    if (verbs.includes('update')) {
      const parameters = WRITE_PARAMETERS;
      add({ method: 'put', action: 'put', parameters, body: schema, codes: ['201'] }, 'replace');
    }
    if (verbs.includes('delete')) {
      const own = RETURNED.has(this.#resource.storage.name) && !isCustom;
      const answer = own ? schema : `${META}.Status`;
      const body = `${META}.DeleteOptions`;
      const parameters = DELETE_PARAMETERS;
      add(
        { method: 'delete', action: 'delete', parameters, body, answer, codes: ['202'] },
        'delete',
      );
    }
    if (verbs.includes('patch')) {
      const parameters: readonly Parameter[] = [...WRITE_PARAMETERS, ['force', 'boolean', 'query']];
      const body = `${META}.Patch`;
      const codes = isCustom ? [] : ['201'];
      add({ method: 'patch', action: 'patch', parameters, body, codes }, 'patch');
    }
    return found;
  }

  #addSubresource(paths: JsonObject, item: string, sub: Subresource): void {
    const suffix = this.#names.suffixOf(sub.name);
    const path = `${item}/${sub.name}`;
    const isOwn = sub.kind === this.#resource.kind && sub.group === this.#resource.group;
    const schema = isOwn ? this.#own : schemaOf(sub);
    const options = optionParameters(this.#resource, sub);
    if (isConnection(sub)) {
      const methods = sub.name === 'proxy' ? PROXY_METHODS : ['get', 'post'];
      const operations = (ending: string, more: readonly Parameter[]): Operation[] =>
        methods.map((method) =>
          this.#operation({
            method,
            id: this.#names.of(`connect`, this.#names.methodOf(method), suffix + ending),
            action: 'connect',
            target: sub,
            parameters: [...options, ...more],
            answer: '',
          }),
        );
      this.#addPath(paths, path, operations('', []));
      if (sub.name !== 'proxy') return;
      this.#addPath(paths, `${path}/{path}`, operations('WithPath', []));
      return;
    }
    const target = this.#schema === undefined ? sub : this.#resource;
    const operations: Operation[] = this.#itemOperations(sub.verbs, target, schema, suffix).map(
      (one) => ({
        ...one,
        parameters: [...one.parameters, ...options],
        answer: sub.name === 'log' ? '' : one.answer,
      }),
    );
    if (sub.verbs.includes('create')) {
      operations.push(
        this.#operation({
          method: 'post',
          id: this.#names.of('create', '', suffix),
          action: 'post',
          target: sub,
          parameters: WRITE_PARAMETERS,
          body: schema,
          answer: schema,
          codes: ['201', '202'],
        }),
      );
    }
    this.#addPath(paths, path, operations);
  }

  #addWatches(paths: JsonObject, plural: string): void {
    const { namespaced } = this.#resource;
    const base = `${this.#base}/watch`;
    const inner = namespaced ? `${base}/namespaces/{namespace}` : base;
    const watch = (action: string, suffix: string): Operation =>
      this.#operation({
        method: 'get',
        id: this.#names.of('watch', '', suffix),
        action,
        parameters: LIST_PARAMETERS,
        answer: `${META}.WatchEvent`,
        isStreamed: true,
      });
    this.#addPath(paths, `${inner}/${plural}`, [watch('watchlist', 'List')]);
    this.#addPath(paths, `${inner}/${plural}/{name}`, [watch('watch', '')]);
    if (!namespaced) return;
    this.#addPath(paths, `${base}/${plural}`, [watch('watchlist', 'ListForAllNamespaces')]);
  }

  #addPath(paths: JsonObject, path: string, operations: readonly Operation[]): void {
    if (operations.length === 0) return;
    const common = commonOf(
      operations.map(({ parameters }) => parameters),
      pathParameters(
        path,
        operations.every(({ action }) => action === 'connect'),
      ),
    );
    const members: JsonObject = {};
    for (const operation of operations) {
      const parameters = withoutCommon(operation.parameters, common);
      putMember(members, operation.method, this.#members(path, operation, parameters));
    }
    if (common.length > 0) {
      const place = this.#placeOf(path, '');
      members['parameters'] = common.map((one) => parameterOf(one, place, this.#dialect));
    }
    putMember(paths, path, members);
  }

  #members(path: string, operation: Operation, parameters: readonly Parameter[]): JsonObject {
    const { method, action, target, body, answer, isStreamed } = operation;
    const { group, version, kind } = target;
    const bodyTypes = action === 'connect' ? ['*/*'] : this.#bodyTypes(method);
    const place = this.#placeOf(path, method);
    const written: JsonValue[] = parameters.map((one) => parameterOf(one, place, this.#dialect));
    const subresource = subresourceOf(path);
    const isWatched = this.#schema === undefined && this.#resource.verbs.includes('watch');
    const words = { method, action, kind: this.#resource.kind, subresource, isWatched };
    const members: JsonObject = { description: operationWords(words) };
    if (!this.#dialect.wrapsReferences) {
      const types = answer === '' ? this.#textTypes(operation) : this.#answerTypes(isStreamed);
      putMembers(members, this.#media(bodyTypes, types));
    }
    members['tags'] = [this.#names.tag];
    members['operationId'] = operation.id;
    if (body !== '') this.#addBody(members, written, method, body, bodyTypes);
    if (written.length > 0) members['parameters'] = written;
    const responses: JsonObject = {};
    for (const code of ['200', ...operation.codes]) {
      putMember(responses, code, this.#answer(code, answer, isStreamed, operation));
    }
    members['responses'] = { ...responses, '401': unauthorized() };
    members['x-kubernetes-action'] = action;
    members['x-kubernetes-group-version-kind'] = { group, kind, version };
    return members;
  }

  #placeOf(path: string, method: string): ParameterPlace {
    const { resource, kind, subresources } = this.#resource;
    const sub = subresources.get(subresourceOf(path));
    const named = this.#schema === undefined ? sub : undefined;
    return { kind: named?.kind ?? kind, resource: `${resource}/${sub?.name ?? ''}`, method };
  }

  #bodyTypes(method: string): readonly string[] {
    if (method === 'patch') return this.#schema === undefined ? PATCH_TYPES : CUSTOM_PATCH_TYPES;
    return this.#schema === undefined ? ['*/*'] : CUSTOM_TYPES;
  }

  #answerTypes(isStreamed: boolean): readonly string[] {
    return isStreamed ? [...this.#types, ...WATCHED_TYPES] : this.#types;
  }

  #textTypes({ action }: Operation): readonly string[] {
    return action === 'connect' ? ['*/*'] : ['text/plain', ...OBJECT_TYPES];
  }

  #media(consumes: readonly string[], produces: readonly string[]): JsonObject {
    return { consumes: [...consumes], produces: [...produces], schemes: ['https'] };
  }

  #addBody(
    members: JsonObject,
    parameters: JsonValue[],
    method: string,
    name: string,
    types: readonly string[],
  ): void {
    const schema: JsonObject = { $ref: this.#dialect.prefix + name };
    const required = method === 'delete' ? {} : { required: true };
    if (!this.#dialect.wrapsReferences) {
      parameters.unshift({ name: 'body', in: 'body', ...required, schema });
      return;
    }
    const content = Object.fromEntries(types.map((type) => [type, { schema }]));
    members['requestBody'] = { content, ...required };
  }

  #answer(code: string, name: string, isStreamed: boolean, operation?: Operation): JsonObject {
    const description = ownMember(ANSWERS, code) ?? '';
    const schema: JsonObject =
      name === '' ? { type: 'string' } : { $ref: this.#dialect.prefix + name };
    if (!this.#dialect.wrapsReferences) return { description, schema };
    const types =
      name === '' && operation !== undefined
        ? this.#textTypes(operation)
        : this.#answerTypes(isStreamed);
    return {
      description,
      content: Object.fromEntries(types.map((type) => [type, { schema }])),
    };
  }
}

/** `status` of `/api/v1/nodes/{name}/status`; '' of what is no part of an object. */
function subresourceOf(path: string): string {
  return /\{name\}\/(\w+)/.exec(path)?.[1] ?? '';
}

/** Kinds of which a deletion answers the object that is gone, not a Status. */
const RETURNED: ReadonlySet<string> = new Set([
  ...['persistentvolumeclaims', 'persistentvolumes', 'pods', 'podtemplates', 'resourcequotas'],
  ...['serviceaccounts', 'services', 'csidrivers.storage.k8s.io', 'csinodes.storage.k8s.io'],
  ...['storageclasses.storage.k8s.io', 'volumeattachments.storage.k8s.io'],
  ...['volumeattributesclasses.storage.k8s.io', 'deviceclasses.resource.k8s.io'],
  ...['resourceclaims.resource.k8s.io', 'resourceclaimtemplates.resource.k8s.io'],
  'resourceslices.resource.k8s.io',
]);

function unauthorized(): JsonObject {
  return { description: 'Unauthorized' };
}

function schemaOf({ group, version, kind }: Target): string {
  const type = findTypeOfKind(group === '' ? version : `${group}/${version}`, kind);
  return type === undefined ? '' : schemaName(type);
}

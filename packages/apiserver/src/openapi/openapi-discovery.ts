/** Paths of OpenAPI documents that are of no resource: discovery, version, issuers of tokens. */
import { ownMember, putMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { descriptionOf, worded } from './openapi-descriptions.ts';
import { findType } from '@megaplane/machinery/schema';
import { groupCamel } from './openapi-names.ts';
import { addSchemas, META_PACKAGE, type Dialect } from './openapi-schemas.ts';
import { VERSION } from '../release.ts';

const ALL_TYPES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const JSON_ALONE = ['application/json'];
const INFO = 'io.k8s.apimachinery.pkg.version.Info';
/** What `/version` always says. */
const INFO_REQUIRED = [
  ...['major', 'minor', 'gitVersion', 'gitCommit', 'gitTreeState', 'buildDate', 'goVersion'],
  ...['compiler', 'platform'],
];

interface Lookup {
  readonly tag: string;
  readonly id: string;
  readonly description: string;
  /** Schema of the answer; '' for text. */
  readonly answer: string;
  readonly types: readonly string[];
}

const LOOKUPS: Readonly<Record<string, Lookup>> = {
  api: {
    tag: 'core',
    id: 'getCoreAPIVersions',
    description: 'get available API versions',
    answer: `${META_PACKAGE}.v1.APIVersions`,
    types: ALL_TYPES,
  },
  apis: {
    tag: 'apis',
    id: 'getAPIVersions',
    description: 'get available API versions',
    answer: `${META_PACKAGE}.v1.APIGroupList`,
    types: ALL_TYPES,
  },
  version: {
    tag: 'version',
    id: 'getCodeVersion',
    description: 'get the version information for this server',
    answer: INFO,
    types: JSON_ALONE,
  },
  '.well-known/openid-configuration': {
    tag: 'WellKnown',
    id: 'getServiceAccountIssuerOpenIDConfiguration',
    description:
      "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
    answer: '',
    types: JSON_ALONE,
  },
  'openid/v1/jwks': {
    tag: 'openid',
    id: 'getServiceAccountIssuerOpenIDKeyset',
    description:
      'get service account issuer OpenID JSON Web Key Set ' +
      '(contains public token verification keys)',
    answer: '',
    types: ['application/jwk-set+json'],
  },
};

/** Names of documents that have one such path and nothing else, without those of groups. */
export const LOOKUP_NAMES: readonly string[] = Object.keys(LOOKUPS);

/** What the document `name` (`version`, `apis/apps`) is of; undefined where it is of resources. */
function lookupOf(name: string): Lookup | undefined {
  const [first, group, version] = name.split('/');
  if (first !== 'apis' || group === undefined || version !== undefined)
    return ownMember(LOOKUPS, name);
  const camel = groupCamel(group);
  return {
    tag: camel.charAt(0).toLowerCase() + camel.slice(1),
    id: `get${camel}APIGroup`,
    description: 'get information of a group',
    answer: `${META_PACKAGE}.v1.APIGroup`,
    types: ALL_TYPES,
  };
}

/** The one path of the document `name`; none where it is of resources. */
export function lookupPaths(name: string, dialect: Dialect): JsonObject {
  const lookup = lookupOf(name);
  if (lookup === undefined) return {};
  const { description, tag, id, answer, types } = lookup;
  const schema: JsonObject = answer === '' ? { type: 'string' } : { $ref: dialect.prefix + answer };
  const unauthorized = { description: 'Unauthorized' };
  const get: JsonObject = { description, tags: [tag], operationId: id };
  if (dialect.wrapsReferences) {
    const content = Object.fromEntries(types.map((type) => [type, { schema }]));
    get['responses'] = { '200': { description: 'OK', content }, '401': unauthorized };
  } else {
    if (types === ALL_TYPES) get['consumes'] = [...types];
    get['produces'] = [...types];
    get['schemes'] = ['https'];
    get['responses'] = { '200': { description: 'OK', schema }, '401': unauthorized };
  }
  return { [`/${name}/`]: { get } };
}

/** The schemas that the path mentions. */
export function lookupSchemas(name: string, dialect: Dialect): JsonObject {
  const schemas: JsonObject = {};
  const answer = lookupOf(name)?.answer ?? '';
  if (answer === INFO) schemas[INFO] = infoSchema(dialect);
  const type = findType(`meta.v1.${answer.slice(answer.lastIndexOf('.') + 1)}`);
  if (answer.startsWith(META_PACKAGE) && type !== undefined) addSchemas(schemas, type, dialect);
  return schemas;
}

function infoSchema({ wrapsReferences }: Dialect): JsonObject {
  const { text, fields } = descriptionOf(INFO);
  const properties: JsonObject = {};
  for (const name of Object.keys(VERSION).toSorted()) {
    const isAlways = wrapsReferences && INFO_REQUIRED.includes(name);
    putMember(properties, name, {
      ...worded(fields.get(name)),
      type: 'string',
      ...(isAlways ? { default: '' } : {}),
    });
  }
  return { ...worded(text), type: 'object', required: INFO_REQUIRED, properties };
}

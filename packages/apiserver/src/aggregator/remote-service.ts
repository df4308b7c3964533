/** One APIService that somebody else serves, as its object says, and what is known of it. */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { RemotePublications, type RemoteSpec } from './remote-publications.ts';
import { timestamp } from '../timestamp.ts';

export interface Availability {
  readonly isAvailable: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Until it was looked at, nobody is sent there. */
const UNKNOWN: Availability = { isAvailable: false, reason: 'Unknown', message: 'not checked yet' };

export class RemoteService {
  readonly spec: RemoteSpec;
  availability: Availability = UNKNOWN;
  /** As discovery has them, from the last answer; null where that told none. */
  resources: readonly JsonObject[] | null = null;
  /** They are from its own aggregated discovery. */
  isAggregated = false;
  readonly publications: RemotePublications = new RemotePublications();
  checkedMs = 0;
  isChecking = false;

  constructor(spec: RemoteSpec) {
    this.spec = spec;
  }
}

const PORT = 443;

/** The spec of an APIService that names a service; null for those of this server itself. */
export function remoteSpecOf(object: JsonObject): RemoteSpec | null {
  const service = objectAt(object, 'spec', 'service');
  if (service === undefined) return null;
  const spec = objectAt(object, 'spec') ?? {};
  return {
    name: stringAt(object, 'metadata', 'name'),
    group: stringAt(spec, 'group'),
    version: stringAt(spec, 'version'),
    namespace: stringAt(service, 'namespace'),
    service: stringAt(service, 'name'),
    port: numberAt(service, 'port') || PORT,
    caBundle: Buffer.from(stringAt(spec, 'caBundle'), 'base64').toString('utf8'),
    isInsecure: spec['insecureSkipTLSVerify'] === true,
    groupPriority: numberAt(spec, 'groupPriorityMinimum'),
    versionPriority: numberAt(spec, 'versionPriority'),
  };
}

/** The object with the condition in its status, or null where it says so already. */
export function withAvailability(
  object: JsonObject,
  { isAvailable, reason, message }: Availability,
  nowMs: number,
): JsonObject | null {
  const status = isAvailable ? 'True' : 'False';
  const conditions = listAt(object, 'status', 'conditions').filter(isObject);
  const before = conditions.find((one) => one['type'] === 'Available');
  const isSame =
    before?.['status'] === status && before['reason'] === reason && before['message'] === message;
  if (isSame) return null;
  const lastTransitionTime =
    before?.['status'] === status ? (before['lastTransitionTime'] ?? null) : timestamp(nowMs);
  const condition: JsonObject = { type: 'Available', status, lastTransitionTime, reason, message };
  const others: JsonValue[] = conditions.filter((one) => one !== before);
  const next = { ...objectAt(object, 'status'), conditions: [...others, condition] };
  return { ...object, status: next };
}

/** Resources of an APIResourceList as aggregated discovery has them; null where it is none. */
export function aggregatedResources(list: JsonObject | null): JsonObject[] | null {
  if (list === null) return null;
  const entries = listAt(list, 'resources').filter(isObject);
  const own = new Map<string, Discovered>();
  for (const entry of entries) {
    const name = stringAt(entry, 'name');
    if (!name.includes('/')) own.set(name, discovered(entry));
  }
  for (const entry of entries) {
    const [, name = '', subresource] = /^([^/]*)\/(.*)$/s.exec(stringAt(entry, 'name')) ?? [];
    if (subresource === undefined) continue;
    let parent = own.get(name);
    if (parent === undefined) own.set(name, (parent = bareResource(name, scopeOf(entry))));
    if (parent.scope !== scopeOf(entry)) return null;
    const responseKind = stringAt(entry, 'kind') === '' ? NAMELESS : kindOf(entry);
    parent.subresources.push({ subresource, responseKind, verbs: [...listAt(entry, 'verbs')] });
  }
  return [...own.values()].map(({ subresources, ...rest }) => {
    return subresources.length === 0 ? rest : { ...rest, subresources };
  });
}

type Discovered = JsonObject & { readonly scope: string; readonly subresources: JsonValue[] };

const NAMELESS: JsonObject = { group: '', version: '', kind: '' };

function discovered(entry: JsonObject): Discovered {
  const [shortNames, categories] = [listAt(entry, 'shortNames'), listAt(entry, 'categories')];
  return {
    resource: stringAt(entry, 'name'),
    responseKind: kindOf(entry),
    scope: scopeOf(entry),
    singularResource: stringAt(entry, 'singularName'),
    verbs: [...listAt(entry, 'verbs')],
    ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}),
    ...(categories.length > 0 ? { categories: [...categories] } : {}),
    subresources: [],
  };
}

/** Of a resource that only its parts are told of. */
function bareResource(resource: string, scope: string): Discovered {
  const responseKind = NAMELESS;
  return { resource, responseKind, scope, singularResource: '', verbs: null, subresources: [] };
}

function scopeOf(entry: JsonObject): string {
  return entry['namespaced'] === true ? 'Namespaced' : 'Cluster';
}

/** Without group and version where they are those of the list, as clients know. */
function kindOf(entry: JsonObject): JsonObject {
  const [group, version] = [stringAt(entry, 'group'), stringAt(entry, 'version')];
  return { group, version, kind: stringAt(entry, 'kind') };
}

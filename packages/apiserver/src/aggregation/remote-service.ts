/** One APIService that somebody else serves, as its object says, and what is known of it. */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { timestamp } from '../deletion.ts';
import { RemotePublications } from './remote-publications.ts';

/** What the spec says. */
export interface RemoteSpec {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
  /** PEM; '' takes the system's authorities. */
  readonly caBundle: string;
  readonly isInsecure: boolean;
  readonly groupPriority: number;
  readonly versionPriority: number;
}

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
  /** As discovery has them, from the last answer. */
  resources: readonly JsonObject[] = [];
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

/** Resources of an APIResourceList as aggregated discovery has them. */
export function aggregatedResources(
  list: JsonObject,
  { group, version }: RemoteSpec,
): JsonObject[] {
  const own = new Map<string, JsonObject & { subresources: JsonValue[] }>();
  const entries = listAt(list, 'resources').filter(isObject);
  const responseKind = (entry: JsonObject): JsonObject => ({
    group: stringAt(entry, 'group') || group,
    version: stringAt(entry, 'version') || version,
    kind: stringAt(entry, 'kind'),
  });
  for (const entry of entries) {
    const name = stringAt(entry, 'name');
    if (name.includes('/')) continue;
    const [shortNames, categories] = [listAt(entry, 'shortNames'), listAt(entry, 'categories')];
    own.set(name, {
      resource: name,
      responseKind: responseKind(entry),
      scope: entry['namespaced'] === true ? 'Namespaced' : 'Cluster',
      singularResource: stringAt(entry, 'singularName'),
      verbs: [...listAt(entry, 'verbs')],
      ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}),
      ...(categories.length > 0 ? { categories: [...categories] } : {}),
      subresources: [],
    });
  }
  for (const entry of entries) {
    const [name = '', subresource] = stringAt(entry, 'name').split('/');
    if (subresource === undefined) continue;
    const verbs = [...listAt(entry, 'verbs')];
    own.get(name)?.subresources.push({ subresource, responseKind: responseKind(entry), verbs });
  }
  return [...own.values()].map(({ subresources, ...rest }) => {
    return subresources.length === 0 ? rest : { ...rest, subresources };
  });
}

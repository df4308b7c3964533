/** Names of operations in OpenAPI documents: `readCoreV1NamespacedPodStatus`, tag `core_v1`. */
import type { Resource, Subresource } from '@megaplane/machinery/kinds';

/** Methods that a proxy passes on. */
export const PROXY_METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;
const CONNECTIONS: ReadonlySet<string> = new Set(['attach', 'exec', 'portforward', 'proxy']);

/** True for subresources that are a connection to something else. */
export function isConnection(sub: Subresource): boolean {
  return CONNECTIONS.has(sub.name) && sub.kind.endsWith('Options');
}

export class OperationNames {
  readonly tag: string;
  /** Of the list of the resources of the group and version. */
  readonly discovery: string;
  readonly #prefix: string;
  readonly #namespaced: string;
  readonly #kind: string;

  constructor({ group, version, namespaced, kind }: Resource) {
    const camel = groupCamel(group);
    this.#prefix = camel + capital(version);
    this.#namespaced = namespaced ? 'Namespaced' : '';
    this.#kind = kind;
    this.tag = `${camel.charAt(0).toLowerCase()}${camel.slice(1)}_${version}`;
    this.discovery = `get${this.#prefix}APIResources`;
  }

  /** `verb` and what is between it and the kind, and behind the kind. */
  of(verb: string, between: string, behind: string): string {
    const isEverywhere = behind.endsWith('ForAllNamespaces');
    const place = isEverywhere ? '' : this.#namespaced;
    return `${verb}${this.#prefix}${between}${place}${this.#kind}${behind}`;
  }

  /** `Status` of `status`. */
  suffixOf(subresource: string): string {
    return capital(subresource);
  }

  methodOf(method: string): string {
    return capital(method);
  }
}

/** `RbacAuthorization` of `rbac.authorization.k8s.io`. */
export function groupCamel(group: string): string {
  const short = group === '' ? 'core' : group.replace(/\.k8s\.io$/, '');
  return short
    .split(/[^A-Za-z0-9]+/)
    .map(capital)
    .join('');
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

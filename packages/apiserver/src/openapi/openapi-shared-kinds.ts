/**
 * Kinds that every group has: options of deletions, and events of watches. OpenAPI tells of which
 * groups and versions they are: in a document of built-in kinds of its own and the core's, in those
 * of custom resources and in version 2 of all that upstream's scheme knows, served or not.
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { META_PACKAGE, VERSION_2, type Dialect } from './openapi-schemas.ts';

const KINDS = ['DeleteOptions', 'WatchEvent'];

/** What upstream 1.36 has in its scheme; the core's own version comes first. */
const KNOWN = `admissionregistration.k8s.io/v1,v1alpha1,v1beta1 apps/v1,v1beta1,v1beta2
authentication.k8s.io/v1,v1alpha1,v1beta1 authorization.k8s.io/v1,v1beta1 autoscaling/v1,v2
batch/v1,v1beta1 certificates.k8s.io/v1,v1alpha1,v1beta1 coordination.k8s.io/v1,v1alpha2,v1beta1
discovery.k8s.io/v1,v1beta1 events.k8s.io/v1,v1beta1 extensions/v1beta1
flowcontrol.apiserver.k8s.io/v1,v1beta1,v1beta2,v1beta3 internal.apiserver.k8s.io/v1alpha1
networking.k8s.io/v1,v1beta1 node.k8s.io/v1,v1alpha1,v1beta1 policy/v1,v1beta1
rbac.authorization.k8s.io/v1,v1alpha1,v1beta1 resource.k8s.io/v1,v1alpha3,v1beta1,v1beta2
scheduling.k8s.io/v1,v1alpha2,v1beta1 storage.k8s.io/v1,v1alpha1,v1beta1
storagemigration.k8s.io/v1beta1`;

/** What only the schemes of the servers behind and before it have. */
const KNOWN_ELSEWHERE = `admission.k8s.io/v1,v1beta1 apiextensions.k8s.io/v1,v1beta1
apiregistration.k8s.io/v1,v1beta1 imagepolicy.k8s.io/v1alpha1`;

const CORE = ['', 'v1'] as const;

/** Writes it into the schemas of a part of a document; `own` is null where it is of many groups. */
export function tellSharedKinds(
  schemas: JsonObject,
  own: { readonly group: string; readonly version: string } | null,
  dialect: Dialect,
): void {
  for (const kind of KINDS) {
    const schema = ownMember(schemas, `${META_PACKAGE}.v1.${kind}`);
    if (!isObject(schema)) continue;
    const known = own === null || dialect === VERSION_2 ? everywhere(dialect) : ownOf(own);
    const told: JsonValue[] = known.map(([group, version]) => ({ group, kind, version }));
    schema['x-kubernetes-group-version-kind'] = told;
  }
}

type Pair = readonly [group: string, version: string];

function ownOf({ group, version }: { readonly group: string; readonly version: string }): Pair[] {
  return group === '' ? [CORE] : [CORE, [group, version]];
}

function everywhere(dialect: Dialect): Pair[] {
  const lines = dialect === VERSION_2 ? `${KNOWN} ${KNOWN_ELSEWHERE}` : KNOWN;
  const pairs = lines.split(/\s+/).flatMap((one) => {
    const [group = '', versions = ''] = one.split('/');
    return versions.split(',').map((version): Pair => [group, version]);
  });
  return [CORE, ...pairs.sort(([one], [other]) => (one < other ? -1 : Number(one > other)))];
}

/** Plugins that fill in what the cluster has a default for: storage and ingress classes. */
import { ownMember } from '@megaplane/base/members';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FollowedObjects } from '../../lister/followed-objects.ts';
import type { World } from '../../lister/world.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

interface DefaultClass {
  readonly name: string;
  readonly created: string;
}

function defaultClasses(
  world: World,
  group: string,
  plural: string,
  annotations: readonly string[],
): () => string {
  const classes = new FollowedObjects<DefaultClass | null>(world, group, plural, (object) => {
    const own = objectAt(object, 'metadata', 'annotations') ?? {};
    if (!annotations.some((annotation) => ownMember(own, annotation) === 'true')) return null;
    return {
      name: stringAt(object, 'metadata', 'name'),
      created: stringAt(object, 'metadata', 'creationTimestamp'),
    };
  });
  return () => {
    let best: DefaultClass | null = null;
    for (const one of classes.all()) {
      // the newest; of equal age the first by name, in whose order they come
      if (one !== null && (best === null || one.created > best.created)) best = one;
    }
    return best?.name ?? '';
  };
}

/** The object's spec with a field more, if it does not have it. */
function fill(object: JsonObject, field: string, value: string): void {
  if (value === '') return;
  const spec = objectAt(object, 'spec') ?? {};
  object['spec'] = { ...spec, [field]: value };
}

/** DefaultStorageClass: claims that name no class get the cluster's. */
export function defaultStorageClass(world: World): AdmissionPlugin {
  const find = defaultClasses(world, 'storage.k8s.io', 'storageclasses', [
    'storageclass.kubernetes.io/is-default-class',
    'storageclass.beta.kubernetes.io/is-default-class',
  ]);
  return {
    name: 'DefaultStorageClass',
    handles: ({ resource }, operation, subresource) =>
      resource.storage.name === 'persistentvolumeclaims' &&
      operation === 'CREATE' &&
      subresource === '',
    mutate: ({ object }) => {
      if (object === null) return null;
      const annotations = objectAt(object, 'metadata', 'annotations') ?? {};
      const isSaid =
        objectAt(object, 'spec')?.['storageClassName'] !== undefined ||
        annotations['volume.beta.kubernetes.io/storage-class'] !== undefined;
      if (!isSaid) fill(object, 'storageClassName', find());
      return null;
    },
    repeats: () => true,
  };
}

/** DefaultIngressClass: ingresses that name no class get the cluster's. */
export function defaultIngressClass(world: World): AdmissionPlugin {
  const find = defaultClasses(world, 'networking.k8s.io', 'ingressclasses', [
    'ingressclass.kubernetes.io/is-default-class',
  ]);
  return {
    name: 'DefaultIngressClass',
    handles: ({ resource }, operation, subresource) =>
      resource.storage.name === 'ingresses.networking.k8s.io' &&
      operation === 'CREATE' &&
      subresource === '',
    mutate: ({ object }) => {
      if (object === null) return null;
      const annotations = objectAt(object, 'metadata', 'annotations') ?? {};
      const isSaid =
        objectAt(object, 'spec')?.['ingressClassName'] !== undefined ||
        annotations['kubernetes.io/ingress.class'] !== undefined;
      if (!isSaid) fill(object, 'ingressClassName', find());
      return null;
    },
  };
}

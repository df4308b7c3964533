/** Images of pods by the names that nodes report them under. */
import type { PodObject } from './objects.ts';

/** `:latest` where no tag is given; registries are not made up. */
export function imageName(name: string): string {
  return name.lastIndexOf(':') <= name.lastIndexOf('/') ? `${name}:latest` : name;
}

/** Images that a pod mounts as volumes (KEP-4639). */
export function volumeImages({ spec }: PodObject): string[] {
  return (spec.volumes ?? []).flatMap(({ image }) =>
    image === undefined ? [] : [imageName(image.reference ?? '')],
  );
}

import { scoreEach, type Plugin } from '../plugin.ts';

const MEBIBYTE = 1024 * 1024;
const SIZE_MIN: number = 23 * MEBIBYTE;
const SIZE_MAX: number = 1000 * MEBIBYTE;

/** `:latest` where no tag is given; registries are not made up. */
export function imageName(name: string): string {
  return name.lastIndexOf(':') <= name.lastIndexOf('/') ? `${name}:latest` : name;
}

/** Prefers nodes that hold the pod's images, the more the more nodes hold them. */
export const imageLocality: Plugin = {
  name: 'ImageLocality',
  preScore({ pod }, snapshot) {
    const containers = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])];
    const images = containers.map(({ image }) => imageName(image ?? ''));
    const total = snapshot.nodes.length;
    const max = SIZE_MAX * containers.length;
    return scoreEach((node) => {
      let sum = 0;
      for (const image of images) {
        const state = node.images.get(image);
        if (state !== undefined) sum += Math.trunc(state.sizeBytes * (state.nodes / total));
      }
      const clamped = Math.min(Math.max(sum, SIZE_MIN), max);
      return Math.trunc((100 * (clamped - SIZE_MIN)) / (max - SIZE_MIN));
    });
  },
};

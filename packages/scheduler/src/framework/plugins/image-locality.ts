import { scoreEach } from '../plugin.ts';
import type { Filter, Plugin, PreScoreOutcome, Tally } from '../plugin.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import type { Snapshot } from '../snapshot.ts';
import { imageName, volumeImages } from '../../api/pod-images.ts';

/** What is tallied: nodes, with images or without. */
const NODES = 'nodes';
const MEBIBYTE = 1024 * 1024;
const SIZE_MIN: number = 23 * MEBIBYTE;
const SIZE_MAX: number = 1000 * MEBIBYTE;

/** Prefers nodes that hold the pod's images, the more the more nodes hold them. */
export class ImageLocality implements Plugin {
  readonly name = 'ImageLocality';
  readonly #countsVolumes: boolean;

  /** `countsVolumes`: images of volumes count as those of containers do (1.36). */
  constructor(countsVolumes: boolean) {
    this.#countsVolumes = countsVolumes;
  }

  scoreTally(_pod: PodInfo, { nodes, nodeCount }: Snapshot): Tally | null {
    return nodeCount === undefined ? new Map([[NODES, nodes.length]]) : null;
  }

  preScore(
    info: PodInfo,
    snapshot: Snapshot,
    _feasible: readonly NodeInfo[],
    _filter: Filter | null,
    tally: Tally | null = this.scoreTally(info, snapshot),
  ): PreScoreOutcome {
    const { pod } = info;
    const containers = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])];
    const images = containers.map(({ image }) => imageName(image ?? ''));
    if (this.#countsVolumes) images.push(...volumeImages(pod));
    const total = snapshot.nodeCount ?? tally?.get(NODES) ?? 0;
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
  }
}

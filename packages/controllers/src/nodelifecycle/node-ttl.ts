/**
 * For how long kubelets may keep what they have read of Secrets and ConfigMaps: an annotation of
 * every node, by the number of nodes. The steps are those of upstream's ttl-controller; they
 * overlap, lest a cluster between two of them write all its nodes again and again.
 */
interface Step {
  readonly least: number;
  readonly most: number;
  readonly seconds: number;
}

const STEPS: readonly Step[] = [
  { least: 0, most: 100, seconds: 0 },
  { least: 90, most: 500, seconds: 15 },
  { least: 450, most: 1000, seconds: 30 },
  { least: 900, most: 2000, seconds: 60 },
  { least: 1800, most: Infinity, seconds: 300 },
];

export class NodeTtl {
  #count = 0;
  #step = 0;

  /** What every node's annotation should say. */
  get seconds(): number {
    return STEPS[this.#step]?.seconds ?? 0;
  }

  nodeCame(): void {
    this.#count++;
    if (this.#count > (STEPS[this.#step]?.most ?? Infinity)) this.#step++;
  }

  nodeWent(): void {
    this.#count--;
    if (this.#count < (STEPS[this.#step]?.least ?? 0)) this.#step--;
  }
}

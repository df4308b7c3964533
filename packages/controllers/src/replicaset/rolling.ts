/**
 * What sets wait for: the end of the round that their Deployment is at. Each status of a set is a
 * step of a rollout; a Deployment that is at work on one would take the next two for one.
 */
export class Rolling {
  /** Keys of sets, by the key of the Deployment that they wait for. */
  readonly #waiting: Map<string, Set<string>> = new Map();
  /** The key of the Deployment of this uid, where it is at work. Told by who works on them. */
  workOf: (uid: string) => string | undefined = () => undefined;
  /** Works on a set again. Told by who works on sets. */
  wake: (key: string) => void = () => {};

  /** The set is worked on again once the next round of the Deployment has ended. */
  await(deployment: string, set: string): void {
    const keys = this.#waiting.get(deployment) ?? new Set();
    this.#waiting.set(deployment, keys.add(set));
  }

  /** A round of work on this Deployment is over. */
  ended(deployment: string): void {
    const keys = this.#waiting.get(deployment);
    if (keys === undefined) return;
    this.#waiting.delete(deployment);
    for (const key of keys) this.wake(key);
  }
}

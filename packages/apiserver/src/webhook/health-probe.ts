/** How other programs of the control plane are asked for their health. */

/** Asks whether a program on this machine is well, as upstream's prober does. */
export interface HealthProbe {
  /** `then` is called once, with what went wrong or null, and what the program said. */
  (port: number, then: (isWell: boolean, message: string) => void): void;
}

/** Constants of the autoscaler that kube-controller-manager has flags for. */

export interface AutoscalerRules {
  /** How often each autoscaler is looked at. */
  readonly syncMs: number;
  /** How far from 1 the ratio of use to target may be, where `behavior` says nothing. */
  readonly tolerance: number;
  /** The largest size asked for in this time is kept, where `behavior` says nothing. */
  readonly downscaleWindowMs: number;
  /** Use of processors in this time after the start of a pod that is not ready is not counted. */
  readonly cpuInitializationMs: number;
  /** A pod that was never ready for so long after its start has not become ready yet. */
  readonly initialReadinessMs: number;
}

export const AUTOSCALER_RULES: AutoscalerRules = {
  syncMs: 15_000,
  tolerance: 0.1,
  downscaleWindowMs: 300_000,
  cpuInitializationMs: 300_000,
  initialReadinessMs: 30_000,
};

/**
 * All checks of the certification, in their order. Numbers are those of the published catalogue of
 * 92 behaviours (section 5.2), whose wording is its own; a check without a number is ours.
 */
import { CONCURRENCY_CHECKS, FENCING_CHECKS } from './certify-fencing.ts';
import { DURABLE_CHECKS, FAULT_CHECKS, SCALE_CHECKS } from './certify-lanes.ts';
import { LIFECYCLE_CHECKS, TRANSITION_CHECKS } from './certify-lifecycle.ts';
import { RANDOM_CHECKS } from './certify-random.ts';
import { FIELD_CHECKS, LIST_CHECKS, METADATA_CHECKS } from './certify-records.ts';
import type { Check } from './certify-bench.ts';

export const CHECKS: readonly Check[] = [
  ...LIFECYCLE_CHECKS,
  ...TRANSITION_CHECKS,
  ...FENCING_CHECKS,
  ...CONCURRENCY_CHECKS,
  ...METADATA_CHECKS,
  ...FAULT_CHECKS,
  ...FIELD_CHECKS,
  ...LIST_CHECKS,
  ...DURABLE_CHECKS,
  ...SCALE_CHECKS,
  ...RANDOM_CHECKS,
];

/** What became of one try to place a pod. */
import type { Failure } from '../placement/topology/failure.ts';
import type { Reservation } from '../framework/reservation.ts';

export type Attempt =
  | {
      readonly kind: 'bind';
      readonly id: number;
      readonly node: number;
      /** To be done before the pod is bound. */
      readonly reservations: readonly Reservation[];
    }
  | {
      readonly kind: 'failed';
      readonly id: number;
      readonly failure: Failure;
      /** Pods that lost their claim to the node that this one waits for now. */
      readonly displaced: readonly number[];
    };

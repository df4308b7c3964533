/** Controllers that need no more than informers and the pods: one row each. */
import type { Announce } from './announce.ts';
import { AutoscalerPart } from './autoscaling/autoscaler-part.ts';
import { MirroringPart } from './mirroring/mirroring-part.ts';
import type { ControllerName } from './options.ts';
import type { PodRows } from './pod-rows.ts';
import { BinderPart } from './volume/binder-part.ts';
import type { WorkloadPart, WorkloadsOptions } from './workloads.ts';

/** What a row is given. `announce` is that of its component; `pods` makes the table of pods. */
interface PartContext extends Omit<WorkloadsOptions, 'announce'> {
  readonly announce: Announce;
  readonly pods: () => PodRows;
}

interface Row {
  /** Who the events come from. */
  readonly component: string;
  readonly make: (context: PartContext) => WorkloadPart;
}

const ROWS: Readonly<Partial<Record<ControllerName, Row>>> = {
  'persistentvolume-binder-controller': {
    component: 'persistentvolume-controller',
    make: (context) => new BinderPart({ ...context, pods: context.pods() }),
  },
  'endpointslice-mirroring-controller': {
    component: 'endpoint-slice-mirroring-controller',
    make: (context) => new MirroringPart(context),
  },
  'horizontal-pod-autoscaler-controller': {
    component: 'horizontal-pod-autoscaler',
    make: (context) => new AutoscalerPart(context),
  },
};

export function simpleParts(options: WorkloadsOptions, pods: () => PodRows): WorkloadPart[] {
  return Object.entries(ROWS)
    .filter(([name]) => options.chosen.has(name as ControllerName))
    .map(([, { component, make }]) =>
      make({ ...options, pods, announce: options.announce(component) }),
    );
}

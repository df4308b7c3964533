import { filterEach, unresolvable, type Plugin } from '../plugin.ts';
import { isTolerated } from './taint-toleration.ts';

const CORDON_TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
const REJECTION = unresolvable('node(s) were unschedulable');

/** Keeps pods off cordoned nodes, unless they tolerate the taint that says the same. */
export const nodeUnschedulable: Plugin = {
  name: 'NodeUnschedulable',
  preFilter(pod) {
    const toleratesCordon = isTolerated(CORDON_TAINT, pod.pod.spec.tolerations);
    return filterEach(({ node }) =>
      node.spec?.unschedulable === true && !toleratesCordon ? REJECTION : null,
    );
  },
};

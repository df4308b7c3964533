import { SKIP, unschedulable, type Plugin } from '../plugin.ts';

const UNSUPPORTED = 'claims for devices (spec.resourceClaims) are not supported yet';

/**
 * Of claims for devices, only what shows on pods without any: the text of a failed cycle. Pods
 * with claims are refused, for a node without their devices would be worse than none.
 */
export const dynamicResources: Plugin = {
  name: 'DynamicResources',
  preFilter({ pod }) {
    if ((pod.spec.resourceClaims ?? []).length === 0) return SKIP;
    return { kind: 'rejected', rejection: { code: 'error', reasons: [UNSUPPORTED] } };
  },
  postFilter({ isCutShort, cycle }) {
    if (isCutShort) {
      return { kind: 'rejected', rejection: { code: 'error', reasons: ['not found'] } };
    }
    const hasClaims = (cycle.pod.pod.spec.resourceClaims ?? []).length > 0;
    const text = hasClaims ? 'still not schedulable' : 'no new claims to deallocate';
    return { kind: 'rejected', rejection: unschedulable(text) };
  },
};

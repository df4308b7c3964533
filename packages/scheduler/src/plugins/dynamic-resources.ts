import { unschedulable, type Plugin } from '../plugin.ts';

/** Of claims for devices, only what shows on pods without any: the text of a failed cycle. */
export const dynamicResources: Plugin = {
  name: 'DynamicResources',
  postFilter({ isCutShort, cycle }) {
    if (isCutShort) {
      return { kind: 'rejected', rejection: { code: 'error', reasons: ['not found'] } };
    }
    const hasClaims = (cycle.pod.pod.spec.resourceClaims ?? []).length > 0;
    const text = hasClaims ? 'still not schedulable' : 'no new claims to deallocate';
    return { kind: 'rejected', rejection: unschedulable(text) };
  },
};

import type { Plugin } from '../plugin.ts';

export const schedulingGates: Plugin = {
  name: 'SchedulingGates',
  preEnqueue({ pod }) {
    const gates = pod.spec.schedulingGates ?? [];
    if (gates.length === 0) return null;
    return `waiting for scheduling gates: [${gates.map(({ name }) => name).join(' ')}]`;
  },
};

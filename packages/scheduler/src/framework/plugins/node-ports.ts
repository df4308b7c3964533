import { filterEach, SKIP, unschedulable, type Plugin } from '../plugin.ts';

const REJECTION = unschedulable("node(s) didn't have free ports for the requested pod ports");

export const nodePorts: Plugin = {
  name: 'NodePorts',
  preFilter({ ports }) {
    if (ports.length === 0) return SKIP;
    return filterEach((node) => (ports.some((port) => node.isPortTaken(port)) ? REJECTION : null));
  },
};

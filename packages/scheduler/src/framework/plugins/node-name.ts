import { filterEach, unresolvable, type Plugin } from '../plugin.ts';

const REJECTION = unresolvable("node(s) didn't match the requested node name");

/** Hardly ever seen: pods that name a node are not scheduled at all. */
export const nodeName: Plugin = {
  name: 'NodeName',
  preFilter({ nodeName: wanted }) {
    return filterEach(({ name }) => (wanted === '' || wanted === name ? null : REJECTION));
  },
};

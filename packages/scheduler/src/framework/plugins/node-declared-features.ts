import { filterEach, SKIP, unresolvable, type Plugin } from '../plugin.ts';
import { requiredFeatures } from '../../api/declared-features.ts';

const REJECTION = unresolvable("node(s) didn't match Pod's required features");

/** Keeps pods off nodes whose kubelet does not tell that it can do what they ask for. */
export const nodeDeclaredFeatures: Plugin = {
  name: 'NodeDeclaredFeatures',
  preFilter({ pod }) {
    const required = requiredFeatures(pod);
    if (required.length === 0) return SKIP;
    return filterEach(({ node }) => {
      const declared = node.status?.declaredFeatures ?? [];
      return required.every((feature) => declared.includes(feature)) ? null : REJECTION;
    });
  },
};

import type { Taint, Toleration } from '../../api/objects.ts';
import { filterEach, normalizeByMax, unresolvable, type Plugin } from '../plugin.ts';

const REJECTION = unresolvable('node(s) had untolerated taint(s)');

/** Core rule of API v1: effect and key match when empty, the value only for `Equal`. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { effect = '', key = '', operator = '', value = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return (operator === '' || operator === 'Equal') && value === (taint.value ?? '');
}

export function isTolerated(taint: Taint, tolerations: readonly Toleration[] | undefined): boolean {
  return (tolerations ?? []).some((toleration) => tolerates(toleration, taint));
}

/** Whether a taint keeps pods away, rather than being a preference. */
export function isHardTaint({ effect }: Taint): boolean {
  return effect === 'NoSchedule' || effect === 'NoExecute';
}

export function hasUntolerated(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
): boolean {
  return (taints ?? []).some((taint) => isHardTaint(taint) && !isTolerated(taint, tolerations));
}

/** PreferNoSchedule taints that nothing tolerates; the raw score, less is better. */
export function softTaints(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
): number {
  const soft = (tolerations ?? []).filter(
    ({ effect = '' }) => effect === '' || effect === 'PreferNoSchedule',
  );
  return (taints ?? []).filter(
    (taint) => taint.effect === 'PreferNoSchedule' && !isTolerated(taint, soft),
  ).length;
}

export const taintToleration: Plugin = {
  name: 'TaintToleration',
  preFilter({ pod }) {
    return filterEach(({ node }) =>
      hasUntolerated(node.spec?.taints, pod.spec.tolerations) ? REJECTION : null,
    );
  },
  preScore({ pod }) {
    return {
      kind: 'run',
      scorer: {
        score: ({ node }) => softTaints(node.spec?.taints, pod.spec.tolerations),
        normalize: (raw, range) => normalizeByMax(raw, true, range),
      },
    };
  },
};

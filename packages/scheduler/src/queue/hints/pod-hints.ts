/** Pods that take a node, leave one or change there, by the plugin that rejected another. */
import { isDeepStrictEqual } from 'node:util';
import { GANG_SCHEDULING } from '../../podgroup/gang-cycle.ts';
import type { NodeInfo } from '../../framework/node-info.ts';
import type { Labels } from '../../api/objects.ts';
import { selects, type HostPort, type PodInfo, type PodTerm } from '../../framework/pod-info.ts';
import { ownRules, type SpreadRule } from '../../framework/plugins/spread-rules.ts';
import { isCounted, volumesOf } from '../../framework/volumes.ts';
import { sharesDisk, usedClaims } from '../../framework/plugins/volume-restrictions.ts';
import type { HintContext, Hints } from './hint.ts';

const ALWAYS = (): boolean => true;
const REQUIRED = 'DoNotSchedule';

function meet(one: HostPort, other: HostPort): boolean {
  if (one.protocol !== other.protocol || one.port !== other.port) return false;
  return one.ip === other.ip || one.ip === '0.0.0.0' || other.ip === '0.0.0.0';
}

function matches(term: PodTerm, pod: PodInfo, context: HintContext): boolean {
  const { namespaceSelector } = term;
  const labels = (): Labels | undefined => context.namespaceLabels(pod.namespace);
  const isInReach =
    term.namespaces.has(pod.namespace) ||
    (namespaceSelector !== null && selects(namespaceSelector, labels()));
  return isInReach && selects(term.selector, pod.labels);
}

/** One pod must satisfy all terms of affinity. */
function isWanted(pod: PodInfo, other: PodInfo, context: HintContext): boolean {
  const terms = pod.requiredAffinity;
  return terms.length > 0 && terms.every((term) => matches(term, other, context));
}

function isShunned(pod: PodInfo, other: PodInfo, context: HintContext): boolean {
  return pod.requiredAntiAffinity.some((term) => matches(term, other, context));
}

/** Whether the constraints that rejected a pod may see a difference. */
function isSpreadOtherwise(pod: PodInfo, sees: (rules: readonly SpreadRule[]) => boolean): boolean {
  const rules = ownRules(pod, REQUIRED);
  // Those of the profile are not known here.
  return rules.length === 0 || sees(rules);
}

function isCountedBy(pod: PodInfo, other: PodInfo): boolean {
  if (pod.namespace !== other.namespace) return false;
  return isSpreadOtherwise(pod, (rules) =>
    rules.some(({ selector }) => selects(selector, other.labels)),
  );
}

function hasKeys(rules: readonly SpreadRule[], { labels }: NodeInfo): boolean {
  return rules.every(({ topologyKey }) => labels[topologyKey] !== undefined);
}

function isDomainFor(pod: PodInfo, node: NodeInfo): boolean {
  return isSpreadOtherwise(pod, (rules) => hasKeys(rules, node));
}

export const POD_HINTS: Readonly<Record<string, Hints>> = {
  // What its pods lack together is not known of each: any room may do.
  [GANG_SCHEDULING]: { nodeAdded: ALWAYS, nodeChanged: ALWAYS, podRemoved: ALWAYS },
  NodeResourcesFit: { podRemoved: ALWAYS },
  NodePorts: {
    podRemoved: ({ ports }, other) =>
      ports.some((one) => other.ports.some((two) => meet(one, two))),
  },
  VolumeRestrictions: {
    podRemoved(pod, other) {
      if (pod.namespace !== other.namespace) return false;
      const claims = new Set(usedClaims(other));
      return usedClaims(pod).some((name) => claims.has(name)) || sharesDisk(pod, other);
    },
  },
  NodeVolumeLimits: { podRemoved: (_pod, other) => volumesOf(other).some(isCounted) },
  PodTopologySpread: {
    nodeAdded: isDomainFor,
    nodeRemoved: isDomainFor,
    nodeChanged: (pod, before, after) =>
      isSpreadOtherwise(pod, (rules) => {
        if (hasKeys(rules, before) !== hasKeys(rules, after)) return true;
        if (!hasKeys(rules, after)) return false;
        if (!isDeepStrictEqual(before.node.spec?.taints, after.node.spec?.taints)) return true;
        return rules.some(
          (rule) =>
            before.labels[rule.topologyKey] !== after.labels[rule.topologyKey] ||
            rule.includes(before) !== rule.includes(after),
        );
      }),
    podAdded: isCountedBy,
    podRemoved: isCountedBy,
    podChanged: (pod, before, after) =>
      pod.namespace === after.namespace &&
      isSpreadOtherwise(pod, (rules) =>
        rules.some(
          ({ selector }) => selects(selector, before.labels) !== selects(selector, after.labels),
        ),
      ),
  },
  InterPodAffinity: {
    // Who wants nobody near may go there unless it is terms of others that keep it off.
    nodeAdded: ({ requiredAffinity: wanted }, { labels }) =>
      wanted.length === 0 || wanted.some(({ topologyKey }) => labels[topologyKey] !== undefined),
    // Terms of others may be about any label.
    nodeChanged: (_pod, before, after) => !isDeepStrictEqual(before.labels, after.labels),
    podAdded: isWanted,
    podRemoved: (pod, other, context) =>
      isShunned(pod, other, context) || isShunned(other, pod, context),
    podChanged(pod, before, after, context) {
      if (!isWanted(pod, before, context) && isWanted(pod, after, context)) return true;
      // Another term may be about the same pod, but about fewer nodes.
      return pod.requiredAntiAffinity.some(
        (term) => matches(term, before, context) && !matches(term, after, context),
      );
    },
  },
};

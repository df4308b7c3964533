import { fitErrorText } from '../fit-error.ts';
import type { NodeInfo } from '../node-info.ts';
import type { BudgetObject } from '../../api/objects.ts';
import type { PodInfo } from '../pod-info.ts';
import {
  unschedulable,
  type Candidate,
  type Plugin,
  type PostFilterOutcome,
  type FailedCycle,
} from '../plugin.ts';
import { dryRun } from '../preemption.ts';

export interface DefaultPreemptionArgs {
  readonly minCandidateNodesPercentage?: number;
  readonly minCandidateNodesAbsolute?: number;
}

const UNHELPFUL = 'Preemption is not helpful for scheduling';

/** Whether a pod is on its way out because the scheduler wanted its room. */
export function isLeavingForPreemption({ pod, isTerminating }: PodInfo): boolean {
  return (
    isTerminating &&
    (pod.status?.conditions ?? []).some(
      ({ type, status, reason }) =>
        type === 'DisruptionTarget' && status === 'True' && reason === 'PreemptionByScheduler',
    )
  );
}

export class DefaultPreemption implements Plugin {
  readonly name = 'DefaultPreemption';
  readonly #percentage: number;
  readonly #absolute: number;

  constructor(args: DefaultPreemptionArgs) {
    this.#percentage = args.minCandidateNodesPercentage ?? 10;
    this.#absolute = args.minCandidateNodesAbsolute ?? 100;
  }

  postFilter(failure: FailedCycle): PostFilterOutcome {
    const ineligible = this.#ineligibility(failure);
    if (ineligible !== '') return rejected(ineligible, false);
    const { cycle } = failure;
    const nodes = helpfulNodes(failure);
    const reasons = new Map<string, number>();
    const errors = new Set<string>();
    const candidates = this.#candidates(failure, nodes, reasons, errors);
    if (candidates.length > 0) return { kind: 'candidates', candidates };
    if (errors.size > 0) return failed([...errors]);
    const total = cycle.snapshot.nodes.length;
    if (total > nodes.length) {
      reasons.set(UNHELPFUL, (reasons.get(UNHELPFUL) ?? 0) + total - nodes.length);
    }
    return rejected(fitErrorText(total, reasons), true);
  }

  /** How many candidates suffice, where nodes are to be tried at all; else 0. */
  candidatesWanted(failure: FailedCycle): number {
    if (this.#ineligibility(failure) !== '') return 0;
    return this.#wanted(helpfulNodes(failure).length);
  }

  #wanted(nodes: number): number {
    return Math.max(Math.trunc((nodes * this.#percentage) / 100), this.#absolute);
  }

  #ineligibility({ cycle, verdicts, absent }: FailedCycle): string {
    const { pod, snapshot } = cycle;
    if (pod.pod.spec.preemptionPolicy === 'Never') {
      return 'not eligible due to preemptionPolicy=Never.';
    }
    const nominated = pod.pod.status?.nominatedNodeName ?? '';
    if (nominated === '') return '';
    // Where the nominated node became impossible, another one may be fought for.
    if ((verdicts.get(nominated) ?? absent)?.code === 'unresolvable') return '';
    const isLeaving = snapshot
      .node(nominated)
      ?.pods.some((other) => other.priority < pod.priority && isLeavingForPreemption(other));
    return isLeaving === true ? 'not eligible due to a terminating pod on the nominated node.' : '';
  }

  /** Nodes on which evictions would help; for others, `reasons` counts why not, or `errors` say. */
  #candidates(
    failure: FailedCycle,
    nodes: readonly NodeInfo[],
    reasons: Map<string, number>,
    errors: Set<string>,
  ): Candidate[] {
    const wanted = this.#wanted(nodes.length);
    const { cycle } = failure;
    const budgets = [...cycle.snapshot.objects('PodDisruptionBudget')] as BudgetObject[];
    const candidates: Candidate[] = [];
    let violating = 0;
    for (const node of nodes) {
      const outcome = failure.dryRun?.(node) ?? dryRun(cycle, node, budgets);
      if ('victims' in outcome && outcome.victims.length === 0) {
        // An extender refused the node: nobody's leaving would change that.
        errors.add(`expected at least one victim pod on node ${JSON.stringify(node.name)}`);
      } else if ('victims' in outcome) {
        candidates.push(outcome);
        if (outcome.violations > 0) violating++;
        if (areEnough(candidates.length, violating, wanted)) break;
      } else if (outcome.code === 'error') {
        errors.add(outcome.reasons.join(', '));
      } else {
        for (const reason of outcome.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      }
    }
    return candidates;
  }
}

/** Nodes on which it may help that pods go. */
function helpfulNodes({ cycle, verdicts, absent }: FailedCycle): NodeInfo[] {
  return cycle.snapshot.nodes.filter(
    ({ name }) => (verdicts.get(name) ?? absent)?.code === 'unschedulable',
  );
}

/** Whether enough nodes are known that evictions would free, not all against budgets. */
export function areEnough(candidates: number, violating: number, wanted: number): boolean {
  return candidates >= wanted && candidates > violating;
}

/** Several errors as upstream's lists of them read. */
function failed(errors: readonly string[]): PostFilterOutcome {
  const text = errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`;
  return { kind: 'rejected', rejection: { code: 'error', reasons: [`preemption: ${text}`] } };
}

function rejected(text: string, clearsNomination: boolean): PostFilterOutcome {
  return { kind: 'rejected', rejection: unschedulable(`preemption: ${text}`), clearsNomination };
}

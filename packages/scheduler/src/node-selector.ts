/** Selectors of nodes: terms of expressions over labels, and of fields, as in node affinity. */
import { matchesLabels, requirementOf, type Requirement } from '@megaplane/machinery/selectors';
import type {
  Labels,
  NodeSelectorObject,
  NodeSelectorTerm,
  PodObject,
  SelectorRequirement,
} from './objects.ts';

/** Operators of expressions in terms, by name. */
export const NODE_OPERATORS = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
  Gt: 'gt',
  Lt: 'lt',
} as const;

/** One term; `errors` say why it cannot be parsed, and then it matches nothing. */
export interface Term {
  readonly requirements: readonly Requirement[];
  readonly names: readonly { readonly name: string; readonly isWanted: boolean }[];
  readonly isEmpty: boolean;
  readonly errors: readonly string[];
}

/** What is needed of a node to match it. */
export interface Matchable {
  readonly name: string;
  readonly labels: Labels;
}

function isOperator(text: string): text is keyof typeof NODE_OPERATORS {
  return Object.hasOwn(NODE_OPERATORS, text);
}

function expressionOf({ key, operator, values = [] }: SelectorRequirement): Requirement | string {
  if (!isOperator(operator)) return `"${operator}" is not a valid label selector operator`;
  const parsed = requirementOf(key, NODE_OPERATORS[operator], values);
  return 'error' in parsed ? parsed.error : parsed.value;
}

export function parseTerm(term: NodeSelectorTerm): Term {
  const requirements: Requirement[] = [];
  const errors: string[] = [];
  for (const [index, expression] of (term.matchExpressions ?? []).entries()) {
    const parsed = expressionOf(expression);
    if (typeof parsed === 'string') errors.push(`matchExpressions[${index}].${parsed}`);
    else requirements.push(parsed);
  }
  const names: { name: string; isWanted: boolean }[] = [];
  for (const { key, operator, values = [] } of term.matchFields ?? []) {
    const [name] = values;
    const isKnown = key === 'metadata.name' && (operator === 'In' || operator === 'NotIn');
    if (!isKnown || name === undefined || values.length !== 1) {
      errors.push(`matchFields: ${key} ${operator} is not supported`);
    } else {
      names.push({ name, isWanted: operator === 'In' });
    }
  }
  const count = (term.matchExpressions ?? []).length + (term.matchFields ?? []).length;
  return { requirements, names, isEmpty: count === 0, errors };
}

/** An empty term matches nothing, and so does one with an error. */
export function matchesTerm(term: Term, { name, labels }: Matchable): boolean {
  if (term.isEmpty || term.errors.length > 0) return false;
  if (term.names.some((wanted) => (wanted.name === name) !== wanted.isWanted)) return false;
  return matchesLabels({ requirements: term.requirements }, labels);
}

/** Terms are ORed; no term at all matches nothing. */
export function parseNodeSelector(selector: NodeSelectorObject): readonly Term[] {
  return (selector.nodeSelectorTerms ?? []).map(parseTerm);
}

export function matchesTerms(terms: readonly Term[], node: Matchable): boolean {
  return terms.some((term) => matchesTerm(term, node));
}

/** `spec.nodeSelector` and required node affinity of a pod, together. */
/** What a pod asks of a node. */
export interface NodeTest {
  matches(node: Matchable): boolean;
}

export class RequiredNodes implements NodeTest {
  readonly #labels: readonly (readonly [string, string])[];
  readonly #terms: readonly Term[] | null;

  constructor({ spec }: PodObject) {
    this.#labels = Object.entries(spec.nodeSelector ?? {});
    const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    this.#terms = required === undefined ? null : parseNodeSelector(required);
  }

  matches(node: Matchable): boolean {
    for (const [key, value] of this.#labels) if (node.labels[key] !== value) return false;
    return this.#terms === null || matchesTerms(this.#terms, node);
  }
}

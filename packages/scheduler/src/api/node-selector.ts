/** Selectors of nodes: terms of expressions over labels, and of fields, as in node affinity. */
import {
  fieldErrorText,
  invalidValue,
  notSupported,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { matchesLabels, requirementErrors, type Requirement } from '@megaplane/machinery/selectors';
import type {
  BareLabels,
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

/** Nodes have one field, `metadata.name`; others are empty. */
interface FieldMatch {
  readonly key: string;
  readonly value: string;
  readonly isWanted: boolean;
}

/** One term; `errors` say why it cannot be parsed, and then it matches nothing. */
export interface Term {
  readonly requirements: readonly Requirement[];
  readonly fields: readonly FieldMatch[];
  readonly isEmpty: boolean;
  readonly errors: readonly string[];
}

/** What is needed of a node to match it; without a name nothing is asked of its fields. */
export interface Matchable {
  readonly name: string;
  readonly labels: BareLabels;
}

function isOperator(text: string): text is keyof typeof NODE_OPERATORS {
  return Object.hasOwn(NODE_OPERATORS, text);
}

function fieldMatchOf(field: SelectorRequirement, path: string): FieldMatch | FieldError {
  const { key, operator, values } = field;
  if (operator !== 'In' && operator !== 'NotIn') {
    return notSupported(`${path}.operator`, operator, ['In', 'NotIn']);
  }
  const [value] = values ?? [];
  if (value === undefined || values?.length !== 1) {
    return invalidValue(
      `${path}.values`,
      values === undefined ? null : [...values],
      'must have one element',
    );
  }
  return { key, value, isWanted: operator === 'In' };
}

/** As `nodeaffinity.newNodeSelectorTerm` reads a term; paths of errors begin at the term. */
export function parseTerm(term: NodeSelectorTerm): Term {
  const requirements: Requirement[] = [];
  const fields: FieldMatch[] = [];
  const errors: FieldError[] = [];
  for (const [index, { key, operator, values }] of (term.matchExpressions ?? []).entries()) {
    const path = `matchExpressions[${index}]`;
    if (!isOperator(operator)) {
      errors.push(notSupported(`${path}.operator`, operator, Object.keys(NODE_OPERATORS)));
      continue;
    }
    const known = NODE_OPERATORS[operator];
    const found = requirementErrors(key, known, values, path);
    if (found.length > 0) errors.push(...found);
    else requirements.push({ key, operator: known, values: [...new Set(values)].sort() });
  }
  for (const [index, field] of (term.matchFields ?? []).entries()) {
    const match = fieldMatchOf(field, `matchFields[${index}]`);
    if ('body' in match) errors.push(match);
    else fields.push(match);
  }
  const count = (term.matchExpressions ?? []).length + (term.matchFields ?? []).length;
  return { requirements, fields, isEmpty: count === 0, errors: errors.map(fieldErrorText) };
}

/** An empty term matches nothing, and so does one with an error. */
export function matchesTerm(term: Term, { name, labels }: Matchable): boolean {
  if (term.isEmpty || term.errors.length > 0) return false;
  for (const { key, value, isWanted } of name === '' ? [] : term.fields) {
    if (((key === 'metadata.name' ? name : '') === value) !== isWanted) return false;
  }
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

/** What a PromQL query asks for: its metrics with the labels that it wants of each. */
import { parser } from '@prometheus-io/lezer-promql';
import type { SyntaxNode } from '@lezer/common';

export interface Asked {
  readonly metric: string;
  /** Labels that it matches, or groups by. */
  readonly labels: ReadonlySet<string>;
}

/** Labels that Prometheus itself adds to what it reads of a target. */
const OF_TARGET: ReadonlySet<string> = new Set(['instance', 'job', 'cluster']);

/** The metrics of a query. Throws where it is no PromQL. */
export function askedBy(query: string): readonly Asked[] {
  // Variables of Grafana where a query has a duration.
  const text = query.replaceAll('$__rate_interval', '5m');
  const tree = parser.configure({ strict: true }).parse(text);
  const found: Asked[] = [];
  const read = (node: SyntaxNode): string => text.slice(node.from, node.to);
  const visit = (node: SyntaxNode, grouping: readonly string[]): void => {
    if (node.name === 'VectorSelector') {
      const metric = node.getChild('Identifier');
      if (metric === null) throw new Error(`${query}: a selector without a metric`);
      const labels = [...namesBelow(node, 'LabelName', read), ...grouping];
      const own = labels.filter((label) => !OF_TARGET.has(label));
      found.push({ metric: read(metric), labels: new Set(own) });
      return;
    }
    const modifier = node.name === 'AggregateExpr' ? node.getChild('AggregateModifier') : null;
    const inner = modifier === null ? grouping : [...namesBelow(modifier, 'LabelName', read)];
    for (let child = node.firstChild; child !== null; child = child.nextSibling) {
      if (child.name !== 'AggregateModifier') visit(child, inner);
    }
  };
  visit(tree.topNode, []);
  return found;
}

function namesBelow(
  node: SyntaxNode,
  name: string,
  read: (node: SyntaxNode) => string,
): readonly string[] {
  const found: string[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) {
    if (child.name === name) found.push(read(child));
    found.push(...namesBelow(child, name, read));
  }
  return found;
}

/** The labels of each metric that a program shows (text format of Prometheus). */
export function shownBy(page: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const line of page.split('\n')) {
    const [, metric = '', labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (metric === '') continue;
    const known = found.get(metric) ?? new Set<string>();
    found.set(metric, known);
    for (const [, name = ''] of labels.matchAll(/(?:^|,)(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(name);
  }
  return found;
}

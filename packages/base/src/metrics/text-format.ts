/** The parts of Prometheus' text format that all programs write alike. */
import { labelValue } from '../bytes/visible-text.ts';

/** `name="value"` of each label in the order given, with commas; values are escaped. */
export function labelPairs(labels: Readonly<Record<string, string | number>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${labelValue(String(value))}"`)
    .join(',');
}

/** Pairs in braces; nothing where there are none. */
export function inBraces(pairs: string): string {
  return pairs === '' ? '' : `{${pairs}}`;
}

/** The edge of a bucket as Go writes it: `0`, `1e-08`, `0.005`, `262144`, `1.048576e+06`. */
export function edgeText(edge: number): string {
  if (edge === 0 || (edge >= 1e-4 && edge < 1e6)) return String(edge);
  return edge.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

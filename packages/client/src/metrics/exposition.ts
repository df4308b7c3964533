/** Prometheus' text format. */
import { ownMember } from '@megaplane/base/members';
import type { BucketHistogram } from './bucket-histogram.ts';

export type Labels = Readonly<Record<string, string | number>>;

export class Exposition {
  #lines: string[] = [];
  #name = '';

  family(name: string, type: string, help: string): void {
    this.#name = name;
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  value(labels: Labels, value: number, suffix = ''): void {
    const pairs = Object.entries(labels).map(([name, text]) => `${name}="${escaped(text)}"`);
    const shown = pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
    this.#lines.push(`${this.#name}${suffix}${shown} ${value}`);
  }

  histogram(labels: Labels, histogram: BucketHistogram): void {
    for (const [bucket, edge] of histogram.edges.entries()) {
      this.value({ ...labels, le: edgeText(edge) }, histogram.upTo(bucket), '_bucket');
    }
    this.value({ ...labels, le: '+Inf' }, histogram.count, '_bucket');
    this.value(labels, histogram.sum, '_sum');
    this.value(labels, histogram.count, '_count');
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`;
  }
}

function escaped(text: string | number): string {
  const signs: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };
  return String(text).replaceAll(/[\\"\n]/g, (sign) => ownMember(signs, sign) ?? sign);
}

/** An edge of a bucket as the Go client writes it: `1e-08`, `0.005`, `262144`, `1.048576e+06`. */
export function edgeText(edge: number): string {
  if (edge >= 1e-4 && edge < 1e6) return String(edge);
  return edge.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

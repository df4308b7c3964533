/** `/healthz`, `/livez`, `/readyz` and single checks, as k8s.io/apiserver has them. */
import type { HealthCounts } from './health-counts.ts';
import type { Page } from './http-endpoint.ts';

export interface HealthCheck {
  readonly name: string;
  /** What is wrong; empty if nothing is. */
  problem(): string;
}

/** By page. */
export type HealthChecks = Readonly<Record<string, readonly HealthCheck[]>>;

/** The page at `path`; null where there is none. What pages of all checks find is counted. */
export function healthPage(
  path: string,
  query: URLSearchParams,
  checksOf: HealthChecks,
  counts: HealthCounts,
): Page | null {
  const [, root = '', single] = /^\/([a-z]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  const checks = Object.hasOwn(checksOf, root) ? checksOf[root] : undefined;
  if (checks === undefined) return null;
  if (single === undefined) return rootPage(root, query, checks, counts);
  const check = checks.find(({ name }) => name === single);
  if (check === undefined) return null;
  const problem = check.problem();
  return problem === '' ? page('ok') : page(`internal server error: ${problem}\n`, 500);
}

function rootPage(
  root: string,
  query: URLSearchParams,
  checks: readonly HealthCheck[],
  counts: HealthCounts,
): Page {
  const excluded = new Set(query.getAll('exclude').flatMap((names) => names.split(',')));
  const lines: string[] = [];
  let hasFailed = false;
  for (const check of checks) {
    const { name } = check;
    if (excluded.delete(name)) {
      lines.push(`[+]${name} excluded: ok`);
      continue;
    }
    const isWell = check.problem() === '';
    counts.asked(name, root, isWell);
    hasFailed ||= !isWell;
    lines.push(isWell ? `[+]${name} ok` : `[-]${name} failed: reason withheld`);
  }
  excluded.delete('');
  if (excluded.size > 0) {
    const names = [...excluded].toSorted().map((name) => JSON.stringify(name));
    const text = 'warn: some health checks cannot be excluded: no matches for';
    lines.push(`${text} ${names.join(', ')}`);
  }
  if (hasFailed) return page(`${[...lines, `${root} check failed`].join('\n')}\n`, 500);
  if (!query.has('verbose')) return page('ok');
  return page(`${[...lines, `${root} check passed`].join('\n')}\n`);
}

function page(text: string, status = 200): Page {
  return { contentType: 'text/plain; charset=utf-8', text, status };
}

/** What `up` says when the cluster stands. */
import type { UpOptions } from './plan.ts';
import type { ProcessUsage } from '../observe/process-usage.ts';

/** When what was reached; pod times count from the start of their creation. */
export interface Timings {
  firstAnswerMs?: number;
  nodesReadyMs?: number;
  podsCreatedMs?: number;
  podsBoundMs?: number;
  podsRunningMs?: number;
  readonly memory: (ProcessUsage & { readonly name: string })[];
}

export interface Summary {
  readonly options: UpOptions;
  readonly timings: Timings;
  readonly kubeconfig: string;
  readonly server: string;
  /** The link to the page; '' where there is none. */
  readonly page?: string;
}

/** For people: what stands, how fast, and what to type next. */
export function textSummary(summary: Summary): string {
  const { options, timings, kubeconfig, server, page = '' } = summary;
  const lines = ['', `cluster       ${server}`, `kubeconfig    ${kubeconfig}`];
  if (page !== '') lines.push(`page          ${page}`);
  const add = (label: string, ms: number | undefined, what = ''): void => {
    if (ms !== undefined) lines.push(`${label.padEnd(14)}${what}${(ms / 1000).toFixed(2)} s`);
  };
  add('first answer', timings.firstAnswerMs, 'after ');
  add('nodes ready', timings.nodesReadyMs, `${options.nodes.toLocaleString('en-US')} after `);
  add('pods bound', timings.podsBoundMs, `${options.pods.toLocaleString('en-US')} in `);
  add('pods running', timings.podsRunningMs, `${options.pods.toLocaleString('en-US')} in `);
  const rssMib = timings.memory.reduce((sum, { rssMib: one }) => sum + one, 0);
  if (rssMib > 0) lines.push(`memory        ${Math.round(rssMib)} MiB in all processes`);
  if (options.exitWhen === undefined) {
    lines.push('', `  export KUBECONFIG=${quoted(kubeconfig)}`, '  kubectl get nodes');
    lines.push('  kubectl run hello --image=hello && kubectl get pods -o wide');
    const after = options.ephemeral
      ? 'Ctrl-C stops it and removes its data.'
      : 'Ctrl-C stops it; the same command brings it back as it was.';
    lines.push('', after);
  }
  return `${lines.join('\n')}\n`;
}

/** A word as a POSIX shell reads it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** For programs: the same as one JSON object. */
export function jsonSummary(summary: Summary): string {
  const { options, timings, kubeconfig, server, page = '' } = summary;
  const round = (ms: number | undefined): number | null =>
    ms === undefined ? null : Math.round(ms);
  return `${JSON.stringify({
    nodes: options.nodes,
    pods: options.pods,
    server,
    kubeconfig,
    ...(page === '' ? {} : { page }),
    firstAnswerMs: round(timings.firstAnswerMs),
    nodesReadyMs: round(timings.nodesReadyMs),
    podsCreatedMs: round(timings.podsCreatedMs),
    podsBoundMs: round(timings.podsBoundMs),
    podsRunningMs: round(timings.podsRunningMs),
    processes: timings.memory.map(({ name, rssMib, rssPeakMib, cpuSeconds }) => ({
      name,
      rssMib: Math.round(rssMib),
      rssPeakMib: Math.round(rssPeakMib),
      cpuSeconds,
    })),
  })}\n`;
}

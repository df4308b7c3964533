/** A report on a pod for people: the verdict first, then the nodes that come closest. */
import { gangText } from './gang-report.ts';
import type { NodeReport, PodReport } from './pod-report.ts';

function objectionLines({ node, objections }: NodeReport): string[] {
  const lines = [`  ${node}`];
  for (const { plugin, reasons, remedies } of objections) {
    lines.push(`    ${plugin}: ${reasons.join('; ')}`);
    for (const remedy of remedies) lines.push(`      -> ${remedy}`);
  }
  return lines;
}

function scoreLines({ node, scores }: NodeReport): string[] {
  if (scores === null) return [`  ${node}`];
  const { total = 0, ...parts } = scores;
  const named = Object.entries(parts).map(([plugin, score]) => `${plugin} ${score}`);
  return [`  ${node}  ${total}  (${named.join(', ')})`];
}

function verdictLines(report: PodReport): string[] {
  const { pod, isOn, gate, message, best, nomination, gang } = report;
  const lines: string[] = [];
  if (isOn !== '') lines.push(`${pod} is on node ${isOn}; if it were to be placed again:`);
  if (gate !== '') lines.push(`${pod} is held back: ${gate}`);
  if (best.length > 0) lines.push(`${pod} fits; best: ${best.slice(0, 5).join(', ')}`);
  if (message !== '') lines.push(`${pod} fits nowhere: ${message}`);
  const together = gang === null ? '' : gangText(gang);
  if (together !== '') lines.push(together);
  if (nomination !== null) {
    const who = nomination.victims.join(', ');
    lines.push(`room would be made on ${nomination.node} by evicting ${who}`);
  }
  return lines;
}

/** `nodesMax`: nodes shown of each sort; those with the fewest objections, or the best scores. */
export function reportText(report: PodReport, nodesMax: number): string {
  const fitting = report.nodes.filter(({ objections }) => objections.length === 0);
  const others = report.nodes.filter(({ objections }) => objections.length > 0);
  const isListed = report.message === '' && report.gate === '';
  const ranked = fitting.toSorted(
    (left, right) => (right.scores?.['total'] ?? 0) - (left.scores?.['total'] ?? 0),
  );
  const closest = others.toSorted(
    (left, right) => left.objections.length - right.objections.length,
  );
  const lines = verdictLines(report);
  const section = (title: string, nodes: readonly NodeReport[], show: typeof scoreLines): void => {
    if (nodes.length === 0) return;
    lines.push('', `${title} (${nodes.length})`);
    for (const node of nodes.slice(0, nodesMax)) lines.push(...show(node));
    if (nodes.length > nodesMax) lines.push(`  and ${nodes.length - nodesMax} more`);
  };
  if (isListed) section('nodes that will do', ranked, scoreLines);
  section('nodes that will not', closest, objectionLines);
  return `${lines.join('\n')}\n`;
}

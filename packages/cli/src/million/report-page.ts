/** The report of a run as one page of HTML that needs nothing beside itself. */
import type { Phase, RunRecord } from './run-record.ts';

/** What the founding run took (k8s-1m, on its machines). */
export const FOUNDING = {
  nodes: 1_000_000,
  pods: 1_000_000,
  boundSeconds: 73,
  cores: 9630,
  what: 'the founding run: 8,670 cores for nodes and control plane, 960 for the scheduler',
} as const;

const STYLE = `
:root{--back:#f5f7f8;--card:#fff;--line:#dfe5e8;--text:#14212b;--soft:#445764;
--accent:#0f766e}
@media(prefers-color-scheme:dark){:root{--back:#0d1418;--card:#141d23;--line:#24313a;
--text:#e4edf1;--soft:#a9bac3;--accent:#2dd4bf}figure svg{border-radius:8px}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,'DejaVu Sans',sans-serif}
main{max-width:1280px;margin:0 auto;padding:40px 24px}
h1{font-size:30px;letter-spacing:-.02em;margin:0 0 4px}h2{font-size:18px;margin:40px 0 12px}
p{color:var(--soft);max-width:75ch}code{font-size:12.5px;overflow-wrap:anywhere}
.head{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px;margin:24px 0}
.head div{background:var(--card);border:1px solid var(--line);border-radius:12px;
padding:14px 16px}
.head strong{display:block;font-size:26px;font-variant-numeric:tabular-nums;
color:var(--accent)}
.head span{font-size:13px;color:var(--soft)}
table{border-collapse:collapse;background:var(--card);border:1px solid var(--line);
border-radius:8px;font-variant-numeric:tabular-nums;min-width:min(100%,560px)}
th,td{padding:6px 14px;border-bottom:1px solid var(--line);text-align:right}
th{font-size:12.5px;color:var(--soft)}th:first-child,td:first-child{text-align:left}
figure{margin:0;background:#fff;border:1px solid var(--line);border-radius:12px;
padding:12px;overflow:auto}
.graphs{display:grid;gap:16px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,600px),1fr))}
figure svg{max-width:100%;height:auto}.scroll{overflow:auto}
.pair{display:grid;gap:16px;align-items:start;
grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr))}
.pair table{min-width:100%}
`;

/** `svgs` are pictures that this program made. */
export function reportPage(record: RunRecord, svgs: readonly string[]): string {
  const { nodes, pods } = record;
  const title = `${count(nodes)} nodes, ${count(pods)} pods`;
  const state = record.isWhole ? '' : '<p><strong>This run ended before it was whole.</strong></p>';
  const graphs = svgs.map((svg) => `<figure>${svg}</figure>`).join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Megaplane: ${escaped(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><style>${STYLE}</style></head>
<body><main>
<h1>${escaped(title)}</h1>
<p>${escaped(record.machine)}<br><code>${escaped(record.command)}</code></p>
${state}
<div class="head">${heads(record)}</div>
<h2>Beside the founding run</h2>
${besideFounding(record)}
<h2>Where the seconds go</h2>
${record.phases.map((phase) => phaseTables(phase)).join('\n')}
<h2>Graphs</h2>
<p>One sample a second. The dashed lines are the first pod created and the last one bound.</p>
<div class="graphs">${graphs}</div>
</main></body></html>
`;
}

function heads(record: RunRecord): string {
  const pods = record.phases.find(({ name }) => name === 'pods');
  const cpu = record.phases
    .flatMap(({ processes }) => processes)
    .reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  const boxes: readonly (readonly [string, string])[] = [
    [seconds(record.boundSeconds), 'first pod created to last bound'],
    [seconds(record.runningSeconds), 'first pod created to last running'],
    [seconds(record.nodesReadySeconds), 'until all nodes were ready'],
    [`${cpu.toFixed(0)} s`, 'of processor in both phases'],
    [`${(record.peakMib / 1024).toFixed(2)} GiB`, 'memory of all processes at most'],
    [seconds(pods?.latenessP99 ?? null), 'lateness of leases meanwhile, p99'],
  ];
  return boxes
    .map(([value, label]) => `<div><strong>${value}</strong><span>${label}</span></div>`)
    .join('');
}

function besideFounding(record: RunRecord): string {
  const pods = record.phases.find(({ name }) => name === 'pods');
  const cpu = pods?.processes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) ?? NaN;
  const bound = record.boundSeconds;
  const perPod = (cpu * 1e6) / Math.max(1, record.pods);
  const founding = FOUNDING.boundSeconds * FOUNDING.cores;
  const foundingPerPod = (founding * 1e6) / FOUNDING.pods;
  return table(
    ['', 'this run', 'founding run'],
    [
      ['nodes', count(record.nodes), count(FOUNDING.nodes)],
      ['pods', count(record.pods), count(FOUNDING.pods)],
      ['first created to last bound', seconds(bound), seconds(FOUNDING.boundSeconds)],
      [
        'pods bound per second',
        count(record.pods / (bound ?? NaN)),
        count(FOUNDING.pods / FOUNDING.boundSeconds),
      ],
      ['processor seconds (there: cores times seconds)', count(cpu), count(founding)],
      ['the same per pod', micro(perPod), micro(foundingPerPod)],
    ],
  );
}

function phaseTables(phase: Phase): string {
  const { name, count: objects, processes, requests } = phase;
  const one = name === 'pods' ? 'pod' : 'node';
  const took = (phase.toMs - phase.fromMs) / 1000;
  const rows = processes
    .toSorted((a, b) => b.cpuSeconds - a.cpuSeconds)
    .map((process) => [
      process.name,
      `${process.cpuSeconds.toFixed(1)} s`,
      micro(process.usPerObject),
    ]);
  const total = processes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  rows.push(['all', `${total.toFixed(1)} s`, micro((total * 1e6) / Math.max(1, objects))]);
  const asked = requests.map(({ verb, resource, count: made }) => [
    `${verb} ${resource}`,
    count(made),
    (made / Math.max(1, objects)).toFixed(2),
  ]);
  asked.push([
    'events to watchers',
    count(phase.watchEvents),
    (phase.watchEvents / Math.max(1, objects)).toFixed(2),
  ]);
  const late =
    `Leases meanwhile: ${count(phase.renewals)} renewed, p50 ${seconds(phase.latenessP50)}, ` +
    `p99 ${seconds(phase.latenessP99)}, at most ${seconds(phase.latenessMax)} late.`;
  return (
    `<h3>${count(objects)} ${name} in ${took.toFixed(1)} s</h3><p>${late}</p>` +
    '<div class="pair">' +
    table(['process', 'processor', `per ${one}`], rows) +
    table(['request', 'made', `per ${one}`], asked) +
    '</div>'
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return (
    `<div class="scroll"><table><thead>${line(head, 'th')}</thead>` +
    `<tbody>${rows.map((row) => line(row, 'td')).join('')}</tbody></table></div>`
  );
}

function escaped(text: string): string {
  const names: ReadonlyMap<string, string> = new Map([
    ['&', '&amp;'],
    ['<', '&lt;'],
    ['>', '&gt;'],
    ['"', '&quot;'],
  ]);
  return text.replaceAll(/[&<>"]/g, (letter) => names.get(letter) ?? '');
}

function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : '–';
}

function seconds(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '–';
  return value < 1 ? `${(value * 1000).toFixed(0)} ms` : `${value.toFixed(1)} s`;
}

function micro(value: number): string {
  return Number.isFinite(value) ? `${count(value)} µs` : '–';
}

/** A recording of a terminal as one SVG that plays by itself, once, without a script. */

export interface Line {
  readonly atMs: number;
  readonly text: string;
  /** Typed by the user. */
  readonly isTyped: boolean;
}

const COLUMNS = 92;
const ROWS = 22;
const CHAR_WIDTH = 8.4;
const LINE_HEIGHT = 18;
const PADDING = 16;

/** The picture; lines beyond the last row push the first ones out. */
export function terminalSvg(title: string, lines: readonly Line[]): string {
  const width = Math.ceil(COLUMNS * CHAR_WIDTH + 2 * PADDING);
  const height = ROWS * LINE_HEIGHT + 2 * PADDING + LINE_HEIGHT;
  const shown = lines.map(({ atMs, text, isTyped }, at) => {
    const y = PADDING + LINE_HEIGHT * (at + 1);
    const kind = isTyped ? ' class="t"' : '';
    const delay = `animation-delay:${(atMs / 1000).toFixed(2)}s`;
    const where = `x="${PADDING}" y="${y}" style="${delay}"${kind}`;
    return `<text ${where}>${escaped(text.slice(0, COLUMNS))}</text>`;
  });
  const scrolls = lines.slice(ROWS).map(({ atMs }, at) => {
    return { atMs, up: (at + 1) * LINE_HEIGHT };
  });
  const totalMs = (lines.at(-1)?.atMs ?? 0) + 1;
  const steps = scrolls.map(({ atMs, up }) => {
    const share = ((atMs / totalMs) * 100).toFixed(3);
    return `${share}%{transform:translateY(-${up}px)}`;
  });
  const last = scrolls.at(-1)?.up ?? 0;
  const frame = `viewBox="0 0 ${width} ${height}" width="${width}" role="img"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${frame} aria-label="${escaped(title)}">
<title>${escaped(title)}</title>
<style>
text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}
text{opacity:0;animation:s 1ms forwards}
.t{fill:#7fdbca;font-weight:600}
@keyframes s{to{opacity:1}}
@keyframes u{0%{transform:none}${steps.join('')}100%{transform:translateY(-${last}px)}}
g{animation:u ${(totalMs / 1000).toFixed(2)}s step-end forwards}
@media (prefers-reduced-motion:reduce){text{animation-delay:0s!important}g{animation-duration:1ms}}
</style>
<rect width="100%" height="100%" rx="8" fill="#011627"/>
<svg y="${PADDING / 2}" width="${width}" height="${height - PADDING}"><g>
${shown.join('\n')}
</g></svg>
</svg>
`;
}

function escaped(text: string): string {
  const plain = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return plain.replaceAll('"', '&quot;');
}

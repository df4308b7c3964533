/**
 * The plan drawn (SVG): which bits of an address say what, the prefixes of the nodes one below the
 * other, and one node with its uplink, bridge and pods. Every text of it follows from the plan.
 */
import { plannedNode } from './plan-text.ts';
import { podPrefix, podsPerNode, type Plan } from './plan.ts';
import { addressText, prefixText } from './prefix.ts';

const WIDTH = 860;
const HEIGHT = 420;
const BAR = { x: 30, y: 50, width: 800, height: 34 } as const;
const BITS = 128;
/** Narrower parts have their words below. */
const PART_WIDTH_MIN = 90;
const NODES_SHOWN = 3;

interface Part {
  readonly title: string;
  readonly bits: number;
  readonly colour: string;
}

/** The whole picture. */
export function planPicture(plan: Plan): string {
  const { base, nodes, nodeLength, services } = plan;
  const indexBits = nodeLength - base.length;
  const parts: readonly Part[] = [
    { title: 'base', bits: base.length, colour: '#dce8f7' },
    { title: 'node', bits: indexBits, colour: '#fde7c3' },
    { title: 'pod', bits: BITS - nodeLength, colour: '#d6f0e2' },
  ];
  const count = (value: number | bigint): string => value.toLocaleString('en-US');
  const title = `${count(nodes)} nodes in ${prefixText(base)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" ` +
      'font-family="sans-serif" font-size="13">',
    `  <title>${title}</title>`,
    `  <rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(BAR.x, 32, title, 'font-weight="bold" font-size="15"'),
    ...bar(parts),
    ...nodeList(plan),
    ...oneNode(plan),
    text(BAR.x, HEIGHT - 34, `Services have ${prefixText(services)}.`),
    text(
      BAR.x,
      HEIGHT - 14,
      `A node has ${count(podsPerNode(plan))} addresses for pods. Its number is an address of it ` +
        `less the base, shifted by ${BITS - nodeLength} bits.`,
    ),
    '</svg>',
    '',
  ].join('\n');
}

/** Which bits say what, as wide as they are many. */
function bar(parts: readonly Part[]): string[] {
  const lines: string[] = [];
  let at = 0;
  for (const { title, bits, colour } of parts) {
    if (bits === 0) continue;
    const x = BAR.x + (BAR.width * at) / BITS;
    const width = (BAR.width * bits) / BITS;
    lines.push(box(x, BAR.y, width, BAR.height, colour));
    const words = `${title}: ${bits === 1 ? '1 bit' : `${bits} bits`}`;
    const below = width < PART_WIDTH_MIN ? BAR.height + 32 : 22;
    lines.push(text(x + width / 2, BAR.y + below, words, 'text-anchor="middle"'));
    at += bits;
    lines.push(text(BAR.x + (BAR.width * at) / BITS, BAR.y + BAR.height + 15, `/${at}`, END));
  }
  return lines;
}

const END = 'text-anchor="end" fill="#5b6b78" font-size="11"';

/** The first prefixes and the last one. */
function nodeList(plan: Plan): string[] {
  const last = plan.nodes - 1;
  const shown = Array.from({ length: Math.min(NODES_SHOWN, plan.nodes) }, (_, at) => at);
  const lines = [text(BAR.x, 150, 'nodes', 'font-weight="bold"')];
  let y = 165;
  const row = (index: number): void => {
    lines.push(box(BAR.x, y, 370, 28, '#fff8ea'));
    lines.push(text(BAR.x + 10, y + 19, `node ${index}`));
    lines.push(text(BAR.x + 360, y + 19, plannedNode(plan, index).podCIDR, MONO));
    y += 34;
  };
  for (const index of shown) row(index);
  if (last < shown.length) return lines;
  lines.push(text(BAR.x + 10, y + 14, '...'));
  y += 26;
  row(last);
  return lines;
}

const MONO = 'text-anchor="end" font-family="monospace" font-size="12"';

/** Node 0 with what is in it. */
function oneNode(plan: Plan): string[] {
  const { base, bits } = podPrefix(plan, 0);
  const { podCIDR, gateway } = plannedNode(plan, 0);
  const left = 460;
  const isProxy = plan.provider.mode === 'proxy';
  const asks = isProxy ? 'answers neighbours for each pod' : 'a router sends it the prefix';
  const lines = [
    text(left, 150, 'node 0', 'font-weight="bold"'),
    box(left, 165, 370, 200, '#f4f7fa'),
    text(left + 12, 186, `pods: ${podCIDR}`),
    box(left + 12, 198, 346, 28, '#dce8f7'),
    text(left + 22, 217, `uplink, ${asks}`),
    box(left + 12, 246, 346, 28, '#ffffff'),
    text(left + 22, 265, `bridge mp0 ${gateway}, without the uplink`),
    line(left + 185, 226, left + 185, 246),
  ];
  for (const at of [0, 1, 2]) {
    const x = left + 12 + at * 118;
    lines.push(line(x + 55, 274, x + 55, 296), box(x, 296, 110, 52, '#d6f0e2'));
    lines.push(text(x + 55, 317, `pod ${at}`, 'text-anchor="middle"'));
    const own = addressText(base + 2n + BigInt(at), bits);
    const size = own.length > 16 ? 'font-size="9"' : 'font-size="11"';
    lines.push(text(x + 55, 336, own, `text-anchor="middle" ${size}`));
  }
  return lines;
}

function box(x: number, y: number, width: number, height: number, colour: string): string {
  const place = `x="${round(x)}" y="${y}" width="${round(width)}" height="${height}"`;
  return `  <rect ${place} rx="3" fill="${colour}" stroke="#8aa4c8"/>`;
}

function line(x1: number, y1: number, x2: number, y2: number): string {
  return `  <line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#5b6b78"/>`;
}

function text(x: number, y: number, words: string, more = ''): string {
  return `  <text x="${round(x)}" y="${y}"${more === '' ? '' : ` ${more}`}>${words}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

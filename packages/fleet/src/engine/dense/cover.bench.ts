/**
 * What chosen machines cost beside what fractions of machines would, by our rule and by the
 * reference's (the cheapest machine first), over random catalogues; and how long choosing takes.
 *
 *     node_modules/.bin/node packages/fleet/src/engine/dense/cover.bench.ts --catalogues 400
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { Random } from '@megaplane/base/random';
import { cheapestCover } from './cover.ts';
import type { CoverKind } from './cover.ts';

const { values } = parseArgs({
  options: {
    catalogues: { type: 'string', default: '400' },
    seed: { type: 'string', default: '1' },
    /** Prices vary by this part up and down: 0.2 as lists do, 0.6 as spot does. */
    spread: { type: 'string', default: '0.2' },
    json: { type: 'boolean', default: false },
  },
});
const random = new Random(Number(values.seed));
const spread = Number(values.spread);

/** Two dimensions, five to 44 kinds of 2 to 64 cores, up to 30 machines of each. */
function catalogue(): CoverKind[] {
  return Array.from({ length: 5 + random.below(40) }, () => {
    const cores = 2 ** (1 + random.below(6));
    const memory = cores * 2 ** (1 + random.below(3));
    const list = cores * 0.04 + memory * 0.005;
    const cost = list * (1 - spread + 2 * spread * random.next());
    return { cost, offers: Float64Array.from([cores * 1000, memory]), count: 1 + random.below(30) };
  });
}

/** The cheapest machine first, until all is covered. */
function cheapestFirst(kinds: readonly CoverKind[], wanted: Float64Array): number {
  const left = wanted.slice();
  let cost = 0;
  for (const kind of kinds.toSorted((a, b) => a.cost - b.cost)) {
    for (let count = 0; count < kind.count && left.some((want) => want > 0); count++) {
      cost += kind.cost;
      for (const at of left.keys()) left[at] = (left[at] ?? 0) - (kind.offers[at] ?? 0);
    }
  }
  return cost;
}

let ours = 0;
let theirs = 0;
let worst = 0;
let counted = 0;
let processorMs = 0;
for (let round = 0; round < Number(values.catalogues); round++) {
  const kinds = catalogue();
  const cores = 20 + random.next() * 400;
  const wanted = Float64Array.from([cores * 1000, cores * (2 + random.next() * 6)]);
  const before = process.cpuUsage();
  const { cost, bound, isWhole } = cheapestCover(kinds, wanted);
  const { user, system } = process.cpuUsage(before);
  processorMs += (user + system) / 1000;
  if (!isWhole) continue;
  counted++;
  ours += cost / bound;
  worst = Math.max(worst, cost / bound);
  theirs += cheapestFirst(kinds, wanted) / bound;
}
console.log(
  `${cpus()[0]?.model}, Node ${process.version}; ${counted} catalogues, spread ${spread}`,
);
console.log(`beside the bound: ${(ours / counted).toFixed(3)}, worst ${worst.toFixed(3)}`);
console.log(`the cheapest machine first: ${(theirs / counted).toFixed(3)}`);
console.log(`a choice takes ${(processorMs / Number(values.catalogues)).toFixed(2)} ms`);
if (values.json) {
  const figures = { ours: ours / counted, theirs: theirs / counted, worst, counted };
  console.log(JSON.stringify(figures));
}

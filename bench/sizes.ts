/**
 * What one thing costs the server, by how many there are: renewals of leases among ever more keys,
 * reading a page of a list, whole lists, and definitions. Processor time of the server, which has
 * core 0 for itself; a picture for each with `--out DIR`.
 *
 *     node bench/sizes.ts --out docs/pictures
 *     node bench/sizes.ts --leases 1000,10000 --pods 100,1000 --definitions 10,100
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@megaplane/client/client';
import { lineSvg, writePicture, type PlotLine } from 'megaplane/plot';
import * as load from './apiserver-load.ts';
import { definitionAt } from './crd-shapes.ts';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';
import { usage } from './load/flags.ts';

const values = flagsOf({
  leases: { type: 'string', default: '1000,10000,100000,1000000' },
  pods: { type: 'string', default: '100,1000,10000,100000' },
  definitions: { type: 'string', default: '10,100,1000' },
  out: { type: 'string' },
  output: { type: 'string' },
});
const SERVER_CORE = 0;
const CLIENT_CORE = 1;
/** So many times each is done at least, so that a tick of the clock says little. */
const REPEATS = 20_000;
const LIST_ITEMS = 200_000;
const PAGE_ITEMS = 500;
const DEFINITION_BYTES = 4000;
const WARM_DEFINITIONS = 30;
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const MICROS = 1e6;

function sizesOf(flag: 'leases' | 'pods' | 'definitions'): readonly number[] {
  const sizes = values[flag].split(',').map(Number);
  const isRising = sizes.every((size, i) => size > (sizes[i - 1] ?? 0));
  const isWhole = sizes.every((size) => Number.isInteger(size) && size > 0);
  if (!isWhole || !isRising) usage(`--${flag}: whole numbers that rise are needed, with commas`);
  return sizes;
}

interface Bed {
  readonly client: Client;
  /** Processor seconds of the server, from its start. */
  cpu(): number;
  rssMib(): number;
}

async function onServer(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-sizes-'));
  const flags = ['apiserver', '--data-dir', dir, '--secure-port', '0', '--durability', 'none'];
  const server = await harness.startMegaplane(flags, SERVER_CORE);
  const [client] = await load.openClients(join(dir, 'kubeconfig'), 1, 4, 400);
  if (client === undefined) throw new Error('there is no client');
  try {
    await work({
      client,
      cpu: () => harness.cpuSecondsExact(server.pid),
      rssMib: () => harness.rssMib(server.pid),
    });
  } finally {
    client.close();
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Microseconds of the server for each of `count` things that `work` does. */
async function microsEach(bed: Bed, count: number, work: () => Promise<void>): Promise<number> {
  const before = bed.cpu();
  await work();
  return ((bed.cpu() - before) / count) * MICROS;
}

type Points = [number, number][];

async function renewals(sizes: readonly number[]): Promise<readonly PlotLine[]> {
  const renewed: Points = [];
  await onServer(async (bed) => {
    const leases = new load.Leases(sizes.at(-1) ?? 0);
    let there = 0;
    for (const size of sizes) {
      const first = there;
      const create = (index: number): load.Shot => leases.shot(first + index);
      await load.shoot([bed.client], size - first, create, (index, ...rest) =>
        leases.seen(first + index, ...rest),
      );
      there = size;
      // all over the keys that are there; a lease is renewed again once its answer is in
      const each = Math.min(size, REPEATS);
      const at = (index: number): number => index * Math.floor(size / each);
      const renew = async (): Promise<void> => {
        for (let done = 0; done < REPEATS; done += each) {
          const shot = (index: number): load.Shot => leases.shot(at(index));
          await load.shoot([bed.client], each, shot, (index, ...rest) =>
            leases.seen(at(index), ...rest),
          );
        }
      };
      // the first round is spoilt by what is compiled
      await renew();
      renewed.push([size, await microsEach(bed, REPEATS, renew)]);
      tell('leases', size, `${fixed(renewed.at(-1)?.[1])} us a renewal`);
    }
  });
  return [{ label: 'a lease renewed', points: renewed }];
}

async function lists(sizes: readonly number[]): Promise<readonly PlotLine[]> {
  const [pages, whole, read]: [Points, Points, Points] = [[], [], []];
  await onServer(async (bed) => {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    const path = '/api/v1/namespaces/default/serviceaccounts';
    await bed.client.request({ method: 'POST', path, body: account });
    let there = 0;
    for (const size of sizes) {
      const first = there;
      await load.shoot([bed.client], size - first, (index) => load.podShot(first + index));
      there = size;
      const get = (path: string) => (): load.Shot => ({
        method: 'GET',
        path,
        type: '',
        body: null,
      });
      const pageItems = Math.min(PAGE_ITEMS, size);
      const pageCount = Math.ceil(LIST_ITEMS / pageItems / 4);
      const page = get(`${load.PODS}?limit=${PAGE_ITEMS}`);
      const shoot =
        (count: number, shotOf: (index: number) => load.Shot): (() => Promise<void>) =>
        () =>
          load.shoot([bed.client], count, shotOf);
      await shoot(2, page)();
      pages.push([size, await microsEach(bed, pageCount * pageItems, shoot(pageCount, page))]);
      const listCount = Math.max(1, Math.ceil(LIST_ITEMS / size / 4));
      const all = get(load.PODS);
      await shoot(1, all)();
      whole.push([size, await microsEach(bed, listCount * size, shoot(listCount, all))]);
      const one = (index: number): load.Shot => get(`${load.PODS}/pod-${(index * 7) % size}`)();
      await shoot(REPEATS / 4, one)();
      read.push([size, await microsEach(bed, REPEATS, shoot(REPEATS, one))]);
      tell('pods', size, `${fixed(whole.at(-1)?.[1])} us an item of a list`);
    }
  });
  return [
    { label: `an item of a page of ${PAGE_ITEMS}`, points: pages },
    { label: 'an item of the whole list', points: whole },
    { label: 'a pod read by its name', points: read },
  ];
}

async function definitions(sizes: readonly number[]): Promise<readonly PlotLine[]> {
  const [millis, memory]: [Points, Points] = [[], []];
  await onServer(async (bed) => {
    const shape = { sharing: 'distinct', bytes: DEFINITION_BYTES } as const;
    const type = 'application/json';
    const shotOf = (index: number): load.Shot => {
      const body = JSON.stringify(definitionAt(index, shape));
      return { method: 'POST', path: DEFINITIONS, type, body };
    };
    // the first ones pay for what is compiled
    const last = sizes.at(-1) ?? 0;
    await load.shoot([bed.client], WARM_DEFINITIONS, (index) => shotOf(last + index));
    let there = 0;
    for (const size of sizes) {
      const first = there;
      const rssBefore = bed.rssMib();
      const make = (): Promise<void> =>
        load.shoot([bed.client], size - first, (index) => shotOf(first + index));
      millis.push([size, (await microsEach(bed, size - first, make)) / 1000]);
      memory.push([size, ((bed.rssMib() - rssBefore) * 1024) / (size - first)]);
      there = size;
      tell('definitions', size, `${fixed(millis.at(-1)?.[1])} ms each`);
    }
  });
  return [
    { label: 'milliseconds each', points: millis },
    { label: 'KiB of memory each', points: memory },
  ];
}

function fixed(value = NaN): string {
  return value.toFixed(value < 10 ? 2 : 0);
}

function tell(what: string, size: number, text: string): void {
  process.stderr.write(`${size.toLocaleString('en')} ${what}: ${text}\n`);
}

interface Picture {
  readonly file: string;
  readonly title: string;
  readonly xTitle: string;
  readonly yTitle: string;
  readonly measure: () => Promise<readonly PlotLine[]>;
}

const PICTURES: readonly Picture[] = [
  {
    file: 'cost-of-leases.svg',
    title: 'What a renewal costs the server, by leases',
    xTitle: 'leases',
    yTitle: 'us of processor',
    measure: () => renewals(sizesOf('leases')),
  },
  {
    file: 'cost-of-lists.svg',
    title: 'What reading costs the server, by pods of 2 KB',
    xTitle: 'pods',
    yTitle: 'us of processor',
    measure: () => lists(sizesOf('pods')),
  },
  {
    file: 'cost-of-definitions.svg',
    title: 'What one more definition of 4 KB costs',
    xTitle: 'definitions',
    yTitle: 'ms, KiB',
    measure: () => definitions(sizesOf('definitions')),
  },
];

// what is wrong in a flag is said before the first minute is spent
for (const flag of ['leases', 'pods', 'definitions'] as const) sizesOf(flag);
harness.pinSelf(CLIENT_CORE);
process.stdout.write(`${harness.machine()}\n`);
const results: object[] = [];
for (const { file, title, xTitle, yTitle, measure } of PICTURES) {
  const lines = await measure();
  results.push({ title, lines });
  process.stdout.write(`\n${title}\n`);
  const sizes = (lines[0]?.points ?? []).map(([size]) => size);
  const rows = lines.map(({ label, points }) => [label, ...points.map(([, cost]) => fixed(cost))]);
  harness.printTable([yTitle, ...sizes.map((size) => size.toLocaleString('en'))], rows);
  if (values.out === undefined) continue;
  mkdirSync(values.out, { recursive: true });
  const plot = { title, xTitle, yTitle, yFormat: '~s', lines, isLogarithmic: true };
  await writePicture(join(values.out, file), await lineSvg(plot));
}
harness.writeResults(values.output, { machine: harness.machine(), results });

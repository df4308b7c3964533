/** Certification, B5xx, B8xx, B9xx: metadata, fields, lists. */
import { CapacityType, MachineState as State } from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';
import type { Bench, Check } from './certify-bench.ts';
import { costFault, isCleared, METADATA, shapeFault, sortedText } from './certify-words.ts';

const GARBAGE = new Uint8Array([1, 2, 3, 255]);
const ALL_STATES = [1, 2, 3, 4, 5, 6, 7, 8] as const;

/** 55 keys with everything that a text may have in it. */
function manyKeys(): Record<string, string> {
  const entries = Array.from({ length: 55 }, (_, at): [string, string] => {
    const value = ['', 'plain', 'ä\u{1F600}', '\0\u0001\u007f', ' \t\n'][at % 5] ?? '';
    return [`key-${at}/ü\u0002`, value];
  });
  return Object.fromEntries(entries);
}

async function echoes(bench: Bench, id: string, given: Record<string, string>): Promise<void> {
  for (let look = 0; look < 2; look++) {
    const { shardMetadata } = await bench.get(id);
    bench.holds(sortedText(shardMetadata) === sortedText(given), 'Get shows other metadata');
    const { machines } = await bench.list({ states: [State.CONFIGURED] });
    const listed = machines.find((machine) => machine.id === id)?.shardMetadata ?? {};
    bench.holds(sortedText(listed) === sortedText(given), 'List shows other metadata');
  }
}

/** Walks all machines, a few at a time. */
export async function pages(bench: Bench, size: number): Promise<string[]> {
  const ids: string[] = [];
  let sinceRevision = new Uint8Array();
  for (let round = 0; round < 1_000_000; round++) {
    const { machines, revision } = await bench.list({ maxResults: size, sinceRevision });
    ids.push(...machines.map(({ id }) => id));
    if (machines.length < size || revision.length === 0) break;
    sinceRevision = Uint8Array.from(revision);
  }
  return ids;
}

async function each(bench: Bench, faultOf: (machine: Machine) => string): Promise<void> {
  const { machines } = await bench.list();
  for (const machine of machines) {
    const fault = faultOf(machine);
    bench.holds(fault === '', `${machine.id}: ${fault}`);
  }
}

/** Binds a machine for one look at it. */
async function whileBound(
  bench: Bench,
  look: (id: string, before: Uint8Array) => Promise<void>,
): Promise<void> {
  const { id } = await bench.idle();
  const { revision } = await bench.list();
  await bench.configure(id);
  await bench.reaches(id, State.CONFIGURED);
  await look(id, Uint8Array.from(revision));
  await bench.released(id);
}

export const METADATA_CHECKS: readonly Check[] = [
  {
    id: 'B501',
    area: 'metadata',
    name: '55 keys with all kinds of characters come back byte for byte',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shardMetadata = manyKeys();
      await bench.configure(id, { shardMetadata });
      await bench.reaches(id, State.CONFIGURED);
      await echoes(bench, id, shardMetadata);
      await bench.released(id);
    },
  },
  {
    id: 'B502',
    area: 'metadata',
    name: 'a drain clears cluster and metadata, and the next binding has none of the old keys',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.configure(id, { shardMetadata: METADATA });
      await bench.reaches(id, State.CONFIGURED);
      bench.holds(isCleared(await bench.released(id)), 'the binding outlives the drain');
      await bench.configure(id, { shardMetadata: { other: 'x' } });
      const machine = await bench.reaches(id, State.CONFIGURED);
      bench.holds(sortedText(machine.shardMetadata) === sortedText({ other: 'x' }), 'old keys');
      await bench.released(id);
    },
  },
  {
    id: 'B503',
    area: 'metadata',
    name: 'a large value is kept whole, or refused',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shardMetadata = { large: 'x'.repeat(1_000_000) };
      const code = await bench.outcome(bench.configure(id, { shardMetadata }));
      bench.holds(code === 0 || code === 3, `code ${code}`);
      if (code !== 0) return;
      const machine = await bench.reaches(id, State.CONFIGURED);
      bench.holds(machine.shardMetadata['large']?.length === 1_000_000, 'it was cut');
      await bench.released(id);
    },
  },
  {
    id: 'B504',
    area: 'metadata',
    name: 'metadata are there as soon as the machine is Configuring',
    run: async (bench) => {
      const { id } = await bench.idle();
      const ack = await bench.configure(id, { shardMetadata: METADATA });
      const shown = sortedText(ack.machine?.shardMetadata ?? {});
      bench.holds(shown === sortedText(METADATA), 'the answer shows other metadata');
      await bench.reaches(id, State.CONFIGURED);
      await echoes(bench, id, METADATA);
      await bench.released(id);
    },
  },
  {
    id: 'B505',
    area: 'metadata',
    name: 'a caller that changes what it sent changes nothing that is kept',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shardMetadata: Record<string, string> = { ...METADATA };
      await bench.configure(id, { shardMetadata });
      shardMetadata['empty'] = 'changed';
      await bench.reaches(id, State.CONFIGURED);
      await echoes(bench, id, METADATA);
      await bench.released(id);
    },
  },
];

export const FIELD_CHECKS: readonly Check[] = [
  {
    id: 'B801',
    area: 'fields',
    name: 'each machine has a state and a type, and no label in the place of a field',
    run: async (bench) => {
      const { machines } = await bench.list();
      const ids = new Set(machines.map(({ id }) => id));
      bench.holds(ids.size === machines.length, 'two machines have one id');
      await each(bench, shapeFault);
    },
  },
  {
    id: 'B802',
    area: 'fields',
    name: 'prices are 0 or more, probabilities 0 to 1, and above 0 for spot',
    run: (bench) => each(bench, costFault),
  },
  {
    id: 'B803',
    area: 'fields',
    name: 'host and cluster are there where the state says so',
    run: async (bench) => {
      await whileBound(bench, async () => each(bench, shapeFault));
      await each(bench, shapeFault);
    },
  },
  {
    id: 'B804',
    area: 'fields',
    name: 'what a machine offers is not empty where it is told',
    run: (bench) =>
      each(bench, ({ allocatable, resources }) => {
        const isEmpty = (one: Machine['resources']): boolean =>
          one !== undefined && Object.keys(one.resources).length === 0;
        return isEmpty(allocatable) || isEmpty(resources) ? 'it offers nothing' : '';
      }),
  },
  {
    id: 'B805',
    area: 'fields',
    name: 'the provider of a host is the same all the time',
    run: async (bench) => {
      const idle = await bench.idle();
      const names = new Set([idle.host?.provider]);
      await bench.configure(idle.id);
      names.add((await bench.reaches(idle.id, State.CONFIGURED)).host?.provider);
      names.add((await bench.released(idle.id)).host?.provider);
      bench.holds(names.size === 1, [...names].join(', '));
    },
  },
  {
    id: 'B806',
    area: 'fields',
    name: 'each machine has a capacity type, and a zone where it has a host',
    run: (bench) =>
      each(bench, ({ capacityType, zone, host }) => {
        if (capacityType === CapacityType.UNSPECIFIED) return 'it has no capacity type';
        return host !== undefined && zone === '' ? 'it has no zone' : '';
      }),
  },
  {
    id: 'B807',
    area: 'fields',
    name: 'Delete takes host, cluster and metadata away',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.delete(id);
      const gone = await bench.reaches(id, State.SPECULATIVE);
      bench.holds(gone.host === undefined && isCleared(gone), 'something is left');
    },
  },
];

export const LIST_CHECKS: readonly Check[] = [
  {
    id: 'B901',
    area: 'lists',
    name: 'a filter by states shows exactly those',
    run: async (bench) => {
      const all = (await bench.list()).machines;
      for (const states of [
        ...ALL_STATES.map((state) => [state]),
        [State.IDLE, State.SPECULATIVE],
      ]) {
        const some = (await bench.list({ states })).machines;
        const expected = all.filter(({ state }) => states.some((one) => one === state));
        const isRight = some.every(({ state }) => states.some((one) => one === state));
        bench.holds(isRight && some.length === expected.length, `states ${states.join(', ')}`);
      }
    },
  },
  {
    id: 'B902',
    area: 'lists',
    name: 'a limit is kept, and 0 is none',
    run: async (bench) => {
      const all = (await bench.list({ maxResults: 0 })).machines.length;
      for (const maxResults of [1, 2, 3]) {
        const { length } = (await bench.list({ maxResults })).machines;
        bench.holds(length === Math.min(maxResults, all), `${length} of ${maxResults}`);
      }
    },
  },
  {
    id: 'B903',
    area: 'lists',
    name: 'a change moves the cursor, and is shown after the one before',
    run: (bench) =>
      whileBound(bench, async (id, before) => {
        if (before.length === 0) return;
        const changes = await bench.list({ sinceRevision: before });
        bench.holds(
          changes.machines.some((one) => one.id === id),
          'a change is not shown',
        );
        bench.holds(Buffer.compare(changes.revision, before) !== 0, 'the cursor stayed');
      }),
  },
  {
    id: 'B904',
    area: 'lists',
    name: 'after the newest cursor nothing is shown',
    run: async (bench) => {
      const { revision } = await bench.list();
      if (revision.length === 0) return;
      const { machines } = await bench.list({ sinceRevision: Uint8Array.from(revision) });
      bench.holds(machines.length === 0, `${machines.length} machines`);
    },
  },
  {
    id: 'B905',
    area: 'lists',
    name: 'each change moves the cursor, and every earlier cursor shows all later changes',
    run: async (bench) => {
      const machines = await bench.several(2);
      const seen: { readonly cursor: Uint8Array; readonly later: Set<string> }[] = [];
      for (const { id } of machines) {
        const { revision } = await bench.list();
        if (revision.length === 0) return;
        seen.push({ cursor: Uint8Array.from(revision), later: new Set() });
        await bench.configure(id);
        await bench.reaches(id, State.CONFIGURED);
        for (const { later } of seen) later.add(id);
      }
      for (const { cursor, later } of seen) {
        const shown = (await bench.list({ sinceRevision: cursor })).machines.map(({ id }) => id);
        bench.holds(
          [...later].every((id) => shown.includes(id)),
          'a later change is not shown',
        );
      }
      const cursors = new Set(seen.map(({ cursor }) => Buffer.from(cursor).toString('hex')));
      bench.holds(cursors.size === seen.length, 'the cursor stayed');
      for (const { id } of machines) await bench.released(id);
    },
  },
  {
    id: 'B906',
    area: 'lists',
    name: 'a cursor that is none shows all',
    run: async (bench) => {
      const all = (await bench.list()).machines.length;
      for (const sinceRevision of [GARBAGE, new Uint8Array(16), new Uint8Array([0])]) {
        const { length } = (await bench.list({ sinceRevision })).machines;
        bench.holds(length === all, `${length} machines of ${all}`);
      }
    },
  },
  {
    id: 'B907',
    area: 'lists',
    name: 'pages show each machine once',
    run: async (bench) => {
      const all = (await bench.list()).machines.map(({ id }) => id);
      const found = await pages(bench, 2);
      bench.holds(new Set(found).size === found.length, 'a machine is shown twice');
      // a provider without cursors has one page
      if ((await bench.list()).revision.length === 0) return;
      bench.holds(found.length === all.length, `${found.length} machines of ${all.length}`);
    },
  },
  {
    id: 'B908',
    area: 'lists',
    name: 'time alone moves no cursor',
    run: async (bench) => {
      const before = (await bench.list()).revision;
      for (let look = 0; look < 5; look++) {
        await bench.options.sleep(50);
        const { revision } = await bench.list();
        bench.holds(Buffer.compare(revision, before) === 0, 'it moved while nothing happened');
      }
    },
  },
  {
    id: 'B909',
    area: 'lists',
    name: 'a cursor counts as it was given; a changed one shows all',
    run: async (bench) => {
      const { machines, revision } = await bench.list();
      if (revision.length === 0) return;
      const changed = Uint8Array.from(revision);
      changed[0] = (changed[0] ?? 0) ^ 0xff;
      const { length } = (await bench.list({ sinceRevision: changed })).machines;
      bench.holds(length === machines.length, `${length} machines of ${machines.length}`);
    },
  },
];

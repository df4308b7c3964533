import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import fc from 'fast-check';
import {
  capacityOf,
  classOf,
  isFor,
  mismatchOf,
  modesOf,
  requestOf,
  VolumeIndex,
  volumeModeOf,
} from './claim-match.ts';

const MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'];

function volume(name: string, spec: JsonObject, labels: JsonObject = {}): JsonObject {
  return { metadata: { name, labels }, spec, status: { phase: 'Available' } };
}

function claim(spec: JsonObject): JsonObject {
  return { metadata: { namespace: 'a', name: 'c', uid: 'u' }, spec };
}

const modes = fc.subarray(MODES, { minLength: 1 });
const size = fc.integer({ min: 1, max: 5 }).map((gi) => `${gi}Gi`);
const className = fc.constantFrom('', 'fast');
const volumeMode = fc.constantFrom('Filesystem', 'Block');
const claimRef = fc.constantFrom<JsonObject | undefined>(
  ...[undefined, undefined, undefined],
  { namespace: 'a', name: 'c' },
  { namespace: 'a', name: 'c', uid: 'other' },
  { namespace: 'b', name: 'c' },
);

const volumes = fc.array(
  fc.record({ modes, size, className, volumeMode, claimRef, red: fc.boolean() }),
  { maxLength: 8 },
);

/** Every volume looked at, by the rules as they are written down. */
function naive(
  all: readonly JsonObject[],
  wanted: JsonObject,
  isDelayed: boolean,
): Set<string | undefined> {
  const isRed = objectAt(wanted, 'spec', 'selector') !== undefined;
  const fits = all.filter(
    (one) =>
      capacityOf(one).compare(requestOf(wanted)) >= 0 &&
      volumeModeOf(one) === volumeModeOf(wanted) &&
      modesOf(wanted).every((mode) => modesOf(one).includes(mode)),
  );
  const kept = fits.filter((one) => isFor(one, wanted));
  const free = fits.filter(
    (one) =>
      !isDelayed &&
      objectAt(one, 'spec', 'claimRef') === undefined &&
      classOf(one) === classOf(wanted) &&
      (!isRed || stringAt(one, 'metadata', 'labels', 'color') === 'red'),
  );
  const fewest = (list: readonly JsonObject[]): number =>
    Math.min(...list.map((one) => modesOf(one).length));
  const least = Math.min(fewest(kept), fewest(free));
  const first = kept.filter((one) => modesOf(one).length === least);
  if (first.length > 0) return new Set(first.map(nameOf));
  // Which list of modes comes first is open where two are as long: each has a smallest volume.
  const lists = Map.groupBy(
    free.filter((one) => modesOf(one).length === least),
    (one) => modesOf(one).join(),
  );
  const smallest = [...lists.values()].flatMap((list) => {
    const sorted = list.toSorted((left, right) => capacityOf(left).compare(capacityOf(right)));
    return sorted.filter(
      (one) => sorted[0] && capacityOf(one).compare(capacityOf(sorted[0])) === 0,
    );
  });
  return smallest.length === 0 ? new Set([undefined]) : new Set(smallest.map(nameOf));
}

function nameOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'name');
}

test('the index chooses the volume that looking at every volume would choose', () => {
  fc.assert(
    fc.property(
      volumes,
      fc.record({ modes, size, className, volumeMode, isRed: fc.boolean() }),
      fc.boolean(),
      (made, want, isDelayed) => {
        const index = new VolumeIndex();
        const all = made.map((one, at) =>
          volume(
            `v${at}`,
            {
              accessModes: one.modes,
              capacity: { storage: one.size },
              storageClassName: one.className,
              volumeMode: one.volumeMode,
              ...(one.claimRef === undefined ? {} : { claimRef: one.claimRef }),
            },
            one.red ? { color: 'red' } : {},
          ),
        );
        for (const one of all) index.set(nameOf(one), one);
        const wanted = claim({
          accessModes: want.modes,
          resources: { requests: { storage: want.size } },
          storageClassName: want.className,
          volumeMode: want.volumeMode,
          ...(want.isRed ? { selector: { matchLabels: { color: 'red' } } } : {}),
        });
        const found = index.match(wanted, isDelayed, (name) =>
          all.find((one) => nameOf(one) === name),
        );
        assert(naive(all, wanted, isDelayed).has(found), `chose ${found}`);
      },
    ),
    { numRuns: 300 },
  );
});

test('a volume that was taken, bound or deleted is not offered', () => {
  const index = new VolumeIndex();
  const spec = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } };
  const wanted = claim({ ...spec, resources: { requests: { storage: '1Gi' } } });
  const free = volume('v', spec);
  const match = (): string | undefined => index.match(wanted, false, () => free);
  assert(index.set('v', free));
  assert.equal(match(), 'v');
  index.take('v');
  assert.equal(match(), undefined);
  assert(index.set('v', free));
  index.set('v', { ...free, status: { phase: 'Released' } });
  assert.equal(match(), undefined);
  index.set('v', { ...free, metadata: { name: 'v', deletionTimestamp: 'now' } });
  assert.equal(match(), undefined);
  index.set('v', free);
  index.set('v', undefined);
  assert.equal(match(), undefined);
});

test('what a named volume lacks is said in words', () => {
  const spec = { accessModes: ['ReadWriteOnce'], capacity: { storage: '2Gi' } };
  const of = (changed: JsonObject): string | undefined =>
    mismatchOf(
      volume('v', spec),
      claim({
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        ...changed,
      }),
    );
  assert.equal(of({}), undefined);
  assert.equal(of({ resources: { requests: { storage: '3Gi' } } }), 'requested PV is too small');
  assert.equal(of({ storageClassName: 'x' }), 'storageClassName does not match');
  assert.equal(of({ volumeMode: 'Block' }), 'incompatible volumeMode');
  assert.equal(of({ accessModes: ['ReadWriteMany'] }), 'incompatible accessMode');
});
